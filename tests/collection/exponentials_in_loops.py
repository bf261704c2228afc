"""Products and sums of exponentials carried through loops."""

import numpy as np
import tensorflow as tf

from tests.collection.formula import Formula, m

T = 60
TRANSITION = np.array([[0.9, 0.1], [0.2, 0.8]], np.float32)


def _forward_algorithm(log_emission):
    emission = tf.exp(log_emission)

    def step(alpha, e):
        return tf.linalg.matvec(TRANSITION, alpha, transpose_a=True) * e

    alphas = tf.scan(step, emission[1:], initializer=0.5 * emission[0])
    return tf.math.log(tf.reduce_sum(alphas[-1]))


def _exact_forward(log_emission):
    e = m.exp(log_emission)
    alpha = e[0] / 2
    a = np.array([[m.mpf(float(x)) for x in row] for row in TRANSITION], object)
    for row in e[1:]:
        alpha = (alpha[:, None] * a).sum(0) * row
    return m.log(alpha.sum())


def _forward_loop(log_emission):
    emission = tf.exp(log_emission)
    steps = tf.shape(emission)[0]

    def body(i, alpha):
        return i + 1, tf.linalg.matvec(TRANSITION, alpha, transpose_a=True) * emission[
            i
        ]

    _, alpha = tf.while_loop(lambda i, _: i < steps, body, (1, 0.5 * emission[0]))
    return tf.math.log(tf.reduce_sum(alpha))


def _partition(scores):
    z = tf.exp(scores[0])
    for i in range(1, 12):
        z = tf.reduce_sum(z[:, None] * tf.exp(scores[i])[None, :] * TRANSITION, 0)
    return tf.math.log(tf.reduce_sum(z))


def _exact_partition(scores):
    e = m.exp(scores)
    a = np.array([[m.mpf(float(x)) for x in row] for row in TRANSITION], object)
    z = e[0]
    for row in e[1:12]:
        z = (z[:, None] * row[None, :] * a).sum(0)
    return m.log(z.sum())


def _scaled_messages(scores):
    message, log_scale = tf.ones_like(scores[0]), 0.0
    for i in range(6):
        message = tf.linalg.matvec(TRANSITION, message * tf.exp(scores[i]))
        scale = tf.reduce_max(message)
        message /= scale
        log_scale += tf.math.log(scale)
    return log_scale


def _exact_scaled_messages(scores):
    a = np.array([[m.mpf(float(x)) for x in row] for row in TRANSITION], object)
    message = np.array([m.mpf(1)] * 2, object)
    for row in m.exp(scores[:6]):
        message = (a * (message * row)).sum(-1)
    return m.log(max(message))


def _sinkhorn(cost):
    kernel = tf.exp(-cost / 0.05)
    u = tf.ones([3]) / 3
    for _ in range(8):
        v = (1 / 3) / tf.linalg.matvec(kernel, u, transpose_a=True)
        u = (1 / 3) / tf.linalg.matvec(kernel, v)
    return tf.reduce_sum(u[:, None] * kernel * v[None, :] * cost)


def _exact_sinkhorn(cost):
    third, eps = m.mpf(float(np.float32(1 / 3))), m.mpf(float(np.float32(0.05)))
    kernel = m.exp(-cost / eps)
    u = np.array([m.mpf(1) / 3] * 3, object)
    for _ in range(8):
        v = third / (kernel * u[:, None]).sum(0)
        u = third / (kernel * v[None, :]).sum(1)
    return (u[:, None] * kernel * v[None, :] * cost).sum()


def _sinkhorn_loop(cost):
    kernel = tf.exp(-cost / 0.05)

    def body(i, u, _):
        v = (1 / 3) / tf.linalg.matvec(kernel, u, transpose_a=True)
        return i + 1, (1 / 3) / tf.linalg.matvec(kernel, v), v

    start = tf.ones([3]) / 3
    _, u, v = tf.while_loop(lambda i, *_: i < 8, body, (0, start, start))
    return tf.reduce_sum(u[:, None] * kernel * v[None, :] * cost)


def _wkv(k, v):
    def step(state, x):
        top, bottom = state
        weight = tf.exp(x[0])
        return 0.9 * top + weight * x[1], 0.9 * bottom + weight

    top, bottom = tf.scan(step, tf.stack([k, v], -1), initializer=(0.0, 0.0))
    return top / bottom


def _exact_wkv(k, v):
    top = bottom = total = 0
    for a, b in zip(m.exp(k), v):
        top = m.mpf(float(np.float32(0.9))) * top + a * b
        bottom = m.mpf(float(np.float32(0.9))) * bottom + a
        total += top / bottom
    return total


