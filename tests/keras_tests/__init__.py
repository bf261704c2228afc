"""Keras' own tests, run with the classes of tfsafe in the place of Keras'.

`run.py` runs the test files out of the installed Keras wheel, `swap.py` is the pytest
plugin that swaps the classes, `files.txt` names the files of the short run, and
`differences.txt` the tests that are meant to fail, each with its reason.
"""
