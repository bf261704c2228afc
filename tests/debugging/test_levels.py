"""What each level of the checks looks at, what is ignored, and what stays the same."""

import dataclasses
import json

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfsafe
from tests.debugging import programs
from tests.support import modes
from tests.support.oracle import assert_close
from tfsafe import debugging
from tfsafe.debugging.checks import failures, options as _options
from tfsafe.debugging.checks.replayed_call import ReplayedCall

LEVELS = ("watch", "domain", "full")
COMPILED = ("graph", "xla")


@pytest.fixture(params=LEVELS)
def level(request):
    return request.param


@pytest.fixture
def replays(monkeypatch):
    """Counts how often a call is run again."""
    ran = []
    explain = ReplayedCall.explain
    monkeypatch.setattr(
        ReplayedCall, "explain", lambda *args: ran.append(1) or explain(*args)
    )
    return ran


def failure(function, *args):
    with pytest.raises(tfsafe.NumericsError) as caught:
        function(*args)
    return caught.value


def saturates(x):
    return tf.tanh(tf.math.log(x))  # an infinity that reaches no result


@pytest.mark.parametrize("compiled", COMPILED)
def test_what_reaches_no_result_is_no_failure_at_any_level(compiled, level, replays):
    checked = tfsafe.checked(modes.compile_for(compiled, saturates), checks=level)
    assert checked(tf.constant([0.0])).numpy() == [-1.0]
    assert not replays


@pytest.mark.parametrize("compiled", COMPILED)
def test_strict_reports_it_by_flags_and_replays_nothing_else(compiled, level, replays):
    checked = tfsafe.checked(
        modes.compile_for(compiled, saturates), checks=level, strict=True
    )
    assert checked(tf.constant([1.0])).numpy() == [0.0]
    assert not replays
    finding = failure(checked, tf.constant([0.0])).findings[0]
    assert finding.op_type == "Log"
    assert finding.cause == "log of 1 zero (at (0,))."
    assert replays == [1]


def test_domain_leaves_overflow_alone(mode):
    def run(x):
        return tf.math.reciprocal(tf.exp(x))

    x = tf.constant([1e3])
    function = modes.compile_for(mode, run)
    if mode != "eager":
        assert tfsafe.checked(function, checks="domain", strict=True)(x).numpy() == [0]
    finding = failure(tfsafe.checked(function, strict=True), x).findings[0]
    assert finding.op_type == "Exp"


def test_strict_passes_the_constants_that_a_loss_selects_where_it_has_no_value():
    loss = tfsafe.losses.SparseCategoricalCrossentropy()

    @tf.function
    def value(p):
        return loss(tf.constant([0, 1]), p)

    probabilities = tf.constant([[0.25, 0.75], [0.5, 0.5]])
    strict = tfsafe.checked(value, checks="full", strict=True)
    assert_close(strict(probabilities), 1.5 * np.log(2))
    own = tfsafe.checked(
        tf.function(lambda x: tf.where(x > 2.0, np.nan, x)), checks="full", strict=True
    )
    with pytest.raises(tfsafe.NumericsError, match="NaN from `Const`"):
        own(probabilities)


def test_what_made_a_tensor_that_is_gone_is_not_said_of_a_later_one():
    def logarithm(scores):
        for _ in range(1000):
            gone = id(tf.nn.softmax(scores))
            frequency = tf.constant([0.0, 1.0])
            if id(frequency) == gone:
                return tf.math.log(frequency)
        raise AssertionError("no tensor has had the place of another one")

    error = failure(tfsafe.checked(logarithm), tf.constant([1.0, 2.0]))
    finding = error.findings[0]
    assert finding.inputs[0].name != "Softmax"
    assert "log_softmax" not in finding.suggested_code


def test_a_loop_of_tensorflow_1_is_checked_by_its_results(level):
    @tf.function
    def loss(logits):
        labels = tf.constant([[1, 2, 0], [2, 0, 0]])
        lengths = tf.constant([2, 1]), tf.constant([8, 8])
        return tf.nn.ctc_loss(labels, logits, *lengths, False, blank_index=0)

    checked = tfsafe.checked(loss, checks=level)
    logits = tf.random.stateless_normal([2, 8, 4], [1, 2])
    np.testing.assert_array_equal(checked(logits), loss(logits))
    with pytest.raises(tfsafe.NumericsError, match="NaN in output"):
        checked(logits * np.nan)


