"""`check_finite` for arrays, pipelines and generators."""
