"""Turns a traced failure into a finding: cause, suggestion, text."""
