"""One test a row: what each rule says, and that it is silent where it does not hold."""

import re

import numpy as np
import pytest
import tensorflow as tf

import tfsafe
from tfsafe.debugging.explain import causes
from tfsafe.debugging.explain.evidence import Evidence
from tfsafe.debugging.explain.suggestions import choice, source_names
from tfsafe.debugging.tracing.provenance import (
    PRODUCT_WITH_ZERO as ZERO,
    QUOTIENT_OF_BOTH as BOTH,
    QUOTIENT_OF_OTHERS as OTHERS,
)

INF = np.inf
READ = "ReadVariableOp"


def cause(op, inputs, output, dtype="float32"):
    slope_of, _, op = op.rpartition("/")
    arrays = [np.asarray(each, np.float64) for each in inputs]
    value = np.asarray(output, np.float64)
    evidence = Evidence(arrays, value, ~np.isfinite(value), dtype, slope_of=slope_of)
    return causes.cause_of(op, evidence)[0]


NAN = np.nan
ROWS = [
    ("RealDiv", [[1, 2], [0, 1]], [INF, 2], "1 zero in the denominator (at (0,))."),
    (
        "Div",
        [[1, 2], [0, 0]],
        [INF, INF],
        "2 zeros in the denominator (the first at (0,)).",
    ),
    ("Xdivy", [[1], [0]], [INF], "1 zero in the denominator (at (0,))."),
    (
        "RealDiv",
        [[1e30], [1e-30]],
        [INF],
        "the quotient overflows float32 above 3.403e+38; the inputs reach 1e+30 and "
        "1e-30.",
    ),
    (
        "RealDiv",
        [[1e30, 2000.0], [1.0, 1.5e-38]],
        [1e30, INF],
        "2000 / 1.5e-38 overflows float32 above 3.403e+38 (at (1,)).",
    ),
    (
        "LookupTableFindV2",
        [[-1]],
        [INF],
        "the table that it reads holds it.",
    ),
    ("Reciprocal", [[0, 1]], [INF, 1], "the reciprocal of 1 zero (at (0,))."),
    ("Inv", [[0, 1]], [INF, 1], "the reciprocal of 1 zero (at (0,))."),
    (
        "Log",
        [[0, -1, -2, 3]],
        [-INF, NAN, NAN, 1],
        "log of 1 zero and 2 negative numbers (the first at (0,)).",
    ),
    ("Log", [[1, -1]], [0, NAN], "log of 1 negative number (at (1,))."),
    (
        "Log1p",
        [[-1, -2]],
        [-INF, NAN],
        "log1p of 1 number equal to -1 and 1 number below -1 (the first at (0,)).",
    ),
    (
        "Xlogy",
        [[1, 0], [0, 0]],
        [-INF, 0],
        "log of 1 zero with a weight other than 0 (at (0,)).",
    ),
    ("Xlogy", [[1], [-1]], [NAN], "log of 1 negative number (at (0,))."),
    ("Xlog1py", [[1], [-1]], [-INF], "log1p of 1 number of at most -1 (at (0,))."),
    ("Sqrt", [-2.0], NAN, "sqrt of 1 negative number."),
    (
        "Rsqrt",
        [[0, -1]],
        [INF, NAN],
        "1/sqrt of 1 zero and 1 negative number (the first at (0,)).",
    ),
    (
        "SqrtGrad",
        [[0, 1], [2, 1]],
        [INF, 1],
        "the slope of sqrt is infinite at 0: 1 zero under the root (at (0,)), where "
        "the incoming gradient is 2.",
    ),
    (
        "Exp",
        [[92, 1]],
        [INF, 1],
        "exp overflows float32 above 88.72; the largest input is 92 (at (0,)).",
    ),
    (
        "Expm1",
        [[92, 1]],
        [INF, 1],
        "expm1 overflows float32 above 88.72; the largest input is 92 (at (0,)).",
    ),
    (
        "Sinh",
        [92.0],
        INF,
        "sinh overflows float32 above 88.72; the largest input is 92.",
    ),
    (
        "Cosh",
        [92.0],
        INF,
        "cosh overflows float32 above 88.72; the largest input is 92.",
    ),
    ("Pow", [[0], [-1]], [INF], "0 to the power -1 is infinite (at (0,))."),
    (
        "Pow",
        [[-8], [0.5]],
        [NAN],
        "the negative number -8 to the power 0.5, which is not a whole number "
        "(at (0,)).",
    ),
    (
        "Pow",
        [[1e20], [2]],
        [INF],
        "the power overflows float32 above 3.403e+38; the inputs reach 1e+20 and 2.",
    ),
    ("Asin", [[2, 0]], [NAN, 0], "asin of 1 number outside [-1, 1] (at (0,))."),
    (
        "Acos",
        [[2, -2]],
        [NAN, NAN],
        "acos of 2 numbers outside [-1, 1] (the first at (0,)).",
    ),
    ("Acosh", [[0.5]], [NAN], "acosh of 1 number below 1 (at (0,))."),
    ("Atanh", [[1]], [INF], "atanh of 1 number outside (-1, 1) (at (0,))."),
    ("Erfinv", [[0, -1]], [0, -INF], "erfinv of 1 number outside (-1, 1) (at (1,))."),
    (
        "Ndtri",
        [[0, 0.5, 1]],
        [-INF, 0, INF],
        "ndtri of 2 numbers outside (0, 1) (the first at (0,)).",
    ),
    (
        "Lgamma",
        [[0, 1, -2]],
        [INF, 0, INF],
        "lgamma of 2 numbers, 0 or negative and whole, where it has poles (the first "
        "at (0,)).",
    ),
    (
        "Digamma",
        [[-0.5, 0]],
        [0, NAN],
        "digamma of 1 number, 0 or negative and whole, where it has a pole (at (1,)).",
    ),
    ("Mul", [[0], [INF]], [NAN], "0 * inf is NaN (at (0,))."),
    ("Mul", [[0], [-INF]], [NAN], "0 * -inf is NaN (at (0,))."),
    (
        "Mul",
        [[1e30], [2e30]],
        [INF],
        "the product overflows float32 above 3.403e+38; the inputs reach 1e+30 and "
        "2e+30.",
    ),
    (
        "Mul",
        [[1e30], [1e30]],
        [INF],
        "the product overflows float32 above 3.403e+38; the inputs reach 1e+30.",
    ),
    ("AddV2", [[INF], [-INF]], [NAN], "inf - inf is NaN (at (0,))."),
    ("Add", [[INF], [-INF]], [NAN], "inf - inf is NaN (at (0,))."),
    ("Sub", [[INF], [INF]], [NAN], "inf - inf is NaN (at (0,))."),
    ("Mean", [np.zeros([0, 2])], [NAN, NAN], "the mean of an empty set."),
    ("Max", [np.zeros([0])], -INF, "the maximum of an empty set."),
    ("Min", [np.zeros([0])], INF, "the minimum of an empty set."),
    (
        "Softmax",
        [[[-INF, -INF], [0, 1]]],
        [[NAN, NAN], [0, 1]],
        "1 row of only -inf (at (0,)).",
    ),
    ("LogSoftmax", [[[INF, 0]]], [[NAN, -INF]], "1 logit is +inf (at (0, 0))."),
    ("Tanh", [[1, INF]], [1, NAN], "input 0: from 1 to 1 and +Inf."),
    ("Exotic", [[1, 3], [2]], [NAN, 1], "input 0: from 1 to 3; input 1: from 2 to 2."),
    ("Exotic", [], NAN, ""),
    (
        "StatefulPartitionedCall",
        [],
        NAN,
        "the tf.function called here changes variables, so it cannot be replayed.",
    ),
    (
        "Cholesky",
        [[[1, 2], [2, 1]]],
        [[NAN, NAN], [NAN, NAN]],
        "the matrix has the eigenvalue -1, and so no Cholesky factor.",
    ),
    (
        "Cholesky",
        [[[[4, 0], [0, 1]], [[1, 1], [1, 1]]]],
        [[[2, 0], [0, 1]], [[NAN, NAN], [NAN, NAN]]],
        "the matrix is singular.",
    ),
]
SLOPES = [
    ("Acos/Reciprocal", "acos is infinite at -1 and 1"),
    ("Asin/Reciprocal", "asin is infinite at -1 and 1"),
    ("Atanh/Reciprocal", "atanh is infinite at -1 and 1"),
    ("Acosh/RealDiv", "acosh is infinite at 1"),
    ("Log/Reciprocal", "log is infinite at 0"),
    ("Log1p/Reciprocal", "log1p is infinite at -1"),
    ("Atan2/RealDiv", "atan2 is not defined at the origin"),
    ("EuclideanNorm/RealDiv", "a norm is not defined at 0"),
]
OVERFLOWS = [
    ("Square", "the square"),
    ("SquaredDifference", "the square"),
    ("MatMul", "a sum of products"),
    ("BatchMatMulV2", "a sum of products"),
    ("Conv2D", "a sum of products"),
    ("AddV2", "the sum"),
    ("Sub", "the difference"),
    ("Sum", "the sum"),
    ("Mean", "the sum inside the mean"),
    ("Prod", "the product"),
    ("EuclideanNorm", "the sum of squares"),
    ("Cast", "the value"),
    ("Exotic", "the result"),
]


