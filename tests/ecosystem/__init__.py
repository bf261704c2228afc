"""Small programs of third-party packages, plain and under `tfsafe run`.

`make test-ecosystem` makes an environment with the packages of `packages.txt` and
prints a table. It is not part of `make test-all`: a new version of another project
must not stop ours.
"""
