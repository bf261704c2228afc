"""The text of the error, word for word."""

import dataclasses
import json
import pickle
import re
import textwrap

import numpy as np
import pytest
import tensorflow as tf

import tfsafe
from tests.debugging import programs
from tfsafe.errors import Finding, Site

SITE = Site("train.py", 12, "loss", "return (x - mean) / std")


def text_of(function, *args):
    with pytest.raises(tfsafe.NumericsError) as caught:
        function(*args)
    text = str(caught.value).partition("\n  again: ")[0]
    return text.replace(programs.__file__, "programs.py")


def dedent(text):
    return textwrap.dedent(text).strip("\n")


def test_a_forward_failure_is_reported_in_full():
    layer = programs.Standardise(name="standardise")
    x = tf.constant([[[1.0, 3.0]], [[2.0, 2.0]]])

    @tfsafe.checked
    @tf.function
    def predict(x):
        return {"scores": layer(x)}

    line = programs.line_of("standardise")
    assert text_of(predict, x) == dedent(f"""
        NaN from `RealDiv`, first in row 1 of the batch.
          what:  2 of 4 values, the first at (1, 0, 0); shape (2, 1, 2), float32
          where: programs.py:{line} in call (inside standardise)
                     return (x - mean) / std  # standardise
          why:   1 zero in the denominator (at (1, 0, 0)). The 0 comes from `Sub` at
                 programs.py:{line - 1}, which subtracts equal numbers.
          input: Sub, float32 2x1x2: -1 to 1, mean 0, 2 zeros, 1 negative
                 Sqrt, float32 2x1x1: 0 to 1, mean 0.5, 1 zero
          fix:   tfsafe.ops.divide(x - mean, std)
                 returns 0, with gradient 0, where the denominator is 0.
          reach: output['scores']
        """)


def test_a_backward_failure_is_reported_with_its_forward_line():
    checked = tfsafe.checked(tf.function(programs.backward_nan, autograph=False))
    line = programs.line_of("backward_nan")
    why = "the slope of sqrt is infinite at 0: 6 zeros under the root (the first at (0,"
    assert text_of(checked, programs.X) == dedent(f"""
        +Inf in the gradient of `Sqrt`, from `SqrtGrad`, in every row of the batch.
          what:  6 of 6 values, the first at (0, 0); shape (2, 3), float32
          where: programs.py:{line} in backward_nan (the forward operation)
                     distance = tf.sqrt(x - x)  # backward_nan
          why:   {why}
                 0)), where the incoming gradient is 1. The 0 comes from `Sub` at
                 programs.py:{line}, which subtracts equal numbers.
          input: Sqrt, float32 2x3: all 0
                 Tile, float32 2x3: all 1
          fix:   tfsafe.ops.sqrt(x - x)
                 has the same values, and gradient 0 where the true one is infinite. Or
                 tfsafe.stabilize(f) rewrites it in a function or model f.
          reach: output
        """)


def test_a_failure_says_how_to_see_it_again_and_what_that_costs():
    with pytest.raises(tfsafe.NumericsError) as caught:
        tfsafe.checked(tf.function(tf.math.log))(tf.constant(0.0))
    text = str(caught.value).replace("\n" + " " * 9, " ")
    assert re.search(
        r'again: `error.save\("nan.zip"\)`, or `tfsafe run --capsule nan.zip`, saves '
        r"it for `tfsafe replay nan.zip`: [\d.]+ s as here, after the start of "
        r"TensorFlow and tracing.$",
        text,
    )


def test_a_wrong_argument_is_reported():
    checked = tfsafe.checked(tf.function(programs.passes_on))
    assert text_of(checked, tf.constant([1.0, float("nan")])) == dedent("""
        NaN in argument `x`, first in row 1 of the batch.
          what:  1 of 2 values, at (1,); shape (2,), float32
          why:   it was non-finite before the call.
          fix:   tfsafe.data.check_finite reports all such rows before the training;
                 policy="drop" removes them.
          reach: output
        """)


def test_variables_are_reported_as_restored_and_further_places_counted():
    weight = tf.Variable([1.0, 1.0], name="weight")

    @tfsafe.checked
    @tf.function(autograph=False)
    def step(x):
        weight.assign(tf.math.log(x) + tf.sqrt(x - 1.0))
        return weight * 1.0

    text = text_of(step, tf.constant([0.0, 0.5]))
    assert text.splitlines()[-3:] == [
        "  reach: output, variable `weight`",
        "  more:  1 further place, see `error.findings`",
        "  state: 1 variable was restored as before the call.",
    ]


def test_many_nonfinite_results_are_not_all_listed():
    @tfsafe.checked
    def split(x):
        return tf.unstack(x / 0.0)

    text = text_of(split, tf.ones([8]))
    assert "output[0], output[1], output[2], output[3], output[4] and 3 more" in text