@pytest.mark.parametrize(("op", "inputs", "output", "text"), ROWS)
def test_a_rule_says_what_is_wrong_with_the_inputs(op, inputs, output, text):
    assert cause(op, inputs, output) == text


@pytest.mark.parametrize(("op", "slope"), SLOPES)
def test_a_gradient_that_divides_by_zero_is_explained_by_its_function(op, slope):
    divided = [[1, 2, 3], [0, 1, 0]] if op.endswith("Div") else [[0, 1, 0]]
    where = "2 arguments are there (the first at (0,))."
    assert cause(op, divided, [INF, 1, INF]) == f"the slope of {slope}: {where}"


@pytest.mark.parametrize(("op", "what"), OVERFLOWS)
def test_an_overflow_is_reported_with_the_limit_of_the_dtype(op, what):
    text = cause(op, [[-300.0, 2.0]], [INF, 1.0], "float16")
    assert text == f"{what} overflows float16 above 6.55e+04; the inputs reach 300."


@pytest.mark.parametrize("op", ["MatMul", "BatchMatMulV2", "Conv2D", "Sum"])
def test_a_sum_that_overflows_both_ways_is_an_overflow(op):
    text = cause(op, [[-3e38, 3e38]], [INF, NAN])
    assert text.endswith("overflows float32 above 3.403e+38; the inputs reach 3e+38.")
    assert not cause(op, [[INF, -INF]], [INF, NAN]).startswith("the sum overflows")


