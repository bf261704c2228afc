"""Changes the package in one place at a time and runs the tests of that place.

`make mutate SEED=1 N=300`, or `python -m tests.mutation --seed 1 --count 300`. A change
that no test notices, a survivor, is a gap in the tests, or equivalent code: then
`equivalent.txt` lists it with the reason.

`changes` makes the changes; `choice` finds the test files of a module; `reach` records
once which of their cases run which line; `runs` runs those cases, the fastest of each
test first, in a process of their own that imports the changed module; `__main__` prints
a table by package.

The tools for this do not fit: mutmut calls each function through a dispatcher, so that
the frames and source lines that findings quote are no longer those of the package, and
forks a process in which TensorFlow has threads; cosmic-ray runs one command for all
changes, which here is minutes of tests for each of some eight thousand.
"""