def _running_softmax(x):
    e = tf.exp(x)
    return e / tf.cumsum(e)


def _linear_attention(q, k, v):
    q, k = tf.nn.elu(q) + 1, tf.nn.elu(k) + 1
    top = tf.cumsum(k[:, :, None] * v[:, None, :], 0)
    bottom = tf.cumsum(k, 0)
    return tf.einsum("td,tde->te", q, top) / tf.reduce_sum(
        q * bottom, -1, keepdims=True
    )


def _exact_linear_attention(q, k, v):
    q = np.where(q > 0, q + 1, m.exp(q))
    k = np.where(k > 0, k + 1, m.exp(k))
    total = 0
    for t in range(len(q)):
        weights = (q[t][None, :] * k[: t + 1]).sum(-1)
        total += (weights[:, None] * v[: t + 1]).sum() / weights.sum()
    return total


def _survival(hazard):
    s = tf.constant(1.0)
    out = []
    for i in range(5):
        s = s * (1 - tf.sigmoid(hazard[i]))
        out.append(tf.math.log(s))
    return tf.stack(out)


def _exact_survival(hazard):
    logs = -m.log1p(m.exp(hazard))
    return sum(logs[: i + 1].sum() for i in range(5))


def _likelihood_scan(logits):
    p = tf.scan(lambda a, x: a * tf.sigmoid(x), logits, initializer=1.0)
    return -tf.math.log(p[-1])


LONG = np.linspace(-6.0, -4.0, 2 * T).reshape(T, 2)
SHORT = np.linspace(-2.0, -1.0, 8).reshape(4, 2)
COST = [[0.0, 6.0, 8.0], [7.0, 0.5, 6.0], [9.0, 8.0, 0.25]]


def _running_mean(k, v):
    e = tf.exp(k)
    return tf.cumsum(e * v) / tf.cumsum(e)


def _exact_running_mean(k, v):
    e = m.exp(k)
    return sum((e * v)[: i + 1].sum() / e[: i + 1].sum() for i in range(len(k)))


def _alignments(logits):
    def step(a, x):
        return (a + tf.pad(a, [[1, 0]])[:-1]) * tf.exp(x)

    start = tf.exp(logits[0]) * tf.constant([1.0, 1.0, 0.0])
    return -tf.math.log(tf.scan(step, logits[1:], start)[-1][-1])


def _exact_alignments(logits):
    a = m.exp(logits[0]) * np.array([1, 1, 0], object)
    for x in m.exp(logits[1:]):
        a = (a + np.array([0, *a[:-1]], object)) * x
    return -m.log(a[-1])


def _transfer_matrix(energy):
    matrix = power = tf.exp(energy)
    for _ in range(5):
        power = power @ matrix
    return tf.math.log(tf.linalg.trace(power))


def _exact_transfer_matrix(energy):
    matrix = power = m.exp(energy)
    for _ in range(5):
        power = power.dot(matrix)
    return m.log(power[0, 0] + power[1, 1])


def _attention_scan(k, v):
    def step(state, x):
        top, bottom, _ = state
        weight = tf.exp(x[0])
        top, bottom = 0.9 * top + weight * x[1], 0.9 * bottom + weight
        return top, bottom, top / bottom

    start = (tf.zeros([]), tf.zeros([]), tf.zeros([]))
    return tf.scan(step, tf.stack([k, v], -1), start)[2]


def _captured_gates(k, v):
    def body(t, top, bottom):
        weight = tf.exp(k[t])
        return t + 1, 0.9 * top + weight * v[t], 0.9 * bottom + weight

    start = (0, tf.zeros([]), tf.zeros([]))
    _, top, bottom = tf.while_loop(
        lambda t, *_: t < 4, body, start, maximum_iterations=4
    )
    return top / bottom


def _exact_last_wkv(k, v):
    return _exact_wkv(k, v) - _exact_wkv(k[:-1], v[:-1])


def _doubly_stochastic(x):
    def body(p):
        p = p / tf.reduce_sum(p, 1, keepdims=True)
        return p / tf.reduce_sum(p, 0, keepdims=True)

    p = tf.while_loop(
        lambda _: True, lambda p: [body(p)], [tf.exp(x)], maximum_iterations=4
    )
    return p[0] * RANKS


def _exact_doubly_stochastic(x):
    p = m.exp(x)
    for _ in range(4):
        p = p / p.sum(1)[:, None]
        p = p / p.sum(0)[None, :]
    return p * RANKS.astype(int)


RANKS = np.array([[1, 2, 3], [4, 5, 6], [7, 8, 0]], np.float32)
FAR_GATES = [1.0, 95.0, 3.0, -120.0]
NEAR_GATES = [1.0, 2.0, 0.5, -1.0]
GATED = [0.5, -0.2, 0.3, 0.1]