def test_a_place_that_cannot_be_found_is_said_to_be_so():
    @tf.function
    def unlucky(limit):
        # The kernel's own random state: nobody can rewind it, and a loop draws often.
        drawn = tf.map_fn(lambda _: tf.random.uniform([], seed=7), tf.zeros([1]))
        return 1.0 / (drawn[0] - limit)

    tf.random.set_seed(3)
    draw = tf.function(lambda: tf.random.uniform([], seed=7))
    _, second = draw(), draw()
    tf.random.set_seed(3)
    checked = tfsafe.checked(unlucky)
    checked(-1.0 * tf.ones([]))
    text = text_of(checked, second)
    assert text == dedent("""
        +Inf in output.
          what:  the only value, float32
          why:   the operation that made it could not be found: the call draws from
                 RandomUniform, whose random numbers cannot be drawn a second time. Use
                 tf.random.stateless_* or keras.random.SeedGenerator, which can be.
          when:  call 2 of this function
          reach: output
        """)


@pytest.mark.parametrize("jit_compile", [False, True], ids=["graph", "xla"])
@pytest.mark.parametrize("checks", ["watch", "domain"])
def test_a_failure_that_the_compiler_makes_has_its_line(checks, jit_compile):
    # Run one by one this is log(1e-10). Grappler makes it log((1 + 1e-10) - p).
    count = tf.Variable(1.0)

    @tf.function(jit_compile=jit_compile)
    def entropy(p):
        count.assign_add(1.0)
        return tf.math.log((1.0 - p) + 1e-10)  # merged

    p = tf.constant([1.0])
    assert entropy(p).numpy() == -np.inf
    with pytest.raises(tfsafe.NumericsError) as caught:
        tfsafe.checked(entropy, checks=checks)(p)
    (finding,) = caught.value.findings
    assert finding.site.source.endswith("# merged")
    assert finding.op_type == "Log"
    assert "adds the constants 1 and 1e-10" in finding.cause
    assert finding.suggestion.startswith("log(0) is infinite: keep the argument above")
    assert count.numpy() == 2.0
    # What it suggests.
    assert tfsafe.checked(tfsafe.stabilize(entropy))(p).numpy() < -20


FINDING = Finding(
    kind="NaN",
    op_type="RealDiv",
    op_name="step/truediv",
    dtype="float32",
    count=1,
    size=2,
    index=(1,),
    shape=(2,),
    site=SITE,
    cause="1 zero in the denominator.",
    suggestion="is 0 there.",
    iteration=(3, 1),
)


def test_a_finding_survives_pickle_and_json():
    error = tfsafe.NumericsError("text", [FINDING])
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == "text"
    assert again.findings == (FINDING,)
    data = json.loads(json.dumps(dataclasses.asdict(FINDING)))
    assert data["site"]["line"] == 12


def test_a_real_finding_is_plain_data():
    with pytest.raises(tfsafe.NumericsError) as caught:
        tfsafe.checked(tf.function(programs.in_loop))(programs.X)
    finding = dataclasses.asdict(caught.value.findings[0])
    assert json.loads(json.dumps(finding))["op_type"] == "Sqrt"


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({}, "  where: train.py:12 in loss (loop iteration 3, 1)"),
        ({"site": None}, "  where: no line of yours; operation `step/truediv`"),
        ({"is_gradient": True}, "NaN from `RealDiv` in the backward pass."),
        ({"shape": (), "index": ()}, "  what:  the only value, float32"),
        ({"suggestion": ""}, "  why:   1 zero in the denominator."),
        ({"cause": ""}, "  fix:   is 0 there."),
        ({"site": dataclasses.replace(SITE, source="")}, "train.py:12 in loss (loop"),
        ({"origin": "a variable", "site": None}, "NaN in a variable."),
        ({"kind": "NaN or Inf", "size": 0, "count": 0}, "NaN or Inf from `RealDiv`."),
    ],
    ids=[
        "loops",
        "no-line",
        "unknown-forward",
        "scalar",
        "no-cure",
        "no-cause",
        "no-source",
        "variable",
        "flag",
    ],
)
def test_each_part_of_a_finding_has_its_words(change, line):
    assert line in str(dataclasses.replace(FINDING, **change))


def test_a_finding_without_values_says_nothing_of_them():
    text = str(dataclasses.replace(FINDING, kind="NaN or Inf", size=0, count=0))
    assert "what:" not in text


def test_a_site_shows_its_source_if_there_is_one():
    assert str(SITE) == "train.py:12 in loss\n    return (x - mean) / std"
    assert str(dataclasses.replace(SITE, source="")) == "train.py:12 in loss"
