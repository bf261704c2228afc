"""What, where, when, which sample, why, since when, how far, what to write, again."""

import dataclasses
import re

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfsafe
from tests.support.oracle import assert_close
from tfsafe import debugging
from tfsafe.debugging.explain.suggestions import source_names
from tfsafe.debugging.models.step import noted


def caught_in(call):
    with pytest.raises(tfsafe.NumericsError) as caught:
        call()
    return caught.value


def words_of(error):
    return str(error).replace("\n" + " " * 9, " ")


def fitted(model, *data, **options):
    monitor = tfsafe.NumericsMonitor(**options)
    keywords = {"batch_size": 2, "shuffle": False, "verbose": 0}
    return lambda: model.fit(*data, callbacks=[monitor], **keywords)


def line(optimizer, loss="mse", metrics=()):
    """Returns a model `w * x` with w = 1."""
    dense = keras.layers.Dense(1, use_bias=False, kernel_initializer="ones", name="w")
    model = keras.Sequential([keras.Input([1]), dense])
    model.compile(optimizer, loss, metrics=list(metrics))
    return model


def test_slots_and_metrics_are_not_reached_and_the_batch_without_labels_is_x():
    class Mean(keras.Model):
        def train_step(self, x):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(self(x))
            gradients = tape.gradient(loss, self.trainable_weights)
            self.optimizer.apply(gradients, self.trainable_weights)
            self._loss_tracker.update_state(loss)
            return {"loss": loss}

    model = Mean(*_line_of())
    model.compile("adam", "mse")
    x = np.array([[1.0], [np.nan]], "float32")
    error = caught_in(fitted(model, x))
    assert error.reached == ("output['loss']", "variable `w/kernel`")
    assert "NaN in argument `x`, first in row 1" in str(error)
    assert 'check_finite(x, policy="report")' not in str(error)


def _line_of():
    inputs = keras.Input([1])
    return inputs, keras.layers.Dense(1, use_bias=False, name="w")(inputs)


def test_the_weights_of_the_samples_are_part_of_the_suggested_check():
    model = line("sgd")
    x, weights = np.ones([2, 1], "float32"), np.array([1.0, np.nan], "float32")

    def train():
        monitor = tfsafe.NumericsMonitor()
        model.fit(x, x, sample_weight=weights, verbose=0, callbacks=[monitor])

    finding = caught_in(train).findings[0]
    code = finding.suggested_code
    assert code == 'tfsafe.data.check_finite((x, x, weights), policy="report")'
    report = eval(code, {"tfsafe": tfsafe, "x": x, "weights": weights})
    assert "row 1" in str(report)


def test_labels_that_are_nan_throughout_are_told_to_be_numbered():
    x, labels = np.ones([4, 1], "float32"), np.array(["yes", "no", "no", "yes"])
    y = np.full([4], np.nan, "float32")
    finding = caught_in(fitted(line("sgd"), x, y)).findings[0]
    assert "before the training. All values are NaN" in finding.suggestion
    (code,) = re.findall(r"np\.unique\(.*\)\[1\]", finding.suggestion)
    numbers = eval(code, {"np": np, "labels": labels})
    line("sgd").fit(x, numbers, verbose=0, callbacks=[tfsafe.NumericsMonitor()])
    y[0] = 1.0
    finding = caught_in(fitted(line("sgd"), x, y)).findings[0]
    assert finding.suggestion.endswith('policy="drop" removes them.')


def test_a_loop_over_a_data_set_is_told_to_check_the_data_set():
    data = tf.data.Dataset.from_tensor_slices([1.0, np.nan]).batch(1)
    mean = tfsafe.checked(tf.function(lambda x: tf.reduce_mean(x)))

    def train():
        for _, x in enumerate(data):
            mean(x)

    error = caught_in(train)
    expected = 'tfsafe.data.check_finite(data, policy="report")'
    assert error.findings[0].suggested_code == expected
    assert "when:  call 2 of this function" in str(error)


def test_fit_with_a_safe_optimizer_remembers_the_norms_of_the_gradients():
    """The slope of `(x - y)^2` at w = 1 is `2 x (x - y)`; the rate is 0."""
    model = line(tfsafe.SafeOptimizer(keras.optimizers.SGD(0.0)))
    x = np.array([1.0, 2, 3, 4, 5, 200, np.nan], "float32")[:, None]
    monitor = tfsafe.NumericsMonitor(policy="raise")
    error = caught_in(
        lambda: model.fit(
            x, x - 1, batch_size=1, shuffle=False, verbose=0, callbacks=[monitor]
        )
    )
    assert_close(error.gradient_norms, 2 * x[:6, 0], dtype="float32")
    assert error.largest_updates == ()
    text = words_of(error)
    assert "the loss was steady, but the gradient norm grew over 1 step, from" in text
    assert "clipnorm=1.0). Gradient norm \u2581" in text
    assert " 2 to 400." in text


