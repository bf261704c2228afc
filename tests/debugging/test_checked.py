"""`checked` on functions: what passes through, what is put back, what is refused."""

import collections
import concurrent.futures
import copy
import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfsafe
from tests.support import modes
from tfsafe.debugging import values

ONE = tf.constant(1.0)
Pair = collections.namedtuple("Pair", "left right")


def test_it_is_one_object_under_both_names():
    assert tfsafe.checked is tfsafe.debugging.checked


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (3, r"must be a function, a `tf.function`, .* Received: target=3 of type int"),
        (None, "Received: target=None of type NoneType"),
        (keras.Model, "not a class. Received: target=Model. Check an instance"),
    ],
)
def test_what_cannot_be_checked_is_refused(target, message):
    with pytest.raises(TypeError, match=message):
        tfsafe.checked(target)


def test_values_structures_and_arguments_pass_through(mode):
    def run(x, *, scale=2.0, flag=True):
        return {"sum": x["a"] + scale, "pair": Pair(x["b"], None)}, [x["a"] > 0]

    plain = modes.compile_for(mode, run)
    checked = tfsafe.checked(plain)
    x = {"a": tf.constant([1.0, -1.0]), "b": tf.constant([[2, 3]])}
    one, other = plain(x, scale=3.0, flag=False), checked(x, scale=3.0, flag=False)
    assert repr(one) == repr(other)
    assert type(other[0]["pair"]) is Pair


def test_other_kinds_of_tensors_pass_through(mode):
    if mode == "xla":
        pytest.skip("XLA has neither strings nor ragged tensors")

    def run(words, ragged, sparse):
        return words, ragged * 2.0, tf.sparse.map_values(tf.abs, sparse)

    checked = tfsafe.checked(modes.compile_for(mode, run))
    words, ragged, sparse = checked(
        tf.constant(["a", "b"]),
        tf.ragged.constant([[1.0], [2.0, 3.0]]),
        tf.sparse.from_dense([0.0, -2.0]),
    )
    assert words.numpy().tolist() == [b"a", b"b"]
    assert ragged.to_list() == [[2.0], [4.0, 6.0]]
    assert sparse.values.numpy().tolist() == [2.0]


def test_a_nonfinite_part_of_a_ragged_or_complex_result_is_found():
    @tfsafe.checked
    @tf.function
    def ragged(x):
        return tf.RaggedTensor.from_row_lengths(tf.math.log(x), [1, 2])

    with pytest.raises(tfsafe.NumericsError) as caught:
        ragged(tf.constant([1.0, 0.0, 2.0]))
    assert caught.value.findings[0].op_type == "Log"

    @tfsafe.checked
    @tf.function
    def spectrum(x):
        return tf.complex(x, tf.math.log(x))

    with pytest.raises(tfsafe.NumericsError, match="Log"):
        spectrum(tf.constant([0.0]))
    assert spectrum(tf.constant([1.0])).numpy() == 1.0


def test_the_error_passes_through_autograph():
    logarithm = tfsafe.checked(lambda x: tf.math.log(x))
    with pytest.raises(tfsafe.NumericsError):
        tf.map_fn(logarithm, tf.constant([1.0, -1.0]))


class Estimate(tf.experimental.ExtensionType):
    value: tf.Tensor
    unit: str = "m"


@pytest.mark.parametrize("wrap", [tf.function, lambda f: f], ids=["graph", "eager"])
def test_a_nonfinite_field_of_an_extension_type_is_found(wrap):
    estimate = tfsafe.checked(wrap(lambda x: Estimate(tf.math.log(x))))
    with pytest.raises(tfsafe.NumericsError, match="Log"):
        estimate(tf.constant([1.0, -1.0]))
    assert estimate(tf.constant([1.0])).unit == "m"


def test_the_results_under_xla_are_the_same_to_the_last_bit(dtype):
    def run(x):
        return tf.reduce_sum(tf.sin(x) * tf.exp(-x)), tf.nn.softmax(x)

    x = tf.cast(tf.constant(np.linspace(-2, 2, 300)), dtype)
    plain = tf.function(run, jit_compile=True)
    for one, other in zip(plain(x), tfsafe.checked(plain)(x), strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())