def test_whole_numbers_have_no_statistics():
    evidence = Evidence(
        [np.array([1, 2]), np.array([0.5])],
        np.array([NAN]),
        np.array([True]),
        "float32",
    )
    assert causes.cause_of("Exotic", evidence)[0] == "input 1: from 0.5 to 0.5."


def test_every_row_of_the_table_has_a_test():
    tested = {op for op, *_ in [*ROWS, *SLOPES, *OVERFLOWS]}
    # A label that is no class is tested with the losses, a text with the data.
    elsewhere = {"label", "negative label", "text"}
    rules = {rule.op for rule in causes.RULES if rule.fault not in elsewhere}
    assert rules - {"*"} <= tested


@pytest.mark.parametrize(
    ("op", "inputs", "output"),
    [
        ("Mul", [[1.0, 2.0, 3.0]], [NAN]),
        ("Mul", [[1, 2, 3], [1, 2, 3]], [NAN]),
        ("Pow", [[1, 2, 3], [1, 2, 3]], [NAN]),
        ("Sub", [[1], [1]], [NAN]),
        ("SqrtGrad", [[1], [1]], [NAN]),
        ("Softmax", [[1, 2]], [NAN, 1]),
        ("RealDiv", [[1]], [NAN]),
        ("Exp", [[1]], [NAN]),
        ("Cholesky", [[[2, 1], [1, 2]]], [[NAN, NAN], [NAN, NAN]]),
        ("Cholesky", [[[NAN, 1], [1, 1]]], [[NAN, NAN], [NAN, NAN]]),
    ],
)
def test_a_rule_that_does_not_hold_leaves_the_statistics(op, inputs, output):
    assert cause(op, inputs, output).startswith("input 0: from 1 to")


