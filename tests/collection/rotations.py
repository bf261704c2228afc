"""Maps between rotation vectors, quaternions and matrices, at and near no rotation."""

import numpy as np
import tensorflow as tf

from tests.collection.formula import Formula, m, off_zero

ROWS = [[0.0, 0.0, 0.0], [1e-5, -2e-5, 1e-5], [0.1, -0.2, 0.3]]
FAR = [[0.4, 1.1, -0.2], [-1.5, 0.3, 0.2], [0.1, -0.2, 0.3]]
POINT = [1.0, 2.0, -3.0]
WEIGHTS = np.array([[1.0, 0.5, -2.0], [0.25, 3.0, 1.5], [-1.0, 2.0, 0.75]])
W = WEIGHTS.astype(np.float32)


def _skew(a):
    zero = tf.zeros_like(a[..., 0])
    x, y, z = tf.unstack(a, axis=-1)
    rows = [[zero, -z, y], [z, zero, -x], [-y, x, zero]]
    return tf.stack([tf.stack(row, -1) for row in rows], -2)


def _exact_skew(a):
    x, y, z = a
    return np.array([[0 * x, -z, y], [z, 0 * x, -x], [-y, x, 0 * x]], object)


def _exact_matrix(v):
    v = off_zero(v)
    t = m.sqrt((v * v).sum())
    k = _exact_skew(v / t)
    return np.eye(3) + m.sin(t) * k + (1 - m.cos(t)) * k.dot(k)


def _exact_matrices(v):
    return sum((_exact_matrix(row) * WEIGHTS).sum() for row in v)


def _exact_rotated(v, p):
    return sum((_exact_matrix(row).dot(p) * WEIGHTS[0]).sum() for row in v)


def _exact_quaternions(v):
    v = off_zero(v)
    t = m.sqrt((v * v).sum(-1))
    parts = m.sin(t / 2) / t * (v * WEIGHTS[0]).sum(-1)
    return (m.cos(t / 2) + parts).sum()


def _quaternion_of_units(v):
    angle = tf.norm(v, axis=-1)
    axis = v / angle[:, None]
    half = 0.5 * angle
    parts = axis * tf.sin(half)[:, None] * W[0]
    return tf.cos(half) + tf.reduce_sum(parts, -1)


def _quaternion_by_concat(v):
    angle = tf.norm(v, axis=-1, keepdims=True)
    sine = tf.sin(angle / 2.0) / angle
    return tf.concat([tf.cos(angle / 2.0), v * sine * W[0]], -1)


def _matrix_of_units(v):
    angle = tf.norm(v, axis=-1)[:, None, None]
    k = _skew(v / tf.norm(v, axis=-1, keepdims=True))
    turned = tf.eye(3) + tf.sin(angle) * k + (1 - tf.cos(angle)) * (k @ k)
    return turned * W


def _matrix_of_squares(v):
    squared = tf.reduce_sum(v * v, -1)[:, None, None]
    angle = tf.sqrt(squared)
    k = _skew(v)
    return (
        tf.eye(3) + tf.sin(angle) / angle * k + (1 - tf.cos(angle)) / squared * (k @ k)
    ) * W


def _matrix_by_outer(v):
    angle = tf.norm(v, axis=-1)[:, None, None]
    axis = v / tf.norm(v, axis=-1, keepdims=True)
    outer = axis[:, :, None] * axis[:, None, :]
    cosine = tf.cos(angle)
    return (cosine * tf.eye(3) + (1 - cosine) * outer + tf.sin(angle) * _skew(axis)) * W


def _rotated(v, p):
    angle = tf.norm(v, axis=-1, keepdims=True)
    axis = v / angle
    p = tf.broadcast_to(p, tf.shape(v))
    along = tf.reduce_sum(axis * p, -1, keepdims=True)
    return W[0] * (
        p * tf.cos(angle)
        + tf.linalg.cross(axis, p) * tf.sin(angle)
        + axis * along * (1.0 - tf.cos(angle))
    )


def _rotated_by_vectors(v, p):
    k = _skew(v)
    angle = tf.norm(v, axis=-1)[:, None, None]
    a, b = tf.sin(angle) / angle, (1 - tf.cos(angle)) / angle**2
    turned = tf.eye(3) + a * k + b * tf.matmul(k, k)
    return W[0] * tf.linalg.matvec(turned, p)


def _left_jacobian(v):
    angle = tf.norm(v, axis=-1)[:, None, None]
    k = _skew(v)
    return W * (
        tf.eye(3)
        + (1 - tf.cos(angle)) / angle**2 * k
        + (angle - tf.sin(angle)) / angle**3 * (k @ k)
    )


def _exact_left_jacobian(v):
    total = 0
    for row in off_zero(v):
        t, k = m.sqrt((row * row).sum()), _exact_skew(row)
        jacobian = (
            np.eye(3) + (1 - m.cos(t)) / t**2 * k + (t - m.sin(t)) / t**3 * k.dot(k)
        )
        total += (jacobian * WEIGHTS).sum()
    return total


