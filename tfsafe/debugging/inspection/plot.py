"""Draws a tensor: sign and magnitude, with every non-finite element visible."""

from typing import Any

import keras
import numpy as np

from tfsafe import _args
from tfsafe.debugging.inspection import pictures, summary

# Blue for positive and red for negative, as in the colour map "RdBu"; black and two
# loud colours for what is not a number of that scale.
_POSITIVE, _NEGATIVE = "#2166ac", "#b2182b"
_NONFINITE = {"NaN": "black", "+Inf": "#ff8c00", "-Inf": "#00b7c7"}
# Depths end at 1. The darkest of "RdBu" would be taken for the black of a NaN.
_DARKEST = 1.25
# Longest side of an image; beyond it each pixel shows a block of elements.
_PIXELS = 256
# Up to this many non-finite elements get a ring, to be found in a large picture.
_RINGS = 30


def plot(
    tensor: Any, kind: str | None = None, *, axes: Any = None, title: str | None = None
) -> Any:
    """Draws what a tensor holds: the signs, the magnitudes, and where it is not finite.

    An image shows each element's sign as a colour, blue or red, and the logarithm of
    its magnitude as its depth; zeros are white. NaN is black, +Inf orange, -Inf cyan. A
    tensor of more than 256 rows or columns is drawn in blocks; a block shows a NaN or
    an infinity before any number, and else its largest magnitude, so that one
    non-finite element among millions is seen. A histogram shows how many elements have
    which magnitude, positive ones upwards and negative ones downwards. Needs
    matplotlib.

    Args:
      tensor: What `tfsafe.debugging.summarize` takes: a tensor, variable or NumPy
        array of any shape and numeric dtype, complex ones by their moduli. Lists, dicts
        and models are drawn tensor by tensor, a sparse or ragged tensor and
        `tf.IndexedSlices` by their values. In an image all axes but the last run along
        its rows.
      kind: `"image"` or `"histogram"`; if None, an image from rank 2 on.
      axes: matplotlib `Axes` to draw into; if None, those of a new figure.
      title: Heading; if None, the shape, the dtype and the fractions of non-finite
        values.

    Returns:
      The matplotlib `Axes`; a list of them for a list, a dict or a model.

    Raises:
      ImportError: If matplotlib is not installed.
      TypeError: If `tensor` has no values yet, as while a `tf.function` is traced, or
        holds no numbers.
      ValueError: If `kind` is unknown.

    Examples:
      >>> from tfsafe.debugging import plot
      >>> axes = plot(np.array([[1.0, np.nan], [-1e-3, 0.0]]))
      >>> axes.get_title()
      '2x2 float64, 25 % NaN'
    """
    if kind is not None:
        _args.one_of(kind, ("image", "histogram"), "kind")
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "`tfsafe.debugging.plot` draws with matplotlib, which is not installed. "
            "Install it with `pip install matplotlib`; "
            "`tfsafe.debugging.summarize(tensor)` says the same in words."
        ) from error
    if isinstance(tensor, dict | list | tuple | keras.Layer):
        return _plot_all(tensor, kind, plt)
    arrays = [array for _, array in summary.named_arrays(tensor, "plot")]
    if not arrays:
        raise TypeError(f"`plot` needs numbers. Received: {tensor!r}.")
    if len(arrays) > 1:
        return _plot_all(tensor, kind, plt)
    array = arrays[0]
    if axes is None:
        axes = plt.subplots(layout="constrained")[1]
    numbers = summary.real_numbers(array)
    # An image needs elements; a histogram of none has no bars.
    if kind == "histogram" or (kind is None and array.ndim < 2) or not array.size:
        _draw_histogram(axes, numbers.ravel())
    else:
        _draw_image(axes, pictures.matrix_of(numbers))
    axes.set_title(_heading(array, numbers) if title is None else title)
    return axes