def fix_of(op, source="", *, fault="domain", **facts):
    known = {"is_gradient": False, "dtype": "float32", "producers": [], **facts}
    return choice.fix_of(choice.Failure(op=op, source=source, fault=fault, **known))


def code_of(op, source, **facts):
    return fix_of(op, source, **facts).code


@pytest.mark.parametrize(
    ("op", "source", "code"),
    [
        ("RealDiv", "return (x - mean) / std", "tfsafe.ops.divide(x - mean, std)"),
        ("RealDiv", "y = tf.divide(a, b[0])", "tfsafe.ops.divide(a, b[0])"),
        ("RealDiv", "y = a / b / c", ""),
        ("RealDiv", "y = tf.reduce_mean(x)", ""),
        ("RealDiv", "] + f(", ""),
        ("RealDiv", "", ""),
        ("RealDiv", "if (a / b) > 3:", "tfsafe.ops.divide(a, b)"),
        ("Log", "return -tf.math.log(p + q)", ""),
        ("Rsqrt", "tf.math.rsqrt(v)", "tfsafe.ops.rsqrt(v)"),
        ("Atan2", "angle = tf.atan2(dy, dx)", "tfsafe.ops.atan2(dy, dx)"),
        ("Xlogy", "tf.math.xlogy(p, q)", ""),
        ("Rsqrt", "y = x * tf.math.rsqrt(v)", "tfsafe.ops.rsqrt(v)"),
        ("Exp", "tf.exp(x)", ""),
    ],
)
def test_the_line_to_paste_has_the_names_of_the_users_line(op, source, code):
    assert code_of(op, source) == code


def test_a_gradient_has_a_suggestion_of_its_own():
    assert code_of("Log", "tf.math.log(p)", is_gradient=True) == "tfsafe.ops.log(p)"
    assert code_of("Sqrt", "tf.sqrt(p)", is_gradient=True) == "tfsafe.ops.sqrt(p)"
    power = code_of("Pow", "return (a + b) ** c", is_gradient=True)
    assert power == "tfsafe.ops.pow(a + b, c)"


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ("return -tf.math.log(p + q)", ""),
        ("y = w[0] * tf.math.log(p)", "tfsafe.ops.xlogy(w[0], p)"),
        ("y = tf.math.log(p) * (a + b)", "tfsafe.ops.xlogy(a + b, p)"),
        ("y = w * tf.math.log(p) + v * tf.math.log(q)", ""),
    ],
)
def test_a_logarithm_times_nothing_is_reported_with_its_weight(source, code):
    assert code_of("Log", source, met_next=[(ZERO,), (ZERO, "Sum")]) == code


@pytest.mark.parametrize(
    ("met_next", "code"),
    [
        ([(BOTH,), ("Sum",)], "tfsafe.ops.softmax(s, axis=-1)"),
        ([(BOTH, "Log")], "tfsafe.ops.log_softmax(s, axis=-1)"),
        ([("Sum",), ("Sum", "Log")], "tfsafe.ops.logsumexp(s, axis=-1)"),
        ([(OTHERS,), ("Sum",)], ""),
        ([(OTHERS, "Log")], ""),
        ([(BOTH, "Log"), ("AddV2", BOTH, "Log")], ""),
        ([("RealDiv",)], ""),
        ([], ""),
    ],
)
def test_what_follows_an_exponential_says_what_it_was_for(met_next, code):
    source = "p = tf.exp(s) / tf.reduce_sum(tf.exp(s), -1)"
    assert code_of("Exp", source, fault="overflow", met_next=met_next) == code


@pytest.mark.parametrize(
    ("op", "source", "fault", "producers", "words"),
    [
        ("RealDiv", "x / scale", "domain", ["Mul", READ], "begin with 'ones'"),
        ("Log", "tf.math.log(x)", "negative", [READ], "train its logarithm"),
    ],
)
def test_a_variable_is_told_how_to_begin_or_to_stay_positive(
    op, source, fault, producers, words
):
    assert words in fix_of(op, source, fault=fault, producers=producers).words
    # The variable that is divided is not the one that is 0.
    others = [*producers[1:], "Mul"]
    assert words not in fix_of(op, source, fault=fault, producers=others).words


