"""Sphinx settings: `make docs` builds the site into `build/docs`."""

import pathlib
import sys

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import generated  # noqa: E402

import tfsafe  # noqa: E402

project = "tfsafe"
author = "the tfsafe developers"
version = release = tfsafe.__version__
html_title = "tfsafe"
html_theme = "furo"
# `x` in a docstring is code.
default_role = "code"
html_static_path = ["_static"]
html_css_files = ["narrow.css"]
html_show_copyright = False
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
]
exclude_patterns = ["_build"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
napoleon_google_docstring = True
napoleon_numpy_docstring = False
# One list of attributes, not a heading for each.
napoleon_use_ivar = True
napoleon_custom_sections = [
    ("Call arguments", "params_style"),
    "Input shape",
    "Output shape",
]
autosummary_generate = True
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
# Keras' base classes document their own members.
autodoc_default_options = {"members": True, "inherited-members": False}
suppress_warnings = ["autosummary.import_cycle"]


def numerics_as_table(app, what, name, obj, options, lines) -> None:
    """Shows the aligned rows of a `Numerics` block as they are aligned."""
    # Absolute values in prose are no substitutions.
    lines[:] = [line.replace("|a|", "abs(a)") for line in lines]
    if "Numerics:" not in lines:
        return
    start = lines.index("Numerics:")
    end = start + 1
    while end < len(lines) and (not lines[end] or lines[end].startswith(" ")):
        end += 1
    rows = [f"   {line.strip()}" if line else "" for line in lines[start + 1 : end]]
    lines[start:end] = [".. rubric:: Numerics", "", "::", "", *rows, ""]


def setup(app: object) -> None:
    """Writes the generated pages before Sphinx looks for sources."""
    generated.write(HERE)
    # Before napoleon, whose priority is 500.
    app.connect("autodoc-process-docstring", numerics_as_table, priority=400)
