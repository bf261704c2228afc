"""The catalogue of measured traps, as code: one row for each, by its identifier.

`rows.py` defines a row. Each other module holds the rows of one area in a list
`ROWS`; `tests/test_traps.py` runs them all. `python -m tests.catalogue` writes the
coverage page.
"""

import importlib
import pkgutil


def every_row():
    """Returns the rows of all areas."""
    modules = [
        importlib.import_module(f"tests.catalogue.{module.name}")
        for module in pkgutil.iter_modules(__path__)
        if not module.name.startswith("__")
    ]
    return [row for module in modules for row in getattr(module, "ROWS", [])]
