"""The catalogue of measured traps, as code: one row for each, by its identifier.

`rows.py` says what a row is. Each other module holds the rows of one area in a list
`ROWS`; `tests/test_traps.py` runs them all.
"""
