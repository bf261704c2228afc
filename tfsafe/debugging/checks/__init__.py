"""Runs functions under numeric checks: eager, traced, or a whole program."""
