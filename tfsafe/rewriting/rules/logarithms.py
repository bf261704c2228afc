"""Rules for logarithms of probabilities and of exponentials."""

from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf

from tfsafe.rewriting.engine.rule import Build, Rule
from tfsafe.rewriting.facts.tensors import Reader
from tfsafe.rewriting.log_space.analysis import Logarithms, logarithms
from tfsafe.rewriting.log_space.form import Factored, weighed
from tfsafe.rewriting.rules import entropies, exponentials, log_space

_Match = Callable[[tf.Operation, Reader], Build | None]


class _Row(NamedTuple):
    name: str
    before: str
    after: str
    fails: str
    reference: str


def _found(op: tf.Operation, logs: Logarithms) -> Factored | None:
    """Factors what an operation takes the logarithm of."""
    x = op.inputs[-1]
    if op.type in {"Log", "Xlogy"}:
        return logs.of(x)
    return logs.one_plus(x)


def _match(name: str) -> _Match:
    def match(op: tf.Operation, reader: Reader) -> Build | None:
        found = _found(op, logarithms(reader))
        if found is None or found.name != name:
            return None
        if len(op.inputs) == 1:
            return found.whole_log
        weight = op.inputs[0]
        return lambda value: weighed(value(weight), found.whole_log(value))

    return match


_HIGHAM = "Blanchard, Higham and Higham, IMA Journal of Numerical Analysis 41(4), 2021"
_MAECHLER = "Maechler, Accurately Computing log(1 - exp(-|a|)), Rmpfr vignette, 2012"

_ROWS = (
    _Row(
        "log-of-softmax",
        "log(softmax(x)), log(exp(x) / sum(exp(x)))",
        "ops.log_softmax(x)",
        "a logit trails the largest by more than 103 (17 in float16)",
        _HIGHAM,
    ),
    _Row(
        "log-of-sigmoid",
        "log(sigmoid(x)), log(1 / (1 + exp(-x)))",
        "ops.log_sigmoid(x)",
        "x is below -103 or above 17 (-17 and 8 in float16)",
        _MAECHLER,
    ),
    _Row(
        "log-of-complement",
        "log(1 - p) of a softmax, a sigmoid, a tanh or an exponential p",
        "ops.log_sigmoid(-x), ops.log1mexp(log p), -2 ops.log_cosh(x)",
        "p rounds to 1",
        _MAECHLER,
    ),
    _Row(
        "log-of-guarded-probability",
        "log(p + 1e-7), log(clip(p, 1e-7, 1 - 1e-7)), log(max(p, 1e-7))",
        "log p in its stable form; the guard's log where p is exactly 0. The bias of "
        "the guard goes",
        "p is near the guard or below: the value is off, the slope small or 0",
        "the guarded formula without its guard, which is finite by itself",
    ),
    _Row(
        "log-of-exp",
        "log(exp(x))",
        "x",
        "exp(x) overflows or underflows",
        "identity",
    ),
    _Row(
        "log-of-product",
        "log(a * b), log(prod(a)) of exponentials and probabilities",
        "log(a) + log(b), sum(log(a))",
        "the product underflows or overflows",
        "identity",
    ),
    _Row(
        "log-of-ratio",
        "log(a / b) of exponentials and probabilities",
        "log(a) - log(b)",
        "a, b or the quotient underflows or overflows",
        "identity",
    ),
    _Row(
        "log-of-odds",
        "log(p / (1 - p)) of a sigmoid p of x",
        "x",
        "p rounds to 0 or to 1",
        "identity",
    ),
    _Row(
        "log-of-power",
        "log(a ** k), log(sqrt(a)) of exponentials and probabilities",
        "k * log(a)",
        "a or the power underflows or overflows",
        "identity",
    ),
    _Row(
        "log-of-sum",
        "log(sum(exp(x))), log(exp(x) + exp(y)), log(1 + exp(x)), log(sum(w * exp(x)))",
        "ops.logsumexp(x), ops.log_add_exp(x, y), -ops.log_sigmoid(-x); with weights, "
        "the largest exponent taken out",
        "an exponential overflows, or all of them underflow",
        _HIGHAM,
    ),
    _Row(
        "log-of-difference",
        "log(exp(x) - exp(y)), log(exp(x) - 1)",
        "ops.log_sub_exp(x, y), ops.log_expm1(x)",
        "an exponential overflows, or the two nearly cancel",
        _MAECHLER,
    ),
    _Row(
        "log-of-cosh",
        "log(cosh(x)), log(exp(x) + exp(-x))",
        "ops.log_cosh(x)",
        "|x| is above 89 (11 in float16), or small",
        "tfsafe.ops.log_cosh",
    ),
    _Row(
        "log-of-erfc",
        "log(erfc(x)), log(1 - erf(x))",
        "ops.log_erfc(x)",
        "x is above 10",
        "tfsafe.ops.log_erfc",
    ),
)

_LOG_RULES = tuple(
    Rule(*row, op_types=("Log", "Log1p", "Xlogy", "Xlog1py"), match=_match(row.name))
    for row in _ROWS
)

# Those for larger formulas come before those for their parts.
RULES = (
    *exponentials.RULES,
    *log_space.RULES,
    *_LOG_RULES,
    *entropies.RULES,
)
