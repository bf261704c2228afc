"""Provides `check_finite` for arrays, pipelines and generators.

Knows the policies and how to apply them to data in memory, to `tf.data` pipelines and
to batches made by Python. It leaves reading rows to `data/sources` and finding faults
to `data/faults`; both it may import, and so it may the modules at the root of tfsafe.

Example: `check.py` picks `pipeline.checked` for a `tf.data.Dataset`.
"""