FORMULAS = [
    Formula(
        "weighted running mean divided inside the scan",
        _attention_scan,
        _exact_wkv,
        [FAR_GATES, GATED],
        [NEAR_GATES, GATED],
    ),
    Formula(
        "weighted mean whose gates a loop captures",
        _captured_gates,
        _exact_last_wkv,
        [FAR_GATES, GATED],
        [NEAR_GATES, GATED],
    ),
    Formula(
        "matrix of exponentials made doubly stochastic in a loop",
        _doubly_stochastic,
        _exact_doubly_stochastic,
        [np.array(COST) * 20],
        [np.array(COST) / 4],
        slopes="finite",
    ),
    Formula(
        "running mean with weights by exp",
        _running_mean,
        _exact_running_mean,
        [[100.0, -3.0, 98.0, 101.0], [1.0, 2.0, -3.0, 4.0]],
        [[1.0, -0.3, 0.5, 0.1], [1.0, 2.0, -3.0, 4.0]],
    ),
    Formula(
        "alignments by scan, the state shifted by a pad",
        _alignments,
        _exact_alignments,
        [[[-40.0, -42.0, -41.0]] * 6],
        [[[-1.0, -0.5, -2.0]] * 6],
    ),
    Formula(
        "trace of a power of a transfer matrix",
        _transfer_matrix,
        _exact_transfer_matrix,
        [[[21.0, -19.0], [-20.0, 20.0]]],
        [[[0.3, -0.1], [-0.2, 0.1]]],
    ),
    Formula(
        "Sinkhorn iterations in a loop, no row near its column",
        _sinkhorn_loop,
        _exact_sinkhorn,
        [np.array(COST) + 5],
        [np.array(COST) / 40],
    ),
    Formula(
        "forward algorithm by scan", _forward_algorithm, _exact_forward, [LONG], [SHORT]
    ),
    Formula(
        "forward algorithm by while_loop",
        _forward_loop,
        _exact_forward,
        [LONG],
        [SHORT],
    ),
    Formula(
        "partition function of a chain, unrolled",
        _partition,
        _exact_partition,
        [np.linspace(-12.0, -8.0, 24).reshape(12, 2)],
        [np.linspace(-1.0, 1.0, 24).reshape(12, 2)],
    ),
    Formula(
        "messages divided by the largest, unrolled",
        _scaled_messages,
        _exact_scaled_messages,
        [np.linspace(-112.0, -98.0, 12).reshape(6, 2)],
        [np.linspace(-1.0, 1.0, 12).reshape(6, 2)],
    ),
    Formula(
        "Sinkhorn iterations, unrolled",
        _sinkhorn,
        _exact_sinkhorn,
        [COST],
        [np.array(COST) / 40],
    ),
    Formula(
        "Sinkhorn iterations in a loop",
        _sinkhorn_loop,
        _exact_sinkhorn,
        [COST],
        [np.array(COST) / 40],
    ),
    Formula(
        "weighted running mean with exponential gates",
        _wkv,
        _exact_wkv,
        [[1.0, 95.0, 3.0, -120.0], [0.5, -0.2, 0.3, 0.1]],
        [[1.0, 2.0, 0.5, -1.0], [0.5, -0.2, 0.3, 0.1]],
    ),
    Formula(
        "causal softmax by cumsum",
        _running_softmax,
        lambda x: sum(m.exp(x[i]) / m.exp(x[: i + 1]).sum() for i in range(len(x))),
        [[1.0, 95.0, 3.0, -120.0]],
        [[1.0, 2.0, 0.5, -1.0]],
    ),
    Formula(
        "linear attention with elu + 1",
        _linear_attention,
        _exact_linear_attention,
        [
            [[-120.0, -130.0], [1.0, 2.0]],
            [[-1.0, -120.0], [0.5, 0.1]],
            [[1.0, 2.0], [3.0, -1.0]],
        ],
        [
            [[-1.0, -0.5], [1.0, 2.0]],
            [[-1.0, -0.3], [0.5, 0.1]],
            [[1.0, 2.0], [3.0, -1.0]],
        ],
    ),
    Formula(
        "survival by a product of complements",
        _survival,
        _exact_survival,
        [[10.0, 30.0, 40.0, 5.0, 60.0]],
        [[0.1, 0.3, -0.4, 0.5, -1.0]],
    ),
    Formula(
        "likelihood of a path as a scanned product",
        _likelihood_scan,
        lambda x: m.log1p(m.exp(-x)).sum(),
        [[-40.0, -30.0, -50.0]],
        [[-0.4, 0.3, 0.5]],
    ),
]
