"""Keeps pytest from importing the programs, which would run them."""

collect_ignore_glob = ["programs/*"]
