"""The number behind a flag is finite only if every element of a tensor is."""

import numpy as np
import pytest
import tensorflow as tf

import tfsafe
from tests.support import modes
from tests.support.oracle import assert_close
from tfsafe.graph import summed

# A matrix product adds up the second and the third of these under XLA on a CPU.
SHAPES = [(7, 5), (80, 64), (3, 3, 16, 32), (1, 5000), (5000,)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("value", [1.0, np.nan, -np.inf])
def test_a_sum_is_finite_only_if_all_elements_are(value, shape, mode, dtype):
    x = np.ones(shape)
    x.flat[-2] = value
    got = modes.compile_for(mode, summed)(tf.constant(x, dtype))
    assert got.shape == ()
    assert got.dtype == (tf.float64 if dtype == tf.float64 else tf.float32)
    assert np.isfinite(got) == np.isfinite(value)


def test_parts_of_complex_numbers_count(mode):
    compiled = modes.compile_for(mode, summed)
    for value in (complex(0, np.nan), complex(np.inf, 0)):
        x = np.ones([80, 64], np.complex64)
        x[40, 2] = value
        assert not np.isfinite(compiled(tf.constant(x)))


@pytest.mark.parametrize("shape", SHAPES)
def test_xla_adds_a_matrix_by_a_product(shape):
    # In one loop with what computes the elements, it adds one after the other.
    concrete = tf.function(summed, jit_compile=True).get_concrete_function(
        tf.TensorSpec(shape)
    )
    types = {op.type for op in concrete.graph.get_operations()}
    is_fast = shape in SHAPES[1:3] and not modes.HAS_GPU
    assert ("MatMul" in types) == is_fast


def test_an_overflow_that_a_division_absorbs_is_found_in_a_large_matrix():
    @tf.function(jit_compile=True)
    def step(x, y):
        return tf.reduce_sum(1 / (x * y) + y)

    x = tf.tensor_scatter_nd_update(tf.ones([80, 64]), [[40, 2]], [3e38])
    with pytest.raises(tfsafe.NumericsError) as caught:
        tfsafe.checked(step, checks="full", strict=True)(x, tf.fill([80, 64], 4.0))
    assert caught.value.findings[0].op_type == "Mul"


@pytest.mark.parametrize("values", [tf.linalg.eigvalsh, tf.linalg.svd])
def test_vectors_that_are_not_computed_are_not_added(values):
    # Their static shape is [0]; when they run, they are scalars.
    options = {"compute_uv": False} if values is tf.linalg.svd else {}
    x = tf.constant([[2.0, 1.0], [1.0, 2.0]])
    checked = tfsafe.checked(tf.function(lambda x: values(x, **options)), checks="full")
    assert_close(np.sort(checked(x)), [1, 3])