def _plot_all(tensor: Any, kind: str | None, plt: Any) -> Any:
    """Draws the tensors of a structure, each into axes of its own."""
    arrays = list(summary.named_arrays(tensor, "plot"))
    if not arrays:
        raise TypeError(
            f"`plot` needs at least one tensor of numbers. Received: {tensor!r}."
        )
    columns = min(len(arrays), 4)
    rows = -(-len(arrays) // columns)
    size = (5 * columns, 4 * rows)
    grid = plt.subplots(
        rows, columns, squeeze=False, layout="constrained", figsize=size
    )
    found = list(grid[1].flat)
    for axes, (name, array) in zip(found, arrays, strict=False):
        heading = f"{name}: {_heading(array, summary.real_numbers(array))}"
        plot(array, kind, axes=axes, title=heading)
    for unused in found[len(arrays) :]:
        unused.remove()
    return found[: len(arrays)]


def _heading(array: np.ndarray, numbers: np.ndarray) -> str:
    shape = "x".join(map(str, array.shape)) or "scalar"
    fractions = {
        name: mask.mean()
        for name, mask in pictures.masks(numbers).items()
        if mask.any()
    }
    said = [
        f"{summary.percent(fraction)} {name}" for name, fraction in fractions.items()
    ]
    return ", ".join([f"{shape} {array.dtype.name}", *said])


def _draw_image(axes: Any, numbers: np.ndarray) -> None:
    import matplotlib as mpl

    rows, columns = numbers.shape
    nonfinite = pictures.masks(numbers)
    masks = {name: pictures.blocks(mask, _PIXELS) for name, mask in nonfinite.items()}
    depths, low, high = pictures.depths(pictures.strongest(numbers, _PIXELS))
    image = axes.imshow(
        depths,
        cmap="RdBu",
        vmin=-_DARKEST,
        vmax=_DARKEST,
        aspect="auto",
        interpolation="nearest",
        extent=(-0.5, columns - 0.5, rows - 0.5, -0.5),
    )
    for name in reversed(_NONFINITE):
        if masks[name].any():
            axes.imshow(
                np.where(masks[name], 1.0, np.nan),
                cmap=mpl.colors.ListedColormap([_NONFINITE[name]]),
                aspect="auto",
                interpolation="nearest",
                extent=image.get_extent(),
            )
        if 0 < nonfinite[name].sum() <= _RINGS:
            y, x = np.nonzero(nonfinite[name])
            ring = {"mfc": "none", "mec": _NONFINITE[name], "ms": 14, "mew": 2}
            axes.plot(x, y, "o", **ring, clip_on=False)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(mpl.ticker.MaxNLocator(integer=True))
    _scale(axes, image, low, high)
    _legend(axes, masks)
    axes.set_xlabel("last axis")
    axes.set_ylabel("all other axes")


def _scale(axes: Any, image: Any, low: float, high: float) -> None:
    bar = axes.figure.colorbar(image, ax=axes, ticks=[-1, -0.2, 0, 0.2, 1])
    ends = [f"-1e{high:.0f}", f"-1e{low:.0f}", "0", f"1e{low:.0f}", f"1e{high:.0f}"]
    bar.set_ticklabels(ends)
    bar.ax.set_ylim(-1, 1)


def _legend(axes: Any, masks: dict[str, np.ndarray]) -> None:
    from matplotlib.patches import Patch

    found = [name for name, mask in masks.items() if mask.any()]
    if found:
        handles = [Patch(facecolor=_NONFINITE[name], label=name) for name in found]
        # Below the picture, where it hides no element.
        axes.legend(
            handles=handles, loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=3
        )


def _draw_histogram(axes: Any, numbers: np.ndarray) -> None:
    import matplotlib as mpl

    masks = pictures.masks(numbers)
    finite = numbers[np.isfinite(numbers)]
    sides = {1: finite[finite > 0], -1: -finite[finite < 0]}
    logs = np.log10(np.concatenate([*sides.values()]))
    low, high = (np.floor(logs.min()), np.ceil(logs.max())) if logs.size else (0, 0)
    edges = np.linspace(low, max(high, low + 1), 61)
    for sign, colour in ((1, _POSITIVE), (-1, _NEGATIVE)):
        counts, _ = np.histogram(np.log10(sides[sign]), edges)
        name = "positive" if sign > 0 else "negative"
        axes.stairs(sign * counts, edges, fill=True, color=colour, label=name)
    axes.axhline(0, color="gray", linewidth=0.8)
    others = {"zero": finite == 0} | masks
    span = edges[-1] - edges[0]
    found = [name for name, mask in others.items() if mask.any()]
    for rank, name in enumerate(found, start=1):
        place, count = edges[-1] + rank * span / 8, int(others[name].sum())
        axes.bar(place, count, width=span / 15, color=_NONFINITE.get(name, "lightgray"))
        axes.annotate(name, (place, count), ha="center", va="bottom", fontsize=9)
    # No magnitude belongs to the bars on the right.
    ticks = mpl.ticker.MaxNLocator(integer=True).tick_values(edges[0], edges[-1])
    axes.set_xticks([tick for tick in ticks if edges[0] <= tick <= edges[-1]])
    axes.set_yscale("symlog")
    # Room for the name above the highest bar.
    axes.set_ylim(top=3 * axes.get_ylim()[1])
    axes.set_xlabel("log10 of the magnitude")
    axes.set_ylabel("elements (negative ones downwards)")
    if logs.size:
        axes.legend(loc="best")