@pytest.mark.parametrize("jit", [False, True], ids=["graph", "xla"])
@pytest.mark.parametrize("scaled", [False, True], ids=["plain", "scaled"])
def test_watch_remembers_the_norms_of_any_optimizer(jit, scaled):
    optimizer = keras.optimizers.SGD(0.0)
    if scaled:
        optimizer = keras.optimizers.LossScaleOptimizer(optimizer, initial_scale=8.0)
    model = line(optimizer)
    model.jit_compile = jit
    x = np.array([1.0, 2, 3, 4, 5, 6, np.nan], "float32")[:, None]
    monitor = tfsafe.NumericsMonitor(policy="raise")
    keywords = {"batch_size": 1, "shuffle": False, "verbose": 0}
    error = caught_in(lambda: model.fit(x, x - 1, callbacks=[monitor], **keywords))
    # The scale of the first step is not known before it.
    assert_close(error.gradient_norms[scaled:], 2 * x[scaled:6, 0], dtype="float32")
    assert error.largest_updates == ()


def test_the_notes_of_watch_are_one_operation_a_gradient_and_two():
    counts = []
    for level in (None, "watch"):
        model = keras.Sequential([keras.Input([3]), *map(keras.layers.Dense, (4, 2))])
        model.compile("adam", "mse")
        optimizer = None if level is None else model.optimizer
        model.optimizer.build(model.trainable_variables)

        @tf.function
        def step(x, model=model, optimizer=optimizer, level=level):
            with noted(optimizer, level) as found:
                results = model.train_step((x, x[:, :2]))
            return {**results, **found}

        graph = step.get_concrete_function(tf.ones([5, 3])).graph
        types = [each.type for each in graph.get_operations()]
        counts.append(len(types) - types.count("Identity") - types.count("NoOp"))
    assert counts[1] - counts[0] == 4 + 2


def test_domain_checks_remember_the_largest_change_of_a_weight():
    x = np.array([1.0, 2, 3, 4, 5, np.nan], "float32")[:, None]
    model = line(keras.optimizers.SGD(1e-3), loss=lambda y, p: p)
    monitor = tfsafe.NumericsMonitor(checks="domain")
    error = caught_in(
        lambda: model.fit(
            x, x, batch_size=1, shuffle=False, verbose=0, callbacks=[monitor]
        )
    )
    assert_close(error.gradient_norms, x[:5, 0], dtype="float32")
    assert_close(
        error.largest_updates, 1e-3 * x[:5, 0], 0.5, scale=1.0, dtype="float32"
    )
    page = error.to_html()
    for name in ("loss", "gradient norm", "largest update"):
        assert f"<strong>{name.capitalize()}</strong>" in page


def test_the_page_answers_the_questions_before_its_first_picture():
    error = caught_in(lambda: tfsafe.checked(tf.function(tf.math.log))(tf.zeros([2])))
    head = error.to_html().partition("<h2>")[0]
    for question in ("Why", "What to write", "What it reached", "See it again"):
        assert f"<dt>{question}</dt>" in head
    assert "<dt>Which sample</dt><dd>Every row of the batch</dd>" in head


def test_the_page_says_what_the_suggestion_costs_where_it_was_measured():
    def quotient(x):
        return x / tf.reduce_sum(x)

    def exploded(x):
        return x * 1e30

    for function, words in (
        (
            quotient,
            r"<code>tfsafe.ops.divide</code> takes \d\.\d to \d\.\d times as long",
        ),
        (
            exploded,
            r"A step takes .* with <code>tfsafe.optimizers.SafeOptimizer</code>",
        ),
        (tf.square, "One pass over the data, before the training</dd>"),
    ):
        x = tf.constant([np.nan if function is tf.square else 0.0, 0.0])
        x += 1e20 * (function is exploded)
        error = caught_in(lambda f=function, x=x: tfsafe.checked(tf.function(f))(x))
        assert re.search(f"<dt>What it costs</dt><dd>{words}", error.to_html())
    # A bound of the argument was not measured.
    error = caught_in(
        lambda: tfsafe.checked(tf.function(tf.math.lgamma))(tf.zeros([2]))
    )
    assert "<dt>What it costs</dt>" not in error.to_html()


