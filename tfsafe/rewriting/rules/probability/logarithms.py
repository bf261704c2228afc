"""Rules for logarithms of probabilities and of exponentials."""

from typing import Any, get_args

import tensorflow as tf

from tfsafe.ops.formulas.out_of_range.weighted_exponentials import weighted_log
from tfsafe.rewriting.engine.rule import Build, Match, Rule
from tfsafe.rewriting.facts.tensors import Reader
from tfsafe.rewriting.log_space import near_one
from tfsafe.rewriting.log_space.analysis import Logarithms, logarithms
from tfsafe.rewriting.log_space.form import Factored, LogRule, in_float32
from tfsafe.rewriting.rules import references
from tfsafe.rewriting.rules.probability import (
    entropies,
    exponentials,
    likelihoods,
    log_space,
    recurrences,
)


def _found(op: tf.Operation, logs: Logarithms) -> Factored | None:
    """Factors what an operation takes the logarithm of."""
    x = op.inputs[-1]
    if op.type in {"Log", "Xlogy"}:
        return logs.of(x)
    return logs.one_plus(x)


def _match(name: LogRule) -> Match:
    def match(op: tf.Operation, reader: Reader) -> Build | None:
        found = _found(op, logarithms(reader))
        if found is None or found.name != name:
            return None
        dtype = op.outputs[0].dtype
        log: Build = found.whole_log
        if op.type != "Log1p":
            log = near_one.whole_log(op.inputs[-1], found, logarithms(reader))
        if len(op.inputs) == 1:
            return in_float32(log, dtype)
        weight = op.inputs[0]
        return in_float32(lambda value: weighted_log(value(weight), log(value)), dtype)

    return match


def _row(name: LogRule, **row: Any) -> Rule:
    types = ("Log", "Log1p", "Xlogy", "Xlog1py")
    return Rule(name=name, op_types=types, match=_match(name), **row)


_LOG_RULES = (
    _row(
        "log-of-softmax",
        before="log(softmax(x)), log(exp(x) / sum(exp(x)))",
        after="ops.log_softmax(x)",
        fails_when="a logit trails the largest by more than 103 (17 in float16)",
        reference=references.LOGSUMEXP,
    ),
    _row(
        "log-of-sigmoid",
        before="log(sigmoid(x)), log(1 / (1 + exp(-x)))",
        after="ops.log_sigmoid(x)",
        fails_when="x is below -103 or above 17 (-17 and 8 in float16)",
        reference=references.COMPLEMENT,
    ),
    _row(
        "log-of-complement",
        before="log(1 - p) of a softmax, a sigmoid, a tanh or an exponential p",
        after="ops.log_sigmoid(-x), ops.log1mexp(log p), -2 ops.log_cosh(x)",
        fails_when="p rounds to 1",
        reference=references.COMPLEMENT,
    ),
    _row(
        "log-of-guarded-probability",
        before="log(p + 1e-7), log(clip(p, 1e-7, 1 - 1e-7)), log(max(p, 1e-7))",
        after="log p in its stable form; the guard's log where p is exactly 0. The "
        "bias of the guard goes",
        fails_when="p is near the guard or below: the value is off, the slope small or "
        "0",
        reference="the guarded formula without its guard, which is finite by itself",
        removes_bias=True,
    ),
    _row(
        "log-of-exp",
        before="log(exp(x))",
        after="x",
        fails_when="exp(x) overflows or underflows",
        reference="identity",
    ),
    _row(
        "log-of-product",
        before="log(a * b), log(prod(a)) of exponentials and probabilities",
        after="log(a) + log(b), sum(log(a))",
        fails_when="the product underflows or overflows",
        reference="identity",
    ),
    _row(
        "log-of-ratio",
        before="log(a / b) of exponentials and probabilities",
        after="log(a) - log(b)",
        fails_when="a, b or the quotient underflows or overflows",
        reference="identity",
    ),
    _row(
        "log-of-odds",
        before="log(p / (1 - p)) of a sigmoid p of x",
        after="x",
        fails_when="p rounds to 0 or to 1",
        reference="identity",
    ),
    _row(
        "log-of-power",
        before="log(a ** k), log(sqrt(a)) of exponentials and probabilities",
        after="k * log(a)",
        fails_when="a or the power underflows or overflows",
        reference="identity",
    ),
    _row(
        "log-of-sum",
        before="log(sum(exp(x))), log(exp(x) + exp(y)), log(1 + exp(x)), "
        "log(sum(w * exp(x)))",
        after="ops.logsumexp(x), ops.log_add_exp(x, y), -ops.log_sigmoid(-x); with "
        "weights, the largest exponent taken out",
        fails_when="an exponential overflows, or all of them underflow",
        reference=references.LOGSUMEXP,
    ),
    _row(
        "log-of-difference",
        before="log(exp(x) - exp(y)), log(exp(x) - 1)",
        after="ops.log_sub_exp(x, y), ops.log_expm1(x)",
        fails_when="an exponential overflows, or the two nearly cancel",
        reference=references.COMPLEMENT,
    ),
    _row(
        "log-of-cosh",
        before="log(cosh(x)), log(exp(x) + exp(-x))",
        after="ops.log_cosh(x)",
        fails_when="|x| is above 89 (11 in float16), or small",
        reference="tfsafe.ops.log_cosh",
    ),
    _row(
        "log-of-erfc",
        before="log(erfc(x)), log(1 - erf(x)), log(1 - cdf(x)), log(erf(x) - erf(y))",
        after="ops.log_erfc(x)",
        fails_when="x is above 10",
        reference="tfsafe.ops.log_erfc",
    ),
    _row(
        "log-of-softplus",
        before="log(softplus(x))",
        after="x + log1p(...) of the power series where x is below -5",
        fails_when="x is below -103 (-17 in float16)",
        reference="power series of log(log1p(u) / u)",
    ),
    _row(
        "log-of-bessel",
        before="log(bessel_i0(x)), log(bessel_i1(x))",
        after="log(bessel_i0e(x)) + |x|, with the slope bessel_i1e(x) / bessel_i0e(x)",
        fails_when="|x| is above 91 (13 in float16)",
        reference="Abramowitz and Stegun, Handbook of Mathematical Functions, 9.7.1",
    ),
    _row(
        "log-of-determinant",
        before="log(abs(det(x)))",
        after="ops.slogdet(x)[1]",
        fails_when="the determinant overflows or underflows",
        reference="tfsafe.ops.slogdet",
    ),
)
# `Factored` says by such a name which rule takes its logarithm.
if {rule.name for rule in _LOG_RULES} != set(get_args(LogRule)) - {""}:
    raise ValueError("`LogRule` and the rules for logarithms name different rules.")

# Those for larger formulas come before those for their parts.
RULES = (
    *exponentials.RULES,
    *recurrences.RULES,
    *log_space.RULES,
    *_LOG_RULES,
    *likelihoods.RULES,
    *entropies.RULES,
)