def test_python_side_effects_happen_once_a_trace_and_writes_once_a_call(mode):
    ran = []
    count = tf.Variable(0)

    def step(x):
        ran.append(1)
        count.assign_add(1)
        return x * 2.0

    checked = tfsafe.checked(modes.compile_for(mode, step))
    for _ in range(3):
        checked(tf.ones([2]))
    assert count.numpy() == 3
    assert len(ran) == (3 if mode == "eager" else 1)
    with pytest.raises(tfsafe.NumericsError):
        checked(tf.constant([1.0, float("inf")]))
    assert count.numpy() == 3
    assert len(ran) == (4 if mode == "eager" else 1)


@pytest.mark.parametrize("reduce_retracing", [False, True])
def test_a_function_is_traced_as_often_as_before(reduce_retracing):
    calls = [tf.ones([n]) for n in (1, 2, 3, 4)] + [tf.ones([2, 2]), 1.0, 2.0]

    def traces(wrap):
        traced = []

        def run(x):
            traced.append(getattr(x, "shape", x))
            return x * 2.0

        function = tf.function(run, reduce_retracing=reduce_retracing)
        wrapped = wrap(function)
        for x in calls:
            wrapped(x)
        return traced

    assert traces(tfsafe.checked) == traces(lambda function: function)


def test_a_function_with_a_signature_is_traced_once():
    signature = [tf.TensorSpec([None], tf.float32)]
    checked = tfsafe.checked(tf.function(tf.square, input_signature=signature))
    for n in range(1, 6):
        assert checked(tf.ones([n])).shape == (n,)
    assert checked.experimental_get_tracing_count() == 1
    assert checked._compiled._watched.experimental_get_tracing_count() <= 3


def test_a_function_with_a_signature_takes_its_arguments_by_name_and_default():
    class Quotient:
        @tf.function(input_signature=[tf.TensorSpec([None]), tf.TensorSpec([])])
        def run(self, x, y=ONE):
            return y / x

    checked = tfsafe.checked(Quotient().run)
    assert checked(tf.ones([1])).numpy() == 1.0
    assert checked(y=tf.constant(3.0), x=tf.ones([1])).numpy() == 3.0
    with pytest.raises(tfsafe.NumericsError, match="RealDiv"):
        checked(tf.zeros([1]), y=tf.constant(2.0))


