"""The rewrite rules, by family."""
