"""A finding with all that a finding can have, and the source that it is about."""

import numpy as np

from tfsafe.debugging.inspection import pictures
from tfsafe.errors import Finding, Link, NumericsError, Site

SOURCE = """\
import tensorflow as tf


def entropy(logits, labels):
    # The textbook form: fine on paper, & wrong where a < b.
    probs = tf.nn.softmax(logits)
    log_probs = tf.math.log(probs)  # and a comment that goes on, far past the edge
    return -tf.reduce_sum(labels * log_probs, axis=-1)

"""
LINE = 7


def probabilities():
    """Returns rows of probabilities, of which the third has two zeros."""
    probs = np.full([6, 4], 0.25, "float32")
    probs[2] = [0.0, 0.0, 1.0, 1e-6]
    return probs


def finding(folder):
    """Returns the finding; writes its source into a folder."""
    path = folder / "train.py"
    path.write_text(SOURCE, "utf-8")
    probs = probabilities()
    with np.errstate(divide="ignore"):
        logs = np.log(probs)
    lines = [line.strip() for line in SOURCE.splitlines()]
    log, total = (Site(str(path), n, "entropy", lines[n - 1]) for n in (LINE, LINE + 1))
    return Finding(
        kind="-Inf",
        op_type="Log",
        op_name="loss/Log",
        dtype="float32",
        count=2,
        size=24,
        index=(2, 0),
        site=log,
        cause="log of 2 zeros (the first at (2, 0)).",
        suggestion="takes the logits and never sees a probability of 0.",
        suggested_code="tfsafe.ops.log_softmax(logits)",
        row=2,
        shape=(6, 4),
        scope="model/softmax",
        iteration=(3,),
        inputs=(pictures.stats_of("Softmax", probs),),
        output=pictures.stats_of("", logs),
        chain=(
            Link("Log", "loss/Log", "-Inf", 2, 24, (6, 4), "float32", log),
            Link("Mul", "loss/mul", "NaN", 2, 24, (6, 4), "float32", total),
            Link("Sum", "loss/Sum", "NaN", 1, 6, (6,), "float32", None, "loss"),
            Link("", "", "NaN", 1, 6, (6,), "float32", origin="output['loss']"),
        ),
    )


def error(folder):
    """Returns an error of two findings."""
    first = finding(folder)
    second = Finding(
        kind="NaN",
        op_type="",
        op_name="",
        dtype="float32",
        count=1,
        size=2,
        index=(1,),
        shape=(2,),
        origin="argument `x`",
        cause="it was non-finite before the call.",
        suggestion="clean the data before it reaches the model.",
    )
    return NumericsError(f"{first}\n  reach: output['loss']", [first, second])