def test_arguments_that_do_not_fit_are_shown_as_they_were_given():
    function = tf.function(lambda x: x)
    with pytest.raises(TypeError, match=r"Received args: \(<tf.Tensor: shape=\(\)"):
        tfsafe.checked(function)(tf.constant(1.0), 2)
    concrete = function.get_concrete_function(tf.TensorSpec([]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="cannot compute"):
        tfsafe.checked(concrete)(tf.constant(1))


@pytest.mark.skipif(modes.HAS_GPU, reason="this kernel gives zeros on a GPU")
@pytest.mark.parametrize("look_every", [1, 2])
def test_the_message_of_a_kernels_error_shows_no_frames_of_tfsafe(look_every):
    checked = tfsafe.checked(tf.function(tf.gather), look_every=look_every)
    with pytest.raises(tf.errors.InvalidArgumentError, match="5 is not in") as caught:
        checked([1.0, 2.0], tf.constant(5))
    assert f'File "{__file__}"' in str(caught.value)
    assert tfsafe.__path__[0] not in str(caught.value)


def test_a_function_may_create_its_variables_in_the_first_call():
    class Lazy:
        weight = None

        @tfsafe.checked
        @tf.function
        def __call__(self, x):
            if self.weight is None:
                self.weight = tf.Variable(tf.ones([2]))
            self.weight.assign_add(x)
            return self.weight / x

    lazy = Lazy()
    assert lazy(tf.ones([2])).numpy().tolist() == [2.0, 2.0]
    with pytest.raises(tfsafe.NumericsError):
        lazy(tf.zeros([2]))
    assert lazy.weight.numpy().tolist() == [2.0, 2.0]


def test_a_gradient_can_be_taken_through_a_checked_function(mode):
    checked = tfsafe.checked(modes.compile_for(mode, lambda x: x**3))
    x = tf.Variable([2.0])
    with tf.GradientTape() as tape:
        y = checked(x)
    assert tape.gradient(y, x).numpy().tolist() == [12.0]


@pytest.mark.filterwarnings("ignore:`inner` is called while")
def test_inside_a_traced_function_it_is_the_function_itself():
    @tfsafe.checked
    def inner(x):
        return tf.math.log(x)

    for autograph in (False, True):
        outer = tf.function(lambda x: tf.exp(inner(x)), autograph=autograph)
        assert outer(tf.constant(0.0)).numpy() == 0.0
    with pytest.raises(tfsafe.NumericsError):
        inner(tf.constant(0.0))


def test_functions_that_are_run_eagerly_are_checked_eagerly():
    tf.config.run_functions_eagerly(True)
    try:
        with pytest.raises(tfsafe.NumericsError) as caught:
            tfsafe.checked(tf.function(tf.math.log))(tf.constant(0.0))
    finally:
        tf.config.run_functions_eagerly(False)
    assert caught.value.findings[0].op_name == ""


class Scaler:
    """Has methods of each kind."""

    def __init__(self, by):
        self.by = tf.Variable(by)

    @tfsafe.checked
    def eager(self, x):
        return x / self.by

    @tfsafe.checked
    @tf.function
    def graph(self, x):
        return x / self.by

    def plain(self, x):
        return x / self.by

    @tf.function
    def traced(self, x):
        return x / self.by


@pytest.mark.parametrize("name", ["eager", "graph", "plain", "traced"])
def test_methods_are_checked_with_their_own_object(name):
    good, bad = Scaler(2.0), Scaler(0.0)
    methods = [getattr(each, name) for each in (good, bad)]
    if name in {"plain", "traced"}:
        methods = [tfsafe.checked(each) for each in methods]
    assert methods[0](tf.constant(4.0)).numpy() == 2.0
    with pytest.raises(tfsafe.NumericsError, match="1 zero in the denominator"):
        methods[1](tf.constant(4.0))


def test_the_attributes_of_the_function_can_be_reached():
    @tfsafe.checked
    @tf.function
    def run(x):
        """Doubles."""
        return x * 2.0

    run(tf.ones([]))
    assert run.__doc__ == "Doubles."
    assert run.__name__ == "run"
    assert run.experimental_get_tracing_count() == 1
    assert Scaler.graph.python_function.__name__ == "graph"
    assert copy.copy(run)(tf.ones([])).numpy() == 2.0
    assert not hasattr(run, "missing")


def test_a_concrete_function_and_a_loaded_one_are_checked(tmp_path):
    module = tf.Module()

    @tf.function(input_signature=[tf.TensorSpec([2], tf.float32)])
    def run(x):
        return tf.math.log(x) + tf.cond(x[0] > 9.0, lambda: 1.0, lambda: 0.0)

    module.run = run
    tf.saved_model.save(module, str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path)).run
    for function in (run.get_concrete_function(), loaded):
        checked = tfsafe.checked(function)
        assert checked(tf.ones([2])).numpy().tolist() == [0.0, 0.0]
        with pytest.raises(tfsafe.NumericsError) as caught:
            checked(tf.zeros([2]))
        assert caught.value.findings[0].op_type == "Log"


class Saved(tf.Module):
    def __init__(self):
        super().__init__()
        self.twice = tfsafe.checked(tf.function(lambda x: 2.0 * x))

    @tfsafe.checked
    @tf.function(input_signature=[tf.TensorSpec([None])])
    def __call__(self, values):
        return tf.math.log(values)


