"""The picture of a tensor, pixel by pixel."""

import sys

import matplotlib as mpl
import numpy as np
import pytest
import tensorflow as tf

mpl.use("Agg")
import matplotlib.pyplot as plt

from tfsafe.debugging import plot

NAN, INF = np.nan, np.inf
BLACK, ORANGE, CYAN = (0, 0, 0), (255, 140, 0), (0, 183, 199)


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def _pixel(axes, row, column):
    """Returns the colour that the picture shows for an element."""
    axes.figure.canvas.draw()
    x, y = axes.transData.transform((column, row))
    image = np.asarray(axes.figure.canvas.buffer_rgba())
    return tuple(int(c) for c in image[image.shape[0] - 1 - int(y), int(x), :3])


def test_every_kind_of_element_has_its_colour():
    axes = plot(tf.constant([[NAN, INF, -INF], [1.0, -1.0, 0.0]]))
    assert [_pixel(axes, 0, c) for c in range(3)] == [BLACK, ORANGE, CYAN]
    blue, red, white = (_pixel(axes, 1, c) for c in range(3))
    assert blue[2] > blue[0]
    assert red[0] > red[2]
    assert min(white) > 240
    assert {t.get_text() for t in axes.get_legend().get_texts()} == {
        "NaN", "+Inf", "-Inf",
    }  # fmt: skip


def test_one_nonfinite_element_among_millions_is_seen():
    tensor = np.ones((3000, 2000), np.float32)
    tensor[1234, 567] = NAN
    axes = plot(tensor)
    assert axes.get_title() == "3000x2000 float32, <0.01 % NaN"
    assert _pixel(axes, 1234, 567) == BLACK
    assert _pixel(axes, 500, 500) != BLACK


def test_the_depth_is_the_logarithm_of_the_magnitude():
    axes = plot(np.array([[1e-3, 1e0, 1e3]]))
    # Less and less of the other colours as the magnitude grows.
    faint, middle, deep = (sum(_pixel(axes, 0, c)) for c in range(3))
    assert faint > middle > deep
    # The middle magnitude stands half way, as no linear scale would have it.
    assert abs((faint - middle) - (middle - deep)) < 150


def test_the_deepest_colour_is_far_from_the_black_of_nan():
    axes = plot(np.array([[1e-3, 1e3], [-1e3, NAN]]))
    assert min(sum(_pixel(axes, 0, 1)[:3]), sum(_pixel(axes, 1, 0)[:3])) > 200


@pytest.mark.parametrize("kind", ["image", "histogram"])
def test_the_ticks_are_whole_numbers(kind):
    axes = plot(np.array([[1.0, 30.0], [2.0, 0.5]]), kind)
    axes.figure.canvas.draw()
    labels = [text.get_text().replace("\u2212", "-") for text in axes.get_xticklabels()]
    assert labels
    assert all(float(label).is_integer() for label in labels if label)


@pytest.mark.parametrize("shape", [(), (5,), (2, 3, 4), (0, 3), (0,)])
def test_it_draws_tensors_of_any_rank(shape):
    axes = plot(tf.zeros(shape))
    axes.figure.canvas.draw()
    assert axes.get_title().endswith("float32")


def test_a_histogram_shows_signs_upwards_and_downwards():
    axes = plot(np.array([1.0, 10.0, -0.1, 0.0, NAN, INF]), "histogram")
    texts = [text.get_text() for text in axes.texts]
    assert texts == ["zero", "NaN", "+Inf"]
    positive, negative = (patch.get_data().values for patch in axes.patches[:2])
    assert positive.sum() == 2
    assert negative.sum() == -1
    assert axes.get_title() == "6 float64, 16.67 % NaN, 16.67 % +Inf"


def test_it_draws_where_it_is_asked_and_under_the_given_title():
    mine = plt.subplots()[1]
    assert plot(np.ones((2, 2)), axes=mine, title="kernel") is mine
    assert mine.get_title() == "kernel"


def test_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="`kind` must be one of 'image', 'histogram'"):
        plot([1.0], "pie")


def test_without_matplotlib_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match="pip install matplotlib"):
        plot(np.ones(3))