@pytest.mark.parametrize(
    ("source", "scope", "code"),
    [
        ("y = tf.norm(a - b, axis=1)", "norm", "tfsafe.ops.norm(a - b, axis=1)"),
        ("y = tf.norm(a - b, axis=1)", "", "tfsafe.ops.norm(a - b, axis=1)"),
        ("y = tf.math.reduce_std(x)", "", "tfsafe.ops.std(x)"),
        ("y = keras.ops.std(x, 0)", "reduce_std", "tfsafe.ops.std(x, 0)"),
        ("y = (tf.norm(", "", ""),
        ("y = tf.norm(x) - tf.norm(y)", "", ""),
        ("z, _ = tf.linalg.normalize(v)", "normalize", "tfsafe.ops.normalize(v)"),
        ("y = tf.norm(x) + tf.sqrt(z)", "net/norm_1", "tfsafe.ops.norm(x)"),
        ("y = tf.norm(x) + tf.sqrt(z)", "net", "tfsafe.ops.sqrt(z)"),
        ("y = self.norm_layer(tf.sqrt(z))", "norm", "tfsafe.ops.sqrt(z)"),
    ],
)
def test_a_root_within_a_function_is_fixed_as_that_function(source, scope, code):
    assert code_of("Sqrt", source, is_gradient=True, scope=scope) == code


def test_the_operation_before_leads_to_a_better_suggestion():
    log = "return tf.math.log(tf.nn.softmax(scores))"
    expected = "tfsafe.ops.log_softmax(scores)"
    assert code_of("Log", log, producers=["Softmax"]) == expected
    code, words, *_ = fix_of("Log", "tf.math.log(p)", producers=["Sigmoid"])
    assert not code
    assert words.startswith("tfsafe.ops.log_sigmoid(logits) takes the logits")


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"fault": "overflow"}, "scale the inputs down, lower the learning rate"),
        ({"fault": "overflow", "dtype": "float16"}, "compute this part in float32"),
        ({"fault": "unknown"}, "until the cause is found"),
        ({"fault": "constant"}, ""),
    ],
)
def test_a_failure_without_a_row_of_its_own_gets_advice_by_its_kind(facts, words):
    code, told, *_ = fix_of("RealDiv", "x / y", **facts)
    assert not code
    assert told.startswith(words) or words in told
    assert bool(told) == bool(words)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("model.fit(x, y)", "an exponential activation needs small arguments: scale"),
        ("y = tf.math.log(1 + tf.exp(x))", "computes log(1 + exp(x))"),
        ("e = tf.exp(x)", "log(1 + exp(x)) is tf.nn.softplus(x)"),
        ("y = tf.math.log(a + tf.exp(x))", "computes the logarithm of this sum"),
    ],
)
def test_the_activation_of_a_layer_is_no_part_of_a_formula_by_hand(source, words):
    path = ("AddV2", "Log")
    told = fix_of("Exp", source, fault="overflow", met_next=[path]).words
    assert told.startswith(words)