def test_a_module_saves_its_checked_methods(tmp_path):
    module = Saved()
    module.twice(ONE)
    concrete = module.__call__.get_concrete_function()
    signatures = {"log": module.__call__, "checked": concrete}
    tf.saved_model.save(module, tmp_path, signatures=signatures)
    loaded = tf.saved_model.load(tmp_path)
    assert loaded.twice(ONE) == 2.0
    assert loaded(tf.constant([1.0])) == 0.0
    assert np.isinf(loaded.signatures["log"](values=tf.constant([0.0]))["output_0"])
    with pytest.raises(tf.errors.InvalidArgumentError, match="NaN or Inf"):
        loaded.signatures["checked"](values=tf.constant([0.0]))


def test_an_object_that_cannot_be_hashed_has_checked_methods_too():
    @dataclasses.dataclass
    class Division:
        by: float

        @tfsafe.checked
        def run(self, x):
            return x / self.by

    assert Division(2.0).run(tf.constant(4.0)).numpy() == 2.0
    with pytest.raises(tfsafe.NumericsError, match="RealDiv"):
        Division(0.0).run(tf.constant(4.0))


def test_checked_functions_may_call_each_other():
    inner = tfsafe.checked(lambda x: tf.math.log(x))
    outer = tfsafe.checked(lambda x: inner(x) + tf.sqrt(x))
    assert outer(tf.constant(1.0)).numpy() == 1.0
    with pytest.raises(tfsafe.NumericsError, match="Log"):
        outer(tf.constant(0.0))
    # Neither leaves anything behind.
    assert np.isneginf(tf.math.log(tf.constant(0.0)).numpy())


def test_threads_are_checked_each_for_itself():
    checked = tfsafe.checked(lambda x: tf.math.log(x))

    def outcome(x):
        try:
            return checked(tf.constant(x)).numpy()
        except tfsafe.NumericsError as error:
            return error.findings[0].op_type

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        found = list(pool.map(outcome, [1.0, 0.0] * 6))
    assert found == [0.0, "Log"] * 6


def test_without_a_line_of_the_users_the_operation_is_reported():
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        error = pool.submit(tfsafe.checked(tf.math.log), tf.constant(0.0)).exception()
    assert error.findings[0].site is None
    assert "where: no line of yours; operation `Log`" in str(error)


def test_arguments_that_a_signature_does_not_name_are_numbered():
    class Odd:
        __signature__ = "none"

        def __call__(self, *args):
            return args[0] * 1.0

    with pytest.raises(tfsafe.NumericsError, match=r"in argument `args\[0\]`"):
        tfsafe.checked(Odd())(tf.constant(float("nan")))


def test_a_variable_that_was_nonfinite_and_is_written_is_named(mode):
    weight = tf.Variable([1.0, float("nan")], name="weight")
    function = modes.compile_for(mode, lambda x: weight.assign(weight * x))
    with pytest.raises(tfsafe.NumericsError) as caught:
        tfsafe.checked(function)(tf.constant([1.0, 1.0]))
    assert caught.value.findings[0].origin == "variable `weight`"