def test_strict_passes_the_infinity_of_a_mask(mode):
    def weights(x):
        return tf.nn.softmax(tf.where(x < 2.0, -float("inf"), tf.math.log(x)))

    function = modes.compile_for(mode, weights)
    strict = tfsafe.checked(function, checks="full", strict=True)
    assert strict(tf.constant([1.0, 4.0])).numpy().tolist() == [0.0, 1.0]
    finding = failure(strict, tf.constant([0.0, 4.0])).findings[0]
    assert finding.op_type == "Log"


def test_strict_passes_infinities_of_eager_masks_and_sees_what_follows():
    x = tf.constant([1.0, 4.0])
    with debugging.check_numerics(strict=True):
        # More than the session remembers.
        for _ in range(40):
            kept = tf.where(x < 2.0, -float("inf"), x)
        assert tf.nn.softmax(kept).numpy().tolist() == [0.0, 1.0]
        with pytest.raises(tfsafe.NumericsError, match="NaN from `Sub"):
            kept - kept


def test_strict_looks_into_loops_branches_and_gradients():
    @tf.function
    def loop(x):
        return tf.tanh(
            tf.while_loop(
                lambda i, _: i < 3,
                lambda i, y: [i + 1, tf.tanh(tf.math.log(y))],
                [0, x],
            )[1]
        )

    @tf.function
    def branch(x):
        return tf.cond(x > -1.0, lambda: tf.tanh(tf.math.log(x)), lambda: x)

    @tf.function
    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.sqrt(x)
        return tf.atan(tape.gradient(y, x))

    for function, op in [(loop, "Log"), (branch, "Log"), (gradient, "SqrtGrad")]:
        checked = tfsafe.checked(function, strict=True)
        assert failure(checked, tf.constant(0.0)).findings[0].op_type == op
    assert tfsafe.checked(branch, strict=True)(tf.constant(-2.0)).numpy() == -2.0


def test_a_sum_of_finite_numbers_that_overflows_is_looked_into_once(replays):
    @tf.function
    def run(x):
        return tf.reduce_max(x * 1.0)

    checked = tfsafe.checked(run, strict=True)
    x = tf.constant([3e38, 3e38])
    for _ in range(4):
        checked(x)
    # Again the second and the fourth time: there may be another cause by then.
    assert len(replays) == 3


def training(function_level, mode):
    keras.utils.set_random_seed(3)
    tf.random.set_seed(3)
    model = keras.Sequential([
        keras.Input((3,)),
        keras.layers.Dense(4, "relu"),
        keras.layers.Dropout(0.5),
        keras.layers.BatchNormalization(),
        keras.layers.Dense(1),
    ])
    optimizer = keras.optimizers.Adam(0.01)
    optimizer.build(model.trainable_variables)

    def step(x):
        with tf.GradientTape() as tape:
            noise = 0.0 if mode == "xla" else tf.random.normal([4, 3])
            loss = tf.reduce_mean(tf.square(model(x + noise, training=True)))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply(gradients, model.trainable_variables)
        return loss

    function = modes.compile_for(mode, step)
    if function_level:
        function = tfsafe.checked(function, checks=function_level)
    losses = [function(tf.ones([4, 3])).numpy() for _ in range(3)]
    return [*losses, *[np.array(v) for v in [*model.variables, *optimizer.variables]]]