@pytest.mark.parametrize("row", choice.FIXES, ids=lambda row: f"{row.op}-{row.words}")
def test_every_suggestion_can_be_reached(row):
    written = "y = tf.cast(-1e9, t) - tf.cos(tf.sin(x)) + tf.atan(a / b) / (1 - p)"
    name = "sigmoid" if "sigmoid" in row.code else "exp"
    activation = "softmax" if "softmax" in row.code else "sigmoid"
    shown = {
        "Exp": "tf.math.unsorted_segment_sum(tf.exp(x), i, n)",
        "Log": f"tf.math.log(1 - tf.{name}(x))",
        "{inner}": f"tf.math.log(tf.nn.{activation}(x))",
        "{exponent}": "tf.math.log(sum(tf.exp(x))) + tf.exp(x) / sum(tf.exp(x))",
        "{of_softmax}": "tf.math.log(tf.exp(x) / tf.reduce_sum(tf.exp(x), -1))",
        "{own_weight}": "p * tf.math.log(p)",
        "{expanded}": "p * (tf.math.log(p) - q)",
        "{bound}": "tf.minimum(x, c) / x",
    }
    for function in ("average", "erf", "exp", "reduce_mean"):
        if f"b{function}" in row.written:
            written = f"y = tf.{function}(x)"
    added = {"{beside_one}": "1", "{log_added}": "a"}
    samples = (
        *("y = p / (1 - p)", "y = m / (1 - beta**t)", "y = x * np.inf"),
        *("y = x / tf.sqrt(v + 1e-8)", "y = tf.math.log(mask)"),
        "y = tf.math.log(p) - tf.math.log(1 - p)",
        "y * tf.math.log(p) + (1 - y) * tf.math.log(1 - p)",
        *("y = tf.exp(x) / (a + tf.exp(x))", "y = tf.exp(x) / (1 + tf.exp(x))"),
        "y = tf.math.log(tf.exp(x) - 1)",
    )
    for sample in samples:
        if not re.search(row.written, written):
            written = sample
    if row.written.endswith(".*log"):
        written = "y = tf.exp(log_p - log_q)"
    if row.is_read:
        fields = [each for each in shown if each in row.code]
        written = shown[fields[0] if fields else row.op]
    for field in filter(row.code.__contains__, added):
        written = f"y = tf.math.log({added[field]} + tf.exp(x))"
    facts = {
        "fault": row.fault or "domain",
        "is_gradient": row.when == "gradient",
        "producers": [row.source, row.last],
        "met_next": [(*row.met_next, row.met_later)],
        "dtype": row.dtype or "float32",
        "kind": row.kind,
        "source": written if row.written or row.is_read else "",
        "zero": row.zero,
        "above_one": row.above_one,
    }
    mends = f" {choice.REWRITES}" if row.is_rewritten else ""
    words = row.in_dtype(str(facts["dtype"])).words
    words = source_names.in_words(row.op, words) + mends
    if row.written.endswith(".*log"):
        words = words.replace("(x,", "(log_p - log_q,")
    assert fix_of(row.op, **facts).words.endswith(words)


def test_code_has_no_names_that_the_user_does_not_have():
    code, words, *_ = fix_of("RealDiv", "y = self.scale(a)")
    assert not code
    assert words.startswith("tfsafe.ops.divide(numerator, denominator) returns 0")


def test_the_kind_of_the_fault_is_reported_with_the_cause():
    def fault(op, inputs, output):
        arrays = [np.asarray(each, np.float64) for each in inputs]
        value = np.asarray(output, np.float64)
        evidence = Evidence(arrays, value, ~np.isfinite(value), "float32")
        return causes.cause_of(op, evidence)[1]

    assert fault("RealDiv", [[1], [0]], [INF]) == "domain"
    assert fault("RealDiv", [[1e30], [1e-30]], [INF]) == "overflow"
    assert fault("RealDiv", [[1e3], [1e-37]], [INF]) == "tiny"
    assert fault("Mul", [[0.0], [INF]], [NAN]) == "zero first"
    assert fault("Mul", [[INF], [0.0]], [NAN]) == "domain"
    assert fault("Tanh", [[INF]], [NAN]) == "unknown"
    for op in ("Log", "Rsqrt"):
        assert fault(op, [[0, 1]], [INF, 1]) == "domain"
        assert fault(op, [[0, -1]], [INF, NAN]) == "negative"


def test_every_name_that_a_suggestion_recommends_exists():
    text = " ".join(each.code + " " + each.words for each in choice.FIXES)
    text += " ".join([choice.SCALE, choice._SKIP])
    names = {"ops", "losses", "layers", "optimizers"}
    found = 0
    for word in text.replace("(", " ").replace(")", " ").replace(",", " ").split():
        word = word.strip(".;:")
        parts = word.split(".")
        if parts[0] == "tfsafe" and parts[1] in names:
            assert hasattr(getattr(tfsafe, parts[1]), parts[2]), word
            found += 1
        elif parts[0] == "tf" and len(parts) > 1:
            target = tf
            for part in parts[1:]:
                target = getattr(target, part)
            found += 1
    assert found > 20