@pytest.mark.parametrize(
    ("step", "words"),
    [(0, "This is the first step"), (2, "Too early to say: only 2 steps before it")],
)
def test_a_batch_that_was_non_finite_in_an_early_step_answers_too(step, words):
    x = np.ones([6, 1], "float32")
    x[2 * step] = np.nan
    error = caught_in(fitted(line("sgd"), x, np.ones([6, 1])))
    head = error.to_html().partition("<h2>")[0]
    assert "<dt>Where</dt><dd>Argument <code>x</code>, before any operation" in head
    assert f"<dt>Since when</dt><dd>{words}</dd>" in head


def test_the_row_of_an_embedded_text_without_words_and_a_call_beside_a_product():
    table = tf.Variable(tf.ones([5, 2]))

    @tfsafe.checked
    @tf.function
    def attention(tokens):
        x = tf.nn.embedding_lookup(table, tokens)
        scores = tf.where(tokens[:, None] != 0, x @ tf.transpose(x, [0, 2, 1]), -np.inf)
        return tf.nn.softmax(scores) @ x

    error = caught_in(lambda: attention(tf.constant([[1, 2], [3, 0], [0, 0]])))
    assert error.findings[0].row == 2
    assert error.findings[0].suggested_code == "tfsafe.ops.softmax(scores)"


def test_the_row_behind_a_mask_of_tokens():
    @tfsafe.checked
    @tf.function
    def mean(tokens):
        keep = tf.cast(tf.logical_not(tokens == 0), tf.float32)
        weights = tf.ones([4, 2, 3]) * tf.expand_dims(keep, 1)
        return weights / tf.reduce_sum(weights, -1, keepdims=True)

    error = caught_in(
        lambda: mean(tf.constant([[1, 2, 3], [4, 5, 6], [0] * 3, [7] * 3]))
    )
    assert error.findings[0].row == 2


def test_the_row_behind_a_spectrum():
    @tfsafe.checked
    @tf.function
    def log_mel(waves):
        power = tf.abs(tf.signal.stft(waves, 8, 4)) ** 2
        return tf.math.log(power @ tf.ones([5, 2]))

    waves = np.ones([3, 32], "float32")
    waves[1] = 0.0
    finding = caught_in(lambda: log_mel(tf.constant(waves))).findings[0]
    assert finding.row == 1
    assert "tf.maximum(power @ tf.ones([5, 2]), 1e-6)" in finding.suggestion


def test_a_label_outside_the_classes_under_xla():
    @tfsafe.checked
    @tf.function(jit_compile=True)
    def loss(labels, logits):
        return tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)

    finding = caught_in(lambda: loss(tf.constant([0, 3, 1]), tf.zeros([3, 3])))
    (finding,) = finding.findings
    assert finding.op_type == "SparseSoftmaxCrossEntropyWithLogits"
    assert finding.site.source.startswith("return tf.nn.sparse_softmax")
    assert finding.row == 1
    assert finding.cause == (
        "a label value of 3 is outside the valid range of [0, 3) (at (1,))."
    )
    assert "number the classes from 0" in finding.suggestion