def _log_of_quaternion(w, u):
    sine = tf.norm(u, axis=-1, keepdims=True)
    angle = 2.0 * tf.atan2(sine, w[:, None])
    return angle * u / sine * W[0]


def _exact_log_of_quaternion(w, u):
    u = off_zero(u)
    sine = m.sqrt((u * u).sum(-1))
    return (2 * m.atan2(sine, w) / sine * (u * WEIGHTS[0]).sum(-1)).sum()


def _axis_of_quaternion(w, u):
    angle = 2.0 * tf.acos(w)
    return (angle / tf.sqrt(1.0 - w * w))[:, None] * u


def _log_of_matrix(cosine, v):
    angle = tf.acos(cosine)
    return angle / (2.0 * tf.sin(angle)) * v


def _angle_over_sine(c):
    # Beside 1, both sides of the quotient are imaginary.
    c = 1 + off_zero(c - 1)
    return m.re(m.acos(c) / m.sqrt(1 - c * c))


def _slerp(c, t):
    angle = tf.acos(c)
    return tf.sin(t * angle) / tf.sin(angle) * W[0]


def _exact_slerp(c, t):
    angle = m.acos(1 + off_zero(c - 1))
    return (m.re(m.sin(t * angle) / m.sin(angle)) * WEIGHTS[0]).sum()


def _stumpff(z):
    root = tf.sqrt(z)
    return (1 - tf.cos(root)) / z * W[0] + (root - tf.sin(root)) / root**3 * W[1]


def _exact_stumpff(z):
    z = off_zero(z)
    root = m.sqrt(z)
    third = (root - m.sin(root)) / root**3
    return m.re((1 - m.cos(root)) / z * WEIGHTS[0] + third * WEIGHTS[1]).sum()


def _separation(a, b):
    first, second = (
        tf.stack([
            tf.cos(e[0]) * tf.cos(e[1]),
            tf.cos(e[0]) * tf.sin(e[1]),
            tf.sin(e[0]),
        ])
        for e in (a, b)
    )
    return tf.acos(tf.reduce_sum(first * second, 0))


def _exact_separation(a, b):
    across = m.cos(a[0]) * m.cos(b[0]) * m.cos(a[1] - b[1])
    return m.acos(m.sin(a[0]) * m.sin(b[0]) + across)


def _of(name, function, exact, *others, bad=ROWS, ordinary=FAR):
    return Formula(name, function, exact, [bad, *others], [ordinary, *others])


FORMULAS = [
    _of(
        "quaternion of a unit axis and an angle",
        _quaternion_of_units,
        _exact_quaternions,
    ),
    _of("quaternion by concat of rows", _quaternion_by_concat, _exact_quaternions),
    _of("rotation matrix of a unit axis", _matrix_of_units, _exact_matrices),
    _of("rotation matrix with the squared angle", _matrix_of_squares, _exact_matrices),
    _of("rotation matrix by an outer product", _matrix_by_outer, _exact_matrices),
    _of("rows rotated by Rodrigues' formula", _rotated, _exact_rotated, POINT),
    _of(
        "rows rotated by the exponential map",
        _rotated_by_vectors,
        _exact_rotated,
        POINT,
    ),
    _of("left Jacobian of SO(3)", _left_jacobian, _exact_left_jacobian),
    Formula(
        "logarithm of a unit quaternion",
        _log_of_quaternion,
        _exact_log_of_quaternion,
        [[1.0, 1.0, 0.9], ROWS],
        [[0.5, -0.2, 0.9], FAR],
    ),
    Formula(
        "weights of a spherical interpolation by the cosine",
        _slerp,
        _exact_slerp,
        [[1.0, 0.9999, 0.5], [0.25, 0.5, 0.75]],
        [[0.3, -0.6, 0.5], [0.25, 0.5, 0.75]],
    ),
    _of(
        "Stumpff's functions",
        _stumpff,
        _exact_stumpff,
        bad=[0.0, 1e-4, 1.5],
        ordinary=[0.5, 1.5, 4.0],
    ),
    Formula(
        "angle between two directions on the sky",
        _separation,
        _exact_separation,
        [[0.25, 0.5], [0.25390625, 0.50390625]],
        [[0.25, 0.5], [-1.0, 2.0]],
    ),
    Formula(
        "rotation vector by the inverse cosine",
        _axis_of_quaternion,
        lambda w, u: (2 * _angle_over_sine(w)[:, None] * u).sum(),
        [[1.0, 1.0 - 1e-6, 0.9], ROWS],
        [[0.5, 0.2, 0.9], FAR],
    ),
    Formula(
        "rotation vector by the trace",
        _log_of_matrix,
        lambda c, v: (_angle_over_sine(c) / 2 * v).sum(),
        [[1.0, 1.0 - 1e-6, 0.9], POINT],
        [[0.5, 0.2, 0.9], POINT],
    ),
]
