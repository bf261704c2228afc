import re

import numpy as np
import pytest
import tensorflow as tf

from tfsafe import _args

NAN = float("nan")
INF = float("inf")


@pytest.mark.parametrize(
    ("x", "dtype"),
    [
        (1.5, tf.float32),
        ([1.0, 2.0], tf.float32),
        (np.array([1.0]), tf.float64),
        (np.float16(1.0), tf.float16),
        (tf.constant(1.0, tf.bfloat16), tf.bfloat16),
        (tf.Variable(1.0, dtype=tf.float64), tf.float64),
    ],
)
def test_what_is_floating_becomes_a_tensor_of_its_own_dtype(x, dtype):
    assert tf.is_tensor(_args.float_tensor(x, "x"))
    assert _args.float_tensor(x, "x").dtype == dtype


@pytest.mark.parametrize("x", [1.5, 2, [1, 2]])
def test_python_numbers_adapt_to_the_dtype_asked_for(x):
    assert _args.float_tensor(x, "x", tf.float16).dtype == tf.float16


@pytest.mark.parametrize(
    ("x", "received", "fix"),
    [
        ([1, 2], r"dtype=int32, shape=\(2,\)", "tf.cast.logits, tf."),
        (True, r"dtype=bool, shape=\(\)", "tf.cast.logits, tf."),
        (1j, "dtype=complex128", "tf.math.real.logits."),
        ("text", "dtype=string", "tf.strings.to_number.logits."),
    ],
)
def test_what_is_not_floating_is_refused_with_a_fix(x, received, fix):
    message = f"`logits` must have a floating dtype .*{received}.*`{fix}"
    with pytest.raises(TypeError, match=message):
        _args.float_tensor(x, "logits")


@pytest.mark.parametrize(
    "x",
    [
        tf.sparse.from_dense([1.0, 0.0]),
        tf.RaggedTensor.from_row_lengths([1.0, 2.0], [1, 1]),
        tf.IndexedSlices(tf.ones([1]), tf.constant([0])),
    ],
    ids=lambda x: type(x).__name__,
)
def test_what_is_not_dense_is_refused_with_a_suggestion(x):
    message = f"`x` must be a dense tensor. Received: {type(x).__name__}. Convert it"
    with pytest.raises(TypeError, match=message):
        _args.float_tensor(x, "x")


def test_several_arguments_take_the_dtype_of_the_first_that_has_one(dtype):
    x, y, z = _args.float_tensors(x=2, y=tf.ones([1], dtype), z=[1.0])
    assert x.dtype == y.dtype == z.dtype == dtype


def test_several_python_numbers_become_float32():
    x, y = _args.float_tensors(x=1.0, y=2.5)
    assert x.dtype == y.dtype == tf.float32


def test_two_dtypes_are_refused_with_both_names():
    message = (
        "`x` and `y` must have the same dtype. Received: x: float16, y: float64. "
        "Convert one of them with `tf.cast`."
    )
    with pytest.raises(TypeError, match=re.escape(message)):
        _args.float_tensors(x=tf.ones([], tf.float16), y=np.ones(2))


def test_an_integer_with_a_float_is_refused_by_its_own_name():
    with pytest.raises(TypeError, match=r"`x` must have a floating dtype .*int32"):
        _args.float_tensors(x=tf.constant(1), y=tf.constant(1.0))


@pytest.mark.parametrize(
    ("x", "y"), [([2, 3], [3]), ([2, 1], [1, 4]), ([None, 2], [3, 2]), (None, [2])]
)
def test_shapes_that_may_broadcast_pass(x, y):
    @tf.function(input_signature=[tf.TensorSpec(x), tf.TensorSpec(y)], autograph=False)
    def check(x, y):
        _args.check_broadcast(x=x, y=y)
        return x

    check.get_concrete_function()


def test_shapes_that_cannot_broadcast_are_refused_with_both():
    message = (
        "`x` and `y` must have shapes that broadcast. Received: x of shape (2, 3), "
        "y of shape (2,)."
    )
    with pytest.raises(ValueError, match=re.escape(message)):
        _args.check_broadcast(x=tf.ones([2, 3]), y=tf.ones([2]))


@pytest.mark.parametrize(
    ("axis", "rank", "expected"),
    [
        (None, 3, [0, 1, 2]),
        (None, 0, []),
        (-1, 3, [2]),
        ([2, 0], 3, [0, 2]),
        ((-1, 0), 3, [0, 2]),
        (np.int64(1), 3, [1]),
        ([], 2, []),
        (None, None, None),
        (-1, None, [-1]),
        ((0, -1), None, [0, -1]),
    ],
)
def test_axes_become_a_sorted_list_of_natural_numbers(axis, rank, expected):
    shape = tf.TensorShape(None if rank is None else [4] * rank)
    assert _args.axes(axis, shape) == expected


