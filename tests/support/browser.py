"""A real browser without a window, for pages that have to be looked at."""

import functools
import html
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib import image

_NAMES = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "chrome-headless-shell",
    "microsoft-edge",
)
_PLACES = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)
# What Playwright downloads, on Linux and on macOS.
_CACHES = ("~/.cache/ms-playwright", "~/Library/Caches/ms-playwright")
MISSING = (
    "no Chromium was found: put one on PATH or its path into TFSAFE_CHROMIUM, or "
    "`pip install PyQt6-WebEngine`, which brings one"
)
# High enough for any page in the tests.
_HEIGHT = 4000
# The page stands in a frame as wide as the screen asked for, which no browser window
# need be, and the frame's owner measures it.
_STAGE = """<!DOCTYPE html>
<meta charset="utf-8">
<style>body {{ margin: 0; overflow: hidden; }} iframe {{ border: 0; }}</style>
<iframe style="width: {width}px; height: {height}px" srcdoc="{page}"></iframe>
<script>
const frame = document.querySelector("iframe");
frame.onload = () => {{
  const root = frame.contentDocument.documentElement;
  const loaded = frame.contentWindow.performance.getEntriesByType("resource");
  const boxes = [...root.querySelectorAll("main *")]
    .filter((each) => !each.closest("pre, svg"))
    .map((each) => each.getBoundingClientRect().right);
  const height = root.querySelector("body").offsetHeight;
  document.body.dataset.measured =
    [root.scrollWidth, height, Math.max(...boxes), loaded.length].join(" ");
}};
</script>
"""


class Photograph(NamedTuple):
    """How a page looks.

    Attributes:
      pixels: Rows of columns of red, green and blue, from 0 to 255.
      width: How wide the page is, wherever it has to be scrolled.
      height: How high it is.
      right: Where its rightmost box ends, those in blocks that scroll apart.
      loaded: How many files it made the browser load.
    """

    pixels: np.ndarray
    width: float
    height: float
    right: float
    loaded: float

    def share(self, color: str) -> float:
        """Returns the share of pixels of a colour, such as `"#ff0000"`."""
        wanted = [int(color[i : i + 2], 16) for i in (1, 3, 5)]
        return float((self.pixels == wanted).all(-1).mean())


@functools.cache
def find() -> Sequence[str]:
    """Returns the command of a browser, empty if there is none."""
    named = os.environ.get("TFSAFE_CHROMIUM")
    cached = [
        str(each)
        for cache in _CACHES
        for pattern in ("*/*/chrome", "*/*/headless_shell", "*/*/chrome-headless-shell")
        for each in sorted(pathlib.Path(cache).expanduser().glob(pattern))
    ]
    found = [
        named,
        *map(shutil.which, _NAMES),
        *filter(os.path.exists, _PLACES),
        *cached,
    ]
    for each in filter(None, found):
        return [each]
    has_qt = importlib.util.find_spec("PyQt6") is not None
    if has_qt and importlib.util.find_spec("PyQt6.QtWebEngineWidgets"):
        return [sys.executable, str(pathlib.Path(__file__).with_name("qt_browser.py"))]
    return []


def photograph(page: str, *, width: int, dark: bool) -> Photograph:
    """Shows a page in a browser.

    Args:
      page: The page.
      width: Width of the screen in pixels.
      dark: Whether the user prefers dark colours.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        shot, stage = folder / "shot.png", folder / "stage.html"
        stage.write_text(
            _STAGE.format(width=width, height=_HEIGHT, page=html.escape(page)), "utf-8"
        )
        command = [
            *find(),
            "--headless",
            # Chromium has no sandbox for root, as which containers run.
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            f"--user-data-dir={folder / 'profile'}",
            f"--blink-settings=preferredColorScheme={0 if dark else 1}",
            f"--window-size={width},{_HEIGHT}",
            f"--screenshot={shot}",
            "--dump-dom",
            stage.as_uri(),
        ]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=120
        )
        measured = re.search('data-measured="([^"]*)"', done.stdout)
        assert measured, f"{command} shows nothing:\n{done.stdout}\n{done.stderr}"
        pixels = np.round(image.imread(shot)[..., :3] * 255).astype(int)
    measures = [float(each) for each in measured[1].split()]
    # The screen may be higher than the page, and wider than the frame.
    pixels = pixels[: int(measures[1]), :width]
    return Photograph(pixels, *measures)