@pytest.mark.parametrize(
    ("x", "weights", "words"),
    [
        ([[np.nan] * 2, [1.0] * 2], [1.0, 1.0], "may be the header of a file"),
        ([[1.0] * 2] * 2, [1.0, np.inf], "1 / np.maximum(count, 1) is finite"),
        ([[0.0, -np.inf], [1.0] * 2], [1.0, 1.0], "may be a logarithm of 0"),
        ([[0.0, np.inf], [1.0] * 2], [1.0, 1.0], "may be a quotient by 0"),
        ([[0.0, -np.inf], [np.inf, 1.0]], [1.0, 1.0], "may be a quotient by 0"),
    ],
)
def test_what_numpy_made_of_the_data_is_recognised(x, weights, words):
    model = keras.Sequential([keras.Input([2]), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    x, y, sample_weight = (np.array(each) for each in (x, [1.0, 2.0], weights))
    monitors = [tfsafe.NumericsMonitor()]
    with pytest.raises(tfsafe.NumericsError) as caught:
        model.fit(x, y, sample_weight=sample_weight, callbacks=monitors, verbose=0)
    assert words in caught.value.findings[0].suggestion


def test_an_image_that_is_nan_throughout_may_have_had_one_colour():
    images = np.ones([4, 2, 2], "float32")
    images[:3, 0] = 0.0
    low, high = images.min((1, 2), keepdims=True), images.max((1, 2), keepdims=True)
    with np.errstate(invalid="ignore"):
        scaled = (images - low) / (high - low)
    model = keras.Sequential([
        keras.Input([2, 2]),
        keras.layers.Flatten(),
        keras.layers.Dense(1),
    ])
    model.compile("sgd", "mse")
    words = caught_in(fitted(model, scaled, np.ones(4))).findings[0].suggestion
    assert "an image of one colour" in words
    assert "header" not in words
    fitted(model, (images - low) / np.where(high > low, high - low, 1), np.ones(4))()


def test_a_bias_that_begins_with_the_logarithm_of_0_may_be_of_numpy():
    shares = np.array([0.5, 0.0, 0.5])
    with np.errstate(divide="ignore"):
        start = keras.initializers.Constant(np.log(shares))
    layer = keras.layers.Dense(3, bias_initializer=start)
    model = keras.Sequential([keras.Input([2]), layer])
    model.compile("sgd", "mse")
    finding = caught_in(fitted(model, np.ones([4, 2]), np.ones([4, 3]))).findings[0]
    assert "np.log(np.maximum(x, 1e-6))" in finding.suggestion


def test_a_word_without_a_vector_is_the_row_of_the_table_that_is_named():
    table = np.ones([3, 2], "float32")
    table[1] = np.nan
    start = keras.initializers.Constant(table)
    embedding = keras.layers.Embedding(3, 2, embeddings_initializer=start)
    model = keras.Sequential([keras.Input([1]), embedding, keras.layers.Flatten()])
    model.compile("sgd", "mse")
    error = caught_in(fitted(model, np.ones([2, 1]), np.ones([2, 2])))
    words = error.findings[0].suggestion
    assert "Row 1 is NaN throughout" in words
    assert "checkpoint" in words


def test_a_label_below_0_is_told_to_be_numbered_with_all_others():
    model = keras.Sequential([keras.Input([2]), keras.layers.Dense(2)])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("sgd", loss, jit_compile=True)
    x, y = np.ones([4, 2], "float32"), np.array([1, -1, 1, 1])
    finding = caught_in(fitted(model, x, y)).findings[0]
    assert finding.cause.startswith("a label value of -1 is outside the valid range")
    code = "np.unique(labels, return_inverse=True)[1]"
    assert code in finding.suggestion
    fitted(model, x, eval(code, {"np": np, "labels": y}))()


@pytest.mark.parametrize(
    ("matrix", "cause", "suggestion"),
    [
        ([[1.0, 1.0], [1.0, 1.0]], "the matrix is singular.", "tfsafe.ops.cholesky(k)"),
        (
            [[1.0, 2.0], [2.0, 1.0]],
            "the matrix has the eigenvalue -1, and so no Cholesky factor.",
            "k + 1e-3 * tf.eye(tf.shape(k)[-1])",
        ),
    ],
)
def test_a_matrix_that_is_not_positive_definite(matrix, cause, suggestion):
    @tfsafe.checked
    @tf.function
    def factor(k):
        return tf.linalg.cholesky(k)

    batch = tf.stack([tf.eye(2), tf.constant(matrix)])
    (finding,) = caught_in(lambda: factor(batch)).findings
    assert finding.cause == cause
    assert suggestion in f"{finding.suggested_code} {finding.suggestion}"


def test_the_columns_of_a_data_frame_are_named():
    class Frame(np.ndarray):
        columns = ("age", "income", "rate")

    x = np.ones([4, 3], "float32")
    x[2, 1:] = np.inf
    model = keras.Sequential([keras.Input([3]), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    error = caught_in(fitted(model, x.view(Frame), x[:, :1]))
    assert error.sample.words == "columns income, rate"
    page = error.to_html()
    assert "Row 0 of x: columns income, rate not finite" in page
    assert "<th>age</th>" in page


def test_code_in_the_cause_is_code_on_the_page():
    root = tfsafe.checked(tf.function(tf.math.rsqrt), checks="domain")
    finding = caught_in(lambda: root(tf.zeros([1]))).findings[0]
    finding = dataclasses.replace(finding, cause="`Rsqrt` turns it into 0.")
    page = tfsafe.NumericsError("NaN.", [finding]).to_html()
    assert "<p><code>Rsqrt</code> turns it into 0.</p>" in page


def test_the_logits_of_a_softmax_on_a_line_of_its_own_are_found():
    def loss(logits):
        p = tf.nn.sigmoid(logits)
        p = tf.nn.softmax(logits / 0.001)
        return -tf.reduce_sum(tf.math.log(p))

    # TensorFlow's graph optimizer repairs such a formula where it may.
    place = __file__, loss.__code__.co_firstlineno + 3
    code = "tfsafe.ops.log_softmax({inner})"
    line = "return -tf.reduce_sum(tf.math.log(p))"
    found = source_names.filled("Log", code, source_names.Seen(line, place))
    assert found == "tfsafe.ops.log_softmax(logits / 0.001)"
    assert (
        source_names.filled("Log", code, source_names.Seen("tf.math.log(q)", place))
        == ""
    )
    assert (
        source_names.filled(
            "Log", code, source_names.Seen("tf.math.log(model(x))", place)
        )
        == ""
    )


def test_a_logarithm_with_a_name_has_its_suggestion():
    seen = source_names.Seen('k = p * (tf.math.log(p, "entropy") - y)')
    assert source_names.filled("Log", "{expanded}", seen) == (
        "tfsafe.ops.xlogy(p, p) - p * y"
    )


def test_the_row_is_known_behind_the_layers_of_an_image_network():
    stack = [
        keras.layers.ZeroPadding2D(),
        keras.layers.DepthwiseConv2D(2, depthwise_initializer="ones"),
        keras.layers.ReLU(6.0),
        keras.layers.MaxPooling2D(),
        keras.layers.GlobalAveragePooling2D(),
    ]
    model = keras.Sequential([keras.Input([4, 4, 2]), *stack])
    model.compile(loss=lambda _, p: tf.reduce_mean(tf.math.log(p)))
    x, y = np.ones([4, 4, 4, 2], "float32"), np.ones([4, 2])
    x[2] = 0.0
    monitor = tfsafe.NumericsMonitor()
    error = caught_in(
        lambda: model.fit(x, y, shuffle=False, verbose=0, callbacks=[monitor])
    )
    assert error.findings[0].row == 2


def test_an_optimizer_without_epsilon_is_named():
    model = line(keras.optimizers.Adam(epsilon=0.0))
    finding = caught_in(fitted(model, np.zeros([2, 1]), np.zeros([2, 1]))).findings[0]
    assert finding.op_type == "RealDiv"
    assert finding.suggested_code == "keras.optimizers.Adam(epsilon=1e-7)"
    model.compile(eval(finding.suggested_code), "mse")
    model.fit(np.zeros([2, 1]), np.zeros([2, 1]), verbose=0)
    assert model.layers[0].kernel.numpy() == 1


@pytest.mark.parametrize(
    ("optimizer", "code"),
    [
        (keras.optimizers.Adam(beta_1=1.0), "Adam(beta_1=0.9)"),
        (keras.optimizers.AdamW(beta_2=1.5), "AdamW(beta_2=0.999)"),
        (keras.optimizers.Adamax(beta_1=1.0), "Adamax(beta_1=0.9)"),
        (
            keras.optimizers.AdamW(beta_1=1.0, epsilon=0.0),
            "AdamW(beta_1=0.9, epsilon=0.0)",
        ),
    ],
)
def test_an_optimizer_whose_means_never_move_is_named(optimizer, code):
    x, y = np.ones([2, 1]), np.zeros([2, 1])
    model = line(optimizer)
    finding = caught_in(fitted(model, x, y)).findings[0]
    assert finding.suggested_code == f"keras.optimizers.{code}"
    assert " below 1: at 1 the mean never moves" in finding.suggestion
    model.compile(eval(finding.suggested_code), "mse")
    model.fit(x, y, verbose=0)


def test_a_schedule_that_tells_no_arguments_leaves_the_words():
    class Constant(keras.optimizers.schedules.LearningRateSchedule):
        def __call__(self, step):
            return 0.1

    model = line(keras.optimizers.Adam(Constant(), beta_1=1.0))
    finding = caught_in(fitted(model, np.ones([2, 1]), np.zeros([2, 1]))).findings[0]
    assert finding.suggested_code == ""
    assert finding.suggestion.startswith("give the optimizer beta_1 below 1: ")


def test_another_failure_of_an_optimizer_does_not_blame_its_means():
    model = line(keras.optimizers.Adam(beta_2=1.0, epsilon=0.0))
    finding = caught_in(fitted(model, np.ones([2, 1]), np.zeros([2, 1]))).findings[0]
    assert (finding.op_type, finding.kind) == ("RealDiv", "NaN")


def test_a_replay_suggests_what_the_run_suggested(tmp_path):
    model = line(keras.optimizers.Adam(5.0), loss=lambda y, p: tf.exp(100.0 * p * p))
    x = np.ones([8, 1], "float32")
    error = caught_in(fitted(model, x * 0.5, x))
    assert "Adam moves every weight" in words_of(error)
    error.save(tmp_path / "nan.zip")
    again = debugging.replay(tmp_path / "nan.zip")
    assert again.findings[0].suggestion == error.findings[0].suggestion
    assert again.reached == error.reached
    assert "again:" not in str(again)