@pytest.mark.parametrize("compiled", COMPILED)
def test_random_numbers_and_state_are_the_same_at_each_level(compiled):
    plain = training(None, compiled)
    # XLA takes seconds to compile each.
    for level in LEVELS if compiled == "graph" else ["domain"]:
        for one, other in zip(plain, training(level, compiled), strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("compiled", COMPILED)
def test_gradients_go_through_at_each_level(compiled, level):
    weight = tf.Variable([3.0])

    @tf.custom_gradient
    def doubled(x):
        return x * 2.0, lambda upstream: upstream * 5.0

    def run(x):
        return {"y": doubled(x) * weight**2, "none": None}

    checked = tfsafe.checked(modes.compile_for(compiled, run), checks=level)
    x = tf.constant([2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        result = checked(x)
    assert result["none"] is None
    found = tape.gradient(result["y"], [x, weight])
    assert [each.numpy().tolist() for each in found] == [[45.0], [24.0]]


def test_ragged_sparse_and_nested_results_come_out_at_each_level(level):
    @tf.function
    def run(ragged, sparse, *, flag):
        assert flag
        return [ragged * 2.0], {"s": tf.sparse.map_values(tf.abs, sparse), "n": None}

    checked = tfsafe.checked(run, checks=level)
    (ragged,), rest = checked(
        tf.ragged.constant([[1.0], [2.0, 3.0]]),
        tf.sparse.from_dense([0.0, -2.0]),
        flag=1,
    )
    assert ragged.to_list() == [[2.0], [4.0, 6.0]]
    assert rest["s"].values.numpy().tolist() == [2.0]
    assert rest["n"] is None


@pytest.mark.parametrize("way", ["argument", "captured"])
def test_a_function_that_advances_an_iterator_is_explained(way, level):
    data = iter(
        tf.data.Dataset.from_tensor_slices([[1.0, 2.0], [3.0, 0.0], [5.0, 6.0]])
    )

    @tf.function
    def run(iterator=None):
        x = next(data if iterator is None else iterator)
        return tf.math.log(x)

    checked = tfsafe.checked(run, checks=level)
    args = [data] if way == "argument" else []
    checked(*args)
    finding = failure(checked, *args).findings[0]
    assert finding.cause == "log of 1 zero (at (1,))."
    assert finding.site.source == "return tf.math.log(x)"
    # The batch that failed is gone.
    assert checked(*args).numpy().tolist() == np.log(np.float32([5.0, 6.0])).tolist()


def test_a_nonfinite_element_of_a_dataset_is_named():
    data = iter(tf.data.Dataset.from_tensors([1.0, np.nan]))
    checked = tfsafe.checked(tf.function(lambda each: next(each) * 2.0))
    finding = failure(checked, data).findings[0]
    assert finding.origin == "an element of the dataset"
    assert finding.index == (1,)


@pytest.mark.parametrize("is_strict", [False, True])
def test_of_an_element_with_several_parts_the_part_is_named(is_strict):
    data = tf.data.Dataset.from_tensors((1.0, {"age": 3.0, "income": np.nan}))

    def step(iterator):
        y, x = next(iterator)
        return y * x["age"] + x["income"]

    if is_strict:
        with tfsafe.check_numerics(strict=True):
            error = failure(step, iter(data))
    else:
        error = failure(tfsafe.checked(tf.function(step)), iter(data))
    assert error.findings[0].origin == "component 2 of an element of the dataset"


def test_random_numbers_without_a_seed_are_kept_for_the_second_run():
    @tf.function
    def run(x):
        return tf.math.log(x * tf.random.uniform([2]))

    assert failure(tfsafe.checked(run), tf.zeros([2])).findings[0].op_type == "Log"


def in_a_loop(iterator):
    total = 0.0
    for _ in tf.range(3):
        total += tf.math.log(next(iterator))
    return total


@pytest.mark.parametrize("flags", ["domain", "full"])
def test_what_cannot_be_run_again_is_named_by_its_flag(flags):
    data = iter(tf.data.Dataset.from_tensor_slices([1.0, 0.0]).repeat())
    checked = tfsafe.checked(tf.function(in_a_loop), checks=flags)
    finding = failure(checked, data).findings[0]
    assert (finding.op_type, finding.kind) == ("Log", "NaN or Inf")
    assert finding.site.source == "total += tf.math.log(next(iterator))"
    words = " ".join(str(finding).split())
    assert "`IteratorGetNext` cannot be run a second time" in words


def test_without_flags_the_error_says_how_to_get_them():
    data = iter(tf.data.Dataset.from_tensor_slices([1.0, 0.0]).repeat())
    error = failure(tfsafe.checked(tf.function(in_a_loop)), data)
    words = " ".join(str(error).split())
    assert 'With checks="full" the operation is named all the same.' in words


def masked(x):
    return tf.math.log(x) + tf.sqrt(x)  # the line to exclude


RULES = ["op:Log", "op:L?g", "name:*Log", f"line:{__file__}", "line:test_levels.py"]


@pytest.mark.parametrize("rule", RULES)
def test_what_is_ignored_is_no_failure(rule, mode):
    if mode == "eager" and rule.startswith("name"):
        pytest.skip("eager operations have no names")
    checked = tfsafe.checked(modes.compile_for(mode, masked), exclude=[rule])
    assert np.isneginf(checked(tf.constant(0.0)).numpy())
    if rule.startswith("op"):
        assert failure(checked, tf.constant(-1.0)).findings[0].op_type == "Sqrt"


def test_a_line_is_ignored_by_its_number(mode):
    line = masked.__code__.co_firstlineno + 1
    function = modes.compile_for(mode, masked)
    x = tf.constant(0.0)
    tfsafe.checked(function, exclude=[f"line:test_levels.py:{line}"])(x)
    failure(tfsafe.checked(function, exclude=[f"line:levels.py:{line}"]), x)
    failure(tfsafe.checked(function, exclude=[f"line:test_levels.py:{line + 1}"]), x)


def test_a_layer_is_ignored_by_its_scope(mode):
    class Bad(keras.layers.Layer):
        def call(self, x):
            return tf.math.log(x)

    model = keras.Sequential([keras.Input((1,)), Bad(name="bad"), Bad(name="worse")])
    function = modes.compile_for(mode, lambda x: model(x))
    x = tf.zeros([1, 1])
    assert np.isnan(tfsafe.checked(function, exclude=["name:*/bad*"])(x)).all()
    failure(tfsafe.checked(function, exclude=["name:*/worse*"]), x)


@pytest.mark.parametrize("flags", ["domain", "full"])
def test_an_ignored_operation_has_no_flag(flags, replays):
    checked = tfsafe.checked(
        tf.function(saturates), checks=flags, strict=True, exclude=["op:Log"]
    )
    checked(tf.constant(0.0))
    assert not replays


def test_an_ignored_failure_keeps_what_the_call_wrote_and_costs_few_replays(replays):
    total = tf.Variable(0.0)

    @tf.function
    def run(x):
        total.assign_add(1.0)
        return tf.math.log(x)

    checked = tfsafe.checked(run, exclude=["op:Log"])
    for _ in range(16):
        assert np.isneginf(checked(tf.constant(0.0)).numpy())
    assert total.numpy() == 16.0
    assert len(replays) == 5


def test_a_rule_matches_the_forward_operation_of_a_gradient(mode):
    function = modes.compile_for(mode, programs.backward_nan)
    failure(tfsafe.checked(function, exclude=["op:Log"]), programs.X)
    assert np.isnan(tfsafe.checked(function, exclude=["op:Sqrt"])(programs.X)).any()


def test_the_way_to_the_result_is_reported(mode):
    def run(x):
        low = tf.math.log(x)
        doubled = low * 2.0
        return tf.reduce_sum(doubled), x

    error = failure(
        tfsafe.checked(modes.compile_for(mode, run)), tf.constant([0.0, 1.0])
    )
    chain = error.findings[0].chain
    assert [each.op_type for each in chain] == ["Log", "Mul", "Sum", ""]
    assert [each.count for each in chain] == [1, 1, 1, 1]
    assert chain[1].site.source == "doubled = low * 2.0"
    assert chain[-1].origin == "output[0]"
    json.dumps(dataclasses.asdict(error.findings[0]))


def test_a_long_way_is_reported_by_its_ends():
    @tf.function
    def run(x):
        return tf.while_loop(
            lambda i, _: i < 100, lambda i, y: [i + 1, y + 1.0], [0, tf.math.log(x)]
        )[1]

    chain = failure(tfsafe.checked(run), tf.constant(0.0)).findings[0].chain
    assert len(chain) == 41
    assert chain[0].op_type == "Log"


def test_the_way_ends_at_a_variable(mode):
    weight = tf.Variable([1.0], name="weight")
    function = modes.compile_for(mode, lambda x: weight.assign_add(x / 0.0) and None)
    if mode != "eager":
        function = tf.function(
            lambda x: [weight.assign_add(x / 0.0), None][1], jit_compile=mode == "xla"
        )
    chain = failure(tfsafe.checked(function), tf.constant([1.0])).findings[0].chain
    assert chain[0].op_type == "RealDiv"
    assert chain[-1].origin == "variable `weight`"


def test_rules_are_read():
    options = _options.options_of("watch", False, ["line:a/b.py:3", "line:c", "op:*"])
    assert options.exclude == (("line", "a/b.py", 3), ("line", "c", 0), ("op", "*", 0))
    assert options.level == "watch"
    assert _options.options_of("watch", True, ()).level == "full"
    assert _options.options_of("domain", True, ()).level == "domain"
    assert not failures.Known().covers(failures.Failed(None, (), ()))


@pytest.mark.parametrize("compiled", COMPILED)
def test_variables_whose_sum_overflows_are_written_all_the_same(compiled):
    weight, steps = tf.Variable([1e38, 1e38]), tf.Variable(0)

    def step(x):
        steps.assign_add(1)
        weight.assign_add(x)
        return tf.reduce_max(weight)

    checked = tfsafe.checked(modes.compile_for(compiled, step))
    x = tf.constant([1e38, 1e38])
    for count in (2, 3):
        assert checked(x).numpy() == np.float32(count * 1e38)
    assert steps.numpy() == 2
    error = failure(checked, x)
    assert error.findings[0].op_type == "AssignAddVariableOp"
    assert "2 variables were restored" in str(error)
    assert weight.numpy().tolist() == [np.float32(3e38)] * 2
    assert steps.numpy() == 2


def test_what_is_read_after_a_write_is_the_new_value(level):
    one, two = tf.Variable(1.0), tf.Variable([1.0, 2.0, 3.0])

    @tf.function
    def inner(x):
        two.assign(two * x)
        return one.read_value()

    @tf.function
    def step(x):
        one.assign_add(x)
        first = one * 10.0
        one.assign_sub(0.5)
        read = inner(x)
        gathered = tf.gather(two, [0, 2])
        one.assign(one + read)
        return first, gathered, two[1]

    results = []
    for function in (step, tfsafe.checked(step, checks=level)):
        one.assign(1.0)
        two.assign([1.0, 2.0, 3.0])
        found = [each.numpy().tolist() for each in function(tf.constant(2.0))]
        results.append([found, one.numpy(), two.numpy().tolist()])
    assert results[0] == results[1]


def test_a_variable_that_a_branch_writes_is_restored(level):
    weight = tf.Variable(1.0)

    @tf.function
    def step(x):
        tf.cond(x > 0.0, lambda: weight.assign_add(x), lambda: weight.assign_sub(x))
        return tf.math.log(weight - weight)

    failure(tfsafe.checked(step, checks=level), tf.constant(2.0))
    assert weight.numpy() == 1.0


def test_what_prints_runs_once(level, capfd):
    weight = tf.Variable(1.0)

    @tf.function
    def step(x):
        tf.print("here")
        weight.assign(x)
        return tf.math.log(x)

    failure(tfsafe.checked(step, checks=level), tf.constant(0.0))
    assert capfd.readouterr().err.count("here") == 1
    assert weight.numpy() == 1.0


def test_a_number_that_a_signature_makes_a_tensor_is_taken(level):
    weight = tf.Variable(1.0)

    @tf.function(input_signature=[tf.TensorSpec([]), tf.TensorSpec([])])
    def step(x, y):
        weight.assign_add(y)
        return x / y

    checked = tfsafe.checked(step, checks=level)
    assert checked(4.0, 2.0).numpy() == 2.0
    assert checked(4.0, y=2).numpy() == 2.0
    assert failure(checked, 4.0, 0.0).findings[0].op_type == "RealDiv"
    assert weight.numpy() == 5.0


def test_the_inputs_of_the_operation_are_named(mode):
    def run(x):
        return tf.math.log(x) + tf.sqrt(x)

    x = tf.constant([0.0, 1.0])
    finding = failure(tfsafe.checked(modes.compile_for(mode, run)), x).findings[0]
    assert finding.inputs[0].zeros == 1
    assert finding.inputs[0].name == "argument `x`"
    assert finding.output.neginfs == 1


def test_an_axis_is_no_input_that_is_named(mode):
    function = modes.compile_for(mode, lambda x: tf.reduce_mean(x, axis=1))
    x = tf.zeros([2, 0])
    (named,) = failure(tfsafe.checked(function), x).findings[0].inputs
    assert named.name == "argument `x`"


def test_strict_passes_the_constants_that_a_function_of_keras_selects(mode):
    def middle(x):
        return keras.ops.median(x, axis=-1), keras.ops.quantile(x, 0.25, axis=-1)

    function = modes.compile_for(mode, middle)
    strict = tfsafe.checked(function, checks="full", strict=True)
    found = strict(tf.constant([[1.0, 2.0, 4.0]]))
    np.testing.assert_array_equal(found, [[2.0], [1.5]])


def test_strict_passes_the_constants_that_a_stable_form_selects(mode):
    """The square of a root is NaN below 0."""
    stable = tfsafe.stabilize(modes.compile_for(mode, lambda x: tf.sqrt(x) ** 2))
    strict = tfsafe.checked(stable, checks="full", strict=True)
    assert_close(strict(tf.constant([4.0, 0.25])), [4.0, 0.25], 0.5)
    with pytest.raises(tfsafe.NumericsError, match="NaN"):
        strict(tf.constant([4.0, -1.0]))