def test_a_function_under_xla_that_only_fails_there_is_looked_into_eagerly_too():
    @tf.function(jit_compile=True)
    def slope(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.where(x > 0, tf.sqrt(x), tf.zeros_like(x))
        return tape.gradient(y, x)

    with pytest.raises(tfsafe.NumericsError) as caught:
        tfsafe.checked(lambda x: slope(x) + 1.0)(tf.constant([0.0]))
    assert caught.value.findings[0].forward_op == "Sqrt"


def test_a_function_that_cannot_be_looked_into_is_named_where_it_is_called():
    data = iter(tf.data.Dataset.from_tensors(1.0))

    @tf.function
    def draw(x):
        return tf.math.log(x * next(data))

    @tfsafe.checked
    def run(x):
        return draw(x) * 2.0

    with pytest.raises(tfsafe.NumericsError) as caught:
        run(tf.constant(0.0))
    assert caught.value.findings[0].site.source == "return draw(x) * 2.0"


def test_of_several_results_of_a_function_the_nonfinite_one_is_followed():
    @tf.function
    def both(x):
        return x + 1.0, tf.math.log(x)

    @tfsafe.checked
    def run(x):
        left, right = both(x)
        return left + right

    with pytest.raises(tfsafe.NumericsError) as caught:
        run(tf.constant(0.0))
    assert caught.value.findings[0].op_type == "Log"


def test_a_function_whose_failure_does_not_repeat_is_named_where_it_is_called():
    # The graph optimizer makes `(1 - p) + eps` into `(1 + eps) - p`.
    entropy = tf.function(lambda p: tf.math.log((1.0 - p) + 1e-10))

    @tfsafe.checked
    def run(p):
        return entropy(p) * 2.0

    with pytest.raises(tfsafe.NumericsError) as caught:
        run(tf.constant([1.0]))
    assert caught.value.findings[0].op_type == "StatefulPartitionedCall"


def test_tensors_on_a_device_are_looked_at_on_the_device(monkeypatch, mode):
    monkeypatch.setattr("tfsafe.debugging.values._is_on_host", lambda _: False)
    checked = tfsafe.checked(modes.compile_for(mode, lambda x: tf.math.log(x)))
    assert checked(tf.constant([1.0])).numpy() == 0.0
    with pytest.raises(tfsafe.NumericsError, match="Log"):
        checked(tf.constant([0.0]))
    with pytest.raises(tfsafe.NumericsError, match="in argument"):
        tfsafe.checked(tf.identity)(tf.constant(1.0j) * float("inf"))


def test_values_are_the_same_only_in_the_same_dtype_and_shape():
    one = tf.constant([1.0, float("nan")])
    assert values.is_same(one, tf.identity(one))
    assert not values.is_same(one, tf.cast(one, tf.float64))
    assert not values.is_same(one, one[:1])
    assert not values.is_same(one, tf.constant(1))


def test_a_callable_object_is_checked():
    checked = tfsafe.checked(keras.layers.Activation(tf.math.log))
    with pytest.raises(tfsafe.NumericsError, match="Log"):
        checked(tf.zeros([2]))


def test_numbers_that_leave_tensorflow_are_checked_too():
    @tfsafe.checked
    def mean(x):
        return {"loss": float(tf.reduce_mean(tf.math.log(x))), "best": x.numpy()}

    assert mean(tf.ones([2]))["loss"] == 0.0
    with pytest.raises(tfsafe.NumericsError) as caught:
        mean(tf.zeros([2]))
    assert caught.value.findings[0].op_type == "Log"

    @tfsafe.checked
    def python(x):
        return float("nan") * x

    with pytest.raises(tfsafe.NumericsError, match="no operation of the call"):
        python(1.0)


def test_what_numpy_makes_within_the_call_is_looked_for_with_numpy():
    def logarithm(x):
        with np.errstate(divide="ignore"):
            return np.log(x)

    @tfsafe.checked
    def total(x):
        return tf.reduce_sum(tf.numpy_function(logarithm, [x], tf.float32))

    with pytest.raises(tfsafe.NumericsError) as caught:
        total(tf.zeros([2]))
    (finding,) = caught.value.findings
    assert finding.cause == "no operation of the call made it."
    assert "warnings.simplefilter('error', RuntimeWarning) raises" in finding.suggestion


def test_a_numpy_argument_is_named_in_eager_mode():
    checked = tfsafe.checked(lambda x, y: tf.add(x, y))
    with pytest.raises(tfsafe.NumericsError, match="in argument `y`"):
        checked(np.float32([1.0, 2.0]), np.float32([1.0, np.nan]))


def test_the_sum_of_finite_results_may_overflow(mode):
    def run(x):
        return x * 1.0

    checked = tfsafe.checked(modes.compile_for(mode, run))
    x = tf.constant([3e38, 3e38])
    np.testing.assert_array_equal(checked(x), x)


def test_no_false_alarm_for_what_reaches_no_result(mode):
    def run(x):
        hidden = tf.where(x > 0, tf.math.log(x), tf.zeros_like(x))
        lost = tf.reduce_max(tf.zeros([0]))
        scores = tf.where(x > 0, x, tf.constant(-float("inf")))
        return hidden, tf.nn.softmax(scores), tf.cast(lost < 0, tf.float32)

    checked = tfsafe.checked(modes.compile_for(mode, run))
    hidden, weights, flag = checked(tf.constant([[0.0, 1.0]]))
    assert hidden.numpy().tolist() == [[0.0, 0.0]]
    assert weights.numpy().tolist() == [[0.0, 1.0]]
    assert flag.numpy() == 1.0


def test_strict_reports_what_reaches_no_result(mode):
    total = tf.Variable(1.0)

    def run(x):
        total.assign_add(1.0)
        return tf.where(x > 0, tf.math.log(x), tf.zeros_like(x))

    checked = tfsafe.checked(strict=True)(modes.compile_for(mode, run))
    assert checked(tf.constant([1.0])).numpy().tolist() == [0.0]
    assert total.numpy() == 2.0
    with pytest.raises(tfsafe.NumericsError) as caught:
        checked(tf.constant([0.0]))
    assert caught.value.findings[0].op_type == "Log"
    assert total.numpy() == 2.0


def test_strict_says_where_it_cannot_look_into_a_function(monkeypatch):
    # Python does not know a function of a graph that was imported from its protocol
    # buffer.
    monkeypatch.setattr("tfsafe._compat.function_graph", lambda *_: None)
    run = tf.function(tf.math.log)
    with pytest.raises(
        ValueError, match="`strict=True` cannot look into this function"
    ):
        tfsafe.checked(tf.function(lambda x: run(x)), strict=True)(tf.ones([]))
    assert tfsafe.checked(tf.function(lambda x: run(x)))(tf.ones([])).numpy() == 0.0


def test_a_program_goes_on_where_strict_cannot_look(monkeypatch):
    monkeypatch.setattr("tfsafe._compat.function_graph", lambda *_: None)
    inner = tf.function(tf.math.log)
    run = tf.function(lambda x: inner(x))
    with tfsafe.debugging.check_numerics(strict=True):
        with pytest.warns(RuntimeWarning, match="cannot look into") as warned:
            assert run(tf.ones([])).numpy() == 0.0
        assert run(tf.ones([])).numpy() == 0.0
        with pytest.raises(tfsafe.NumericsError):
            run(tf.zeros([]))
    # On Python 3.13 AutoGraph adds its own.
    assert [each.category for each in warned].count(RuntimeWarning) == 1


@pytest.mark.parametrize("options", [{}, {"checks": "full"}], ids=["watch", "full"])
def test_the_body_of_a_loop_over_a_dataset_is_looked_into(options):
    total = tf.Variable([0.0, 0.0], name="total")

    @tf.function
    def epoch(data):
        for count, x in data.enumerate():
            if count > 3:
                break
            total.assign_add(tf.math.log(x))
        return total + 0.0

    data = tf.data.Dataset.from_tensor_slices([[1.0, 1.0], [2.0, 1.0], [1.0, 0.0]])
    check = tfsafe.checked(epoch, **options)
    with pytest.raises(tfsafe.NumericsError) as caught:
        check(data)
    finding = caught.value.findings[0]
    assert (finding.op_type, finding.iteration, finding.index) == ("Log", (2,), (1,))
    assert finding.site.source == "total.assign_add(tf.math.log(x))"
    assert finding.cause == "log of 1 zero (at (1,))."
    assert finding.inputs[0].name == "an element of the dataset"
    assert total.numpy().tolist() == [0.0, 0.0]
    np.testing.assert_array_equal(check(data.take(2)), tf.math.log([2.0, 1.0]))
    with pytest.raises(tfsafe.NumericsError) as caught:
        check(data.map(lambda x: x * np.nan))
    part = caught.value.findings[0].origin
    assert part == "component 1 of an element of the dataset"


@pytest.mark.parametrize(
    "passed",
    [
        lambda data: data.prefetch(2),
        lambda data: data.with_options(tf.data.Options()),
        lambda data: data.apply(tf.data.experimental.assert_cardinality(3)),
    ],
    ids=["prefetch", "options", "cardinality"],
)
def test_a_dataset_that_passes_elements_on_is_looked_through(passed):
    @tf.function
    def epoch(data):
        total = tf.zeros([2])
        for x in passed(data.map(tf.math.log)):
            total += x
        return total

    data = tf.data.Dataset.from_tensor_slices([[1.0, 1.0], [2.0, 1.0], [1.0, 0.0]])
    with pytest.raises(tfsafe.NumericsError) as caught:
        tfsafe.checked(epoch)(data)
    finding = caught.value.findings[0]
    assert (finding.op_type, finding.iteration, finding.index) == ("Log", (2,), (1,))
    whole = data.take(2).concatenate(data.take(1))
    np.testing.assert_array_equal(tfsafe.checked(epoch)(whole), tf.math.log([2.0, 1.0]))


def test_the_state_of_a_random_generator_is_restored(mode):
    generator = tf.random.Generator.from_seed(3)

    def run(x):
        return generator.normal([2]) / x

    checked = tfsafe.checked(modes.compile_for(mode, run))
    before = generator.state.numpy()
    with pytest.raises(tfsafe.NumericsError):
        checked(tf.zeros([2]))
    np.testing.assert_array_equal(generator.state.numpy(), before)
    checked(tf.ones([2]))
    assert (generator.state.numpy() != before).any()


def test_a_variable_given_as_an_argument_is_restored(mode):
    weight = tf.Variable([1.0, 2.0])

    def step(variable, x):
        variable.assign(variable / x)
        return x

    checked = tfsafe.checked(modes.compile_for(mode, step))
    with pytest.raises(tfsafe.NumericsError, match="variable `Variable`"):
        checked(weight, tf.constant([0.0, 1.0]))
    assert weight.numpy().tolist() == [1.0, 2.0]


def test_a_training_step_of_ones_own_leaves_model_and_optimizer_as_they_were(mode):
    keras.utils.set_random_seed(2)
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(3, use_bias=False)])
    optimizer = keras.optimizers.Adam()
    optimizer.build(model.trainable_variables)

    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.math.log(tf.abs(model(x))))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply(gradients, model.trainable_variables)
        return loss

    checked = tfsafe.checked(modes.compile_for(mode, step))
    checked(tf.ones([4, 2]))
    variables = [*model.variables, *optimizer.variables]
    before = [each.numpy() for each in variables]
    with pytest.raises(tfsafe.NumericsError) as caught:
        checked(tf.zeros([4, 2]))
    assert caught.value.findings[0].op_type == "Log"
    for each, value in zip(variables, before, strict=True):
        np.testing.assert_array_equal(each.numpy(), value)


def test_a_function_that_fails_on_its_own_fails_as_before(mode):
    def run(x):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        tfsafe.checked(modes.compile_for(mode, run))(tf.ones([]))


def test_a_stateful_function_called_eagerly_is_named_as_a_whole():
    count = tf.Variable(0.0)

    @tf.function
    def inner(x):
        count.assign_add(1.0)
        return tf.math.log(x)

    @tfsafe.checked
    def outer(x):
        return inner(x) + 1.0

    with pytest.raises(tfsafe.NumericsError) as caught:
        outer(tf.zeros([]))
    assert caught.value.findings[0].site.source == "return inner(x) + 1.0"
    assert "tfsafe.checked" in caught.value.findings[0].suggestion


def test_half_precision_overflow_is_explained_with_its_limit(mode):
    checked = tfsafe.checked(modes.compile_for(mode, tf.exp))
    with pytest.raises(tfsafe.NumericsError) as caught:
        checked(tf.constant([1.0, 12.0], tf.float16))
    assert caught.value.findings[0].cause == (
        "exp overflows float16 above 11.09; the largest input is 12 (at (1,))."
    )