@pytest.mark.parametrize(
    ("axis", "rank", "error", "message"),
    [
        (2, 2, ValueError, "axis=2 for a tensor of shape (4, 4), whose axes run from"),
        (-3, 2, ValueError, "`axis` is out of range. Received: axis=-3 for a tensor"),
        (0, 0, ValueError, "`axis` must be None or empty for a scalar. Received: axi"),
        ([0, 0], 2, ValueError, "`axis` names an axis twice. Received: axis=[0, 0]"),
        ((1, -1), 2, ValueError, "`axis` names an axis twice. Received: axis=(1, -1)"),
        (1.0, 2, TypeError, "`axis` must be an integer, a sequence of integers or No"),
        ("1", None, TypeError, "Received: axis='1'."),
        (True, 2, TypeError, "Received: axis=True."),
        ([0, None], 2, TypeError, "Received: axis=[0, None]."),
    ],
)
def test_wrong_axes_are_refused_with_what_was_received(axis, rank, error, message):
    shape = tf.TensorShape(None if rank is None else [4] * rank)
    with pytest.raises(error, match=re.escape(message)):
        _args.axes(axis, shape)


@pytest.mark.parametrize(
    "mask",
    [
        None,
        True,
        [True, False],
        [1, 0],
        [0.5, 1.0],
        np.ones([1, 2], np.uint8),
        tf.constant([[1], [0], [70_000]]),
    ],
)
def test_masks_become_weights_that_hold_every_integer(mask, dtype):
    weights = _args.weights(mask, tf.ones([3, 2], dtype))
    assert weights.dtype == (dtype if dtype.size > 2 else tf.float32)
    assert np.all(np.isfinite(weights))


def test_weights_keep_their_own_dtype_where_it_is_that_of_the_tensor(dtype):
    weights = tf.constant([0.5, 1.0], dtype)
    assert _args.weights(weights, tf.ones([3, 2], dtype)).dtype == dtype


def test_weights_of_another_dtype_are_refused_with_a_suggestion():
    message = (
        "`w` must be boolean, of an integer dtype, or of the dtype of the tensor that "
        "it weights, float16. Received: dtype=float32, shape=(2,). Convert it first, "
        "for example `tf.cast(w, tf.float16)`."
    )
    with pytest.raises(TypeError, match=re.escape(message)):
        _args.weights(tf.ones([2]), tf.ones([2], tf.float16), "w")


@pytest.mark.parametrize(
    ("mask", "x"), [([3], [3, 2]), ([2, 2], [2]), ([3, 2], [1, 2])]
)
def test_weights_that_do_not_broadcast_to_the_tensor_are_refused(mask, x):
    message = "`mask` must have a shape that broadcasts to the shape of the tensor"
    with pytest.raises(ValueError, match=message):
        _args.weights(tf.ones(mask), tf.ones(x))


@pytest.mark.parametrize("value", [0, -1.5, NAN, INF, np.float32(2.0), np.int64(3)])
def test_numbers_become_python_floats(value):
    number = _args.number(value, "at_zero", tf.float32)
    assert type(number) is float
    assert np.array_equal(number, float(value), equal_nan=True)


@pytest.mark.parametrize("value", [True, "1", None, 1j, [1.0]])
def test_what_is_not_a_number_is_refused(value):
    message = re.escape(f"`at_zero` must be a number. Received: at_zero={value!r}.")
    with pytest.raises(TypeError, match=message):
        _args.number(value, "at_zero", tf.float32)


def test_a_number_too_large_for_the_dtype_is_refused():
    message = (
        "`at_zero` must fit the dtype of the result, float16, whose largest number is "
        "65504. Received: at_zero=-70000.0."
    )
    with pytest.raises(ValueError, match=re.escape(message)):
        _args.number(-7e4, "at_zero", tf.float16)


def test_one_of_returns_what_is_allowed_and_lists_it_otherwise():
    assert _args.one_of("skip", ["skip", "zero"], "policy") == "skip"
    message = "`policy` must be one of 'skip', 'zero'. Received: policy='drop'."
    with pytest.raises(ValueError, match=re.escape(message)):
        _args.one_of("drop", ["skip", "zero"], "policy")
