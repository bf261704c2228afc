"""Reports and verifies rewrites."""
