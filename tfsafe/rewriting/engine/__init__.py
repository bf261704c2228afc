"""Traces a function, plans its rewrites and emits it again."""
