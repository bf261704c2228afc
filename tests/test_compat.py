"""The private names of TensorFlow and Keras still mean what `_compat` thinks."""

import contextlib
import gc
import importlib.util
import inspect
import os
import sys
import threading
import types

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfsafe import _compat
from tfsafe._compat import _keras
from tfsafe.graph import family


def test_keras_optimizers_still_have_the_attributes_that_a_wrapper_passes_on():
    optimizer = keras.optimizers.Adam(use_ema=True)
    variable = keras.Variable([1.0])
    optimizer.build([variable])
    found = {name: getattr(optimizer, name) for name in _compat.OPTIMIZER_INTERNALS}
    assert found["_distribution_strategy"] is tf.distribute.get_strategy()
    assert [v.shape for v in found["_model_variables_moving_average"]] == [(1,)]
    assert found["_trainable_variables"] == [variable]


def test_keras_optimizers_still_report_the_place_of_a_variable():
    variables = [keras.Variable([1.0]), keras.Variable([2.0]), tf.Variable([3.0])]
    optimizer = keras.optimizers.Adam()
    assert _compat.built_variables(optimizer) == []
    optimizer.build(variables)
    assert all(
        found is given
        for found, given in zip(
            _compat.built_variables(optimizer), variables, strict=True
        )
    )
    assert _compat.variable_positions(optimizer, variables[::-1]) == [2, 1, 0]
    with pytest.raises(ValueError, match="Unknown variable"):
        _compat.variable_positions(optimizer, [keras.Variable([1.0])])


def test_keras_optimizers_still_know_a_variable_by_a_key():
    optimizer = keras.optimizers.Adam()
    first, second = keras.Variable([1.0]), keras.Variable([1.0])
    key = _compat.variable_key(optimizer, first)
    assert key == _compat.variable_key(optimizer, first.value)
    assert key != _compat.variable_key(optimizer, second)
    assert _compat.strategy_of(optimizer) is tf.distribute.get_strategy()


def test_keras_optimizers_still_report_what_they_exclude_from_weight_decay():
    names = ("kernel", "bias", "scale")
    kernel, bias, scale = (keras.Variable([1.0], name=name) for name in names)
    other = tf.Variable([1.0], name="bias")
    optimizer = keras.optimizers.SGD(weight_decay=0.1)
    variables = [kernel, bias, scale, other]
    assert _compat.without_weight_decay(optimizer, variables) == []
    optimizer.exclude_from_weight_decay(var_list=[scale], var_names=["bias"])
    found = _compat.without_weight_decay(optimizer, variables)
    assert [id(variable) for variable in found] == [id(bias), id(scale), id(other)]


def test_variables_of_keras_and_its_optimizers_still_hold_tensorflows():
    variable, optimizer = keras.Variable([1.0]), keras.optimizers.SGD()
    for each in (variable, optimizer.iterations):
        assert isinstance(_compat.tf_variable(each), tf.Variable)
    inner = variable.value
    assert _compat.tf_variable(inner) is inner


def test_keras_rmsprop_still_has_the_two_moments_of_the_gradient():
    variable = keras.Variable([1.0])
    optimizer = keras.optimizers.RMSprop(rho=0.5, centered=True)
    optimizer.apply([tf.constant([4.0])], [variable])
    found = _compat.centered_moments(optimizer, variable)
    assert [moment.numpy().tolist() for moment in found] == [[8.0], [2.0]]


def test_a_keras_variable_still_takes_the_path_of_another():
    variable = keras.Variable([1.0], name="a")
    _compat.set_path(variable, "dense/kernel")
    assert (variable.path, variable.name) == ("dense/kernel", "a")


def test_a_cast_tensor_can_carry_the_logits_of_its_origin():
    probs = keras.activations.softmax(tf.constant([[1.0, 2.0]]))
    cast = tf.cast(probs, tf.float64)
    _compat.carry_keras_logits(probs, cast)
    assert _compat.keras_logits(cast) is _compat.keras_logits(probs)
    plain = tf.constant([1.0])
    _compat.carry_keras_logits(tf.constant([1.0]), plain)
    assert _compat.keras_logits(plain) is None


def test_keras_losses_and_metrics_still_keep_the_options_of_their_function():
    assert _compat.loss_options(keras.losses.Huber(delta=2.0)) == {"delta": 2.0}
    assert _compat.loss_options(keras.metrics.CosineSimilarity(axis=1)) == {"axis": 1}
    assert _compat.loss_options(keras.losses.Loss()) == {}


def test_keras_models_still_expose_the_layers_at_any_depth():
    outer = keras.layers.Bidirectional(keras.layers.LSTM(1))
    model = keras.Sequential([keras.Input((2, 3)), keras.Sequential([outer])])
    found = _compat.all_layers(model)
    for layer in (model, outer, outer.forward_layer, outer.backward_layer):
        assert any(layer is each for each in found)
    assert _compat.sublayers(outer) == [outer.forward_layer, outer.backward_layer]


@pytest.mark.parametrize("has_targets", [True, False])
def test_keras_models_can_still_be_built_without_a_step(has_targets):
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile("adam", "mse", metrics=["mae"])
    batch = (tf.ones([2, 3]), tf.ones([2, 1]))
    _compat.build_state(model, batch, has_targets=has_targets)
    assert [v.shape for v in model.variables] == [(3, 1), (1,)]
    assert model.optimizer.built == has_targets
    if has_targets:
        assert len(model.metrics_variables) == 4


def test_tensorflow_still_reports_whether_a_step_must_leave_its_replica():
    assert not _compat.strategy_needs_merge_call()
    with tf.distribute.OneDeviceStrategy("CPU:0").scope():
        assert _compat.strategy_needs_merge_call()


def test_keras_softmax_and_sigmoid_still_attach_their_logits():
    logits = tf.constant([[1.0, 2.0]])
    for activation in (keras.activations.softmax, keras.activations.sigmoid):
        probs = activation(logits)
        assert _compat.keras_logits(probs) is logits
        assert _compat.keras_logits(tf.identity(probs)) is None
    dense = keras.layers.Dense(2, activation="softmax")
    assert _compat.keras_logits(dense(logits)).shape == (1, 2)


def test_keras_layers_still_attach_their_mask():
    masked = keras.layers.Masking()(tf.constant([[[0.0], [1.0]]]))
    assert _compat.keras_mask(masked).numpy().tolist() == [[False, True]]
    assert _compat.keras_mask(tf.constant(1.0)) is None
    x = tf.constant([1.0])
    _compat.set_keras_mask(x, tf.constant([True]))
    assert _compat.keras_mask(x).numpy().tolist() == [True]


def test_a_machine_without_keras_is_reported_to_install_it(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"needs Keras 3. Install it with `pip inst"):
        _compat.require_tensorflow_backend()


def test_keras_2_is_refused_with_the_way_out(monkeypatch):
    monkeypatch.setattr(keras, "__version__", "2.15.0")
    with pytest.raises(
        ImportError, match=r"Received: keras 2.15.0. .*USE_LEGACY_KERAS"
    ):
        _compat.require_tensorflow_backend()


def test_another_backend_that_runs_already_is_refused(monkeypatch):
    monkeypatch.setattr(keras.config, "backend", lambda: "torch")
    with pytest.raises(ImportError, match=r"Received: backend 'torch'. Set KERAS_BACK"):
        _compat.require_tensorflow_backend()


@pytest.mark.parametrize(
    ("variable", "file", "expected"),
    [
        ("jax", '{"backend": "torch"}', "jax"),
        ("", '{"backend": "torch"}', "torch"),
        ("", '{"floatx": "float32"}', "tensorflow"),
        ("", "not JSON", "tensorflow"),
        ("", None, "tensorflow"),
    ],
)
def test_the_backend_is_read_without_keras(
    variable, file, expected, monkeypatch, tmp_path
):
    if file is not None:
        (tmp_path / "keras.json").write_text(file)
    monkeypatch.setenv("KERAS_BACKEND", variable)
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    monkeypatch.delitem(sys.modules, "keras")
    assert _keras._keras_backend() == expected


def test_tensorflow_still_gives_the_graph_of_a_nested_function():
    inner = tf.function(lambda x: tf.sqrt(x), autograph=False)
    outer = tf.function(lambda x: inner(x), autograph=False)
    graph = outer.get_concrete_function(tf.zeros([2])).graph
    (call,) = [op for op in graph.get_operations() if "Call" in op.type]
    nested = _compat.function_graph(graph, call.get_attr("f").name)
    (root,) = [op for op in nested.get_operations() if op.type == "Sqrt"]
    assert root.traceback[-1].lineno > 0
    assert _compat.function_graph(graph, "missing") is None
    with tf.Graph().as_default() as other:
        _compat.share_function(graph, call.get_attr("f").name)
        _compat.share_function(graph, "missing")
    assert [each.signature.name for each in other.as_graph_def().library.function] == [
        call.get_attr("f").name
    ]


def test_tensorflow_still_reports_each_eager_operation():
    seen = []

    def note(op_type, inputs, attrs, outputs, op_name=None, graph=None):
        frame = sys._getframe()
        called = _compat.called_function(frame)
        differentiated = _compat.differentiated(frame)
        seen.append((
            tf.compat.as_str(op_type),
            called and ([op.type for op in called[0].get_operations()], called[1]),
            differentiated and differentiated[0],
            graph is None,
        ))

    traced = tf.function(lambda x: tf.exp(x), autograph=False)
    x = tf.constant(4.0)
    traced(x)
    with _compat.eager_callback(note), tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.sqrt(x)
        tape.gradient(y, x)
        traced(x)
    tf.sqrt(x)
    kinds = {kind: rest for kind, *rest in seen}
    assert kinds["Sqrt"] == [None, None, True]
    assert kinds["SqrtGrad"] == [None, "Sqrt", True]
    (function,) = [rest for kind, *rest in seen if kind.startswith("__")]
    assert "Exp" in function[0][0]
    assert function[0][1] is False
    assert sum(kind == "Sqrt" for kind, *_ in seen) == 1


def test_tensorflow_still_differentiates_inside_the_frames_that_are_known():
    def traces(function):
        graph = tf.function(function).get_concrete_function(tf.zeros([])).graph
        return [
            (op.type, [(os.path.basename(f.filename), f.name) for f in op.traceback])
            for each in family(graph)
            for op in each.get_operations()
        ]

    def root(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.while_loop(lambda i, _: i < 2, lambda i, y: (i, tf.exp(y)), [0, x])[
                1
            ]
            y = tf.sqrt(y)
        return tape.gradient(y, x)

    frames = _compat.GRADIENT_FRAMES
    found = {
        file
        for _, trace in traces(root)
        for file, name in trace
        if frames.get(file) == name
    }
    assert found == set(frames)


def test_autograph_still_keeps_the_map_of_its_lines():
    places = []

    def note(*_, **__):
        frame = sys._getframe()
        while frame is not None:
            places.append(_compat.before_autograph(frame))
            frame = frame.f_back

    def body(x):
        return tf.sin(x)

    with _compat.eager_callback(note):
        tf.map_fn(body, tf.zeros([1]))
    assert (__file__, body.__code__.co_firstlineno + 1, "body") in places


def test_a_line_that_autograph_added_stays_unchanged():
    code = types.SimpleNamespace(
        co_filename="/tmp/__autograph_generated_file1.py", co_name="tf__body"
    )
    caller = types.SimpleNamespace(f_locals={})
    frame = types.SimpleNamespace(f_code=code, f_lineno=3, f_back=caller)
    assert _compat.before_autograph(frame) == (code.co_filename, 3, "tf__body")


def test_a_class_that_keras_lacks_is_refused_when_it_is_made():
    assert _compat.keras_class("layers", "Dense") is keras.layers.Dense
    missing = _compat.keras_class("layers", "LayerOfTheFuture")
    with pytest.raises(ImportError, match=r"needs a later Keras.*LayerOfTheFuture"):
        missing(3)


@pytest.mark.skipif(
    not hasattr(keras.layers, "STFTSpectrogram"), reason="Keras has no such layer"
)
def test_keras_spectrogram_still_has_a_real_and_an_imaginary_part():
    inputs = tf.reshape(tf.sin(tf.range(32.0)), [1, 32, 1])
    options = {"frame_length": 16, "frame_step": 8, "expand_dims": True}
    layer = keras.layers.STFTSpectrogram(mode="stft", **options)
    both = layer(inputs)
    parts = _compat.spectrogram_parts(layer, inputs)
    np.testing.assert_array_equal(tf.concat(parts, 2), both)


def test_attention_of_keras_still_has_its_dropout_within():
    layer = keras.layers.MultiHeadAttention(1, 2, dropout=0.25)
    layer.build((1, 2, 3), (1, 2, 3))
    assert _compat.attention_dropout(layer).rate == 0.25


def test_an_eager_callback_outlives_that_of_another_thread():
    seen = []

    def note(op_type, *_, **__):
        seen.append(tf.compat.as_str(op_type))

    def other():
        with _compat.eager_callback(lambda *_, **__: None):
            tf.exp(tf.zeros([]))

    x = tf.zeros([])
    with _compat.eager_callback(note):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        tf.sqrt(x)
    tf.math.log(x)
    assert seen == ["Sqrt"]


def test_a_tf_function_is_made_again_with_its_options():
    spec = tf.TensorSpec([None], tf.float32)
    function = tf.function(
        lambda x: x + 1.0, [spec], autograph=False, reduce_retracing=True
    )
    function(tf.zeros([1]))
    again = _compat.with_body(function)
    assert type(again) is type(function)
    assert again.experimental_get_tracing_count() == 0
    assert again.input_signature == (spec,)
    assert float(again(tf.zeros([1]))[0]) == 1
    other = _compat.with_body(function, lambda x: x + 2.0)
    assert float(other(tf.zeros([3]))[0]) == 2
    assert _compat.autograph_options(other) == {
        "autograph": False,
        "experimental_autograph_options": None,
    }
    assert _compat.autograph_options(tf.function(abs))["autograph"] is True


def test_the_variables_of_layers_and_of_keras_are_known_as_such():
    layer = keras.layers.Dense(1)
    layer.build((None, 2))
    assert _compat.is_keras_variable(layer.kernel)
    assert _compat.is_keras_variable(keras.Variable([1.0]))
    assert not _compat.is_keras_variable(tf.Variable(1.0))


@pytest.mark.parametrize("gradient", [None, lambda upstream: [5 * upstream]])
def test_a_tape_records_an_operation_that_a_graph_made(gradient):
    variable = tf.Variable(3.0)

    @tf.function
    def slope():
        with tf.GradientTape() as tape:
            _compat.watch(variable)
            assert tape.watched_variables() == (variable,)
            read = tf.raw_ops.ReadVariableOp(resource=variable.handle, dtype=tf.float32)
            square = read.graph.create_op("Square", [read], [tf.float32])
            _compat.record(square, gradient)
        return tape.gradient(square.outputs[0], variable)

    assert float(slope()) == (6 if gradient is None else 5)


def test_nothing_is_recorded_without_a_tape():
    with tf.Graph().as_default() as graph:
        _compat.record(tf.zeros([]).op)
    assert len(graph.get_operations()) == 1


def test_the_options_of_a_tf_function_that_need_a_call_are_known():
    signature = [tf.TensorSpec([], tf.float32)]
    assert _compat.is_called_in_place(tf.function(abs))
    assert _compat.is_called_in_place(tf.function(abs, reduce_retracing=True))
    assert not _compat.is_called_in_place(tf.function(abs, jit_compile=True))
    assert not _compat.is_called_in_place(tf.function(abs, signature))
    named = tf.function(abs, experimental_implements="something")
    assert not _compat.is_called_in_place(named)


def test_keras_still_looks_for_the_classes_of_a_file_in_its_registry(monkeypatch):
    from keras.src.saving import object_registration as registry

    # Restored afterwards.
    found = registry.get_registered_object
    monkeypatch.setattr(registry, "get_registered_object", found)

    def register():
        class Late(keras.layers.Layer):
            pass

        keras.saving.register_keras_serializable("late")(Late)

    config = {"module": None, "class_name": "Late", "config": {}}
    config["registered_name"] = "late>Late"
    with pytest.raises(TypeError, match="Could not locate class"):
        keras.saving.deserialize_keras_object(config)
    _compat.load_on_demand("late>", register)
    assert type(keras.saving.deserialize_keras_object(config)).__name__ == "Late"


def test_keras_models_still_report_which_layer_gets_a_mask():
    inputs = keras.Input((3, 2))
    first, second = keras.layers.GRU(2), keras.layers.GRU(2)
    keras.Model(inputs, [first(inputs), second(keras.layers.Masking()(inputs))])
    assert not _compat.is_called_with_mask(first)
    assert _compat.is_called_with_mask(second)


def test_tensorflow_still_runs_a_py_function_in_a_thread_that_python_did_not_start():
    found = []

    @tf.function(autograph=False)
    def run():
        tf.py_function(lambda: found.append(_compat.is_python_thread()), [], [])

    run()
    assert found == [False]
    assert _compat.is_python_thread()


def test_tensorflow_still_marks_what_it_adds_by_its_name():
    @tf.function(autograph=False)
    def run(x):
        with tf.GradientTape() as tape, tf.name_scope("mine"):
            tape.watch(x)
            y = tf.realdiv(1.0, x, "quotient")
        tf.while_loop(lambda i: i < 3, lambda i: i + 1, [0])
        return tape.gradient(y, x), tf.vectorized_map(tf.sqrt, x)

    operations = run.get_concrete_function(tf.ones([2])).graph.get_operations()
    scopes = {
        _compat.forward_scope(op.name)
        for op in operations
        if op.name.startswith("gradient_tape/")
    }
    assert any(scope.startswith("mine") for scope in scopes)
    before = {_compat.before_vectorizing(op.name) for op in operations}
    assert any(name and name.endswith("Sqrt") for name in before)
    (loop,) = (op for op in operations if op.type in {"While", "StatelessWhile"})
    assert _compat.is_loop_counter(loop.inputs[0].name)
    assert not _compat.is_loop_counter(loop.inputs[-1].name)
    slope = _compat.registered_gradient("RealDiv")
    code = slope.__code__
    assert _compat.differentiated_type(code.co_filename, code.co_name) == "RealDiv"
    assert _compat.differentiated_type("mine.py", "_RealDivGrad") == ""


def test_a_tape_is_seen_and_a_second_one_too():
    x = tf.constant(1.0)
    assert not _compat.is_watched_once([x])
    with tf.GradientTape() as outer:
        outer.watch(x)
        assert _compat.is_watched_once([x])
        with tf.GradientTape() as inner:
            inner.watch(x)
            assert not _compat.is_watched_once([x])


def test_no_tape_records_where_recording_stops():
    x = tf.constant(1.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        with _compat.stop_recording():
            y = tf.square(x)
    assert tape.gradient(y, x) is None


@pytest.mark.parametrize("compiled", [False, True])
def test_a_function_knows_whether_it_is_traced_for_xla(compiled):
    seen = []

    @tf.function(jit_compile=compiled, autograph=False)
    def outer(x):
        seen.append(_compat.is_traced_for_xla())
        return tf.function(inner, autograph=False)(x)

    def inner(x):
        seen.append(_compat.is_traced_for_xla())
        return tf.identity(x)

    outer(tf.ones([]))
    assert seen == [compiled, compiled]
    assert not _compat.is_traced_for_xla()


def test_datasets_still_show_what_they_map():
    def double(x):
        return 2 * x

    def plus(x):
        return x + 1

    data = tf.data.Dataset.range(3).map(double).batch(2).map(plus, tf.data.AUTOTUNE)
    (first, doubles, _), (second, adds, _) = _compat.mapped(data.prefetch(1))
    assert (doubles, adds) == (double, plus)
    assert [each.numpy().tolist() for each in first] == [0, 1, 2]
    assert [each.numpy().tolist() for each in second] == [[0, 2], [4]]
    two = tf.data.Dataset.zip({"x": data, "y": (tf.data.Dataset.range(3),)})
    assert [each for _, each, _ in _compat.mapped(two.batch(1))] == [double, plus]
    more = tf.data.Dataset.range(5).concatenate(data)
    assert [each for _, each, _ in _compat.mapped(more)] == [double, plus]
    slices = tf.data.Dataset.from_tensor_slices
    whole = data.batch(2).interleave(slices).batch(2).flat_map(slices)
    methods = [method for *_, method in _compat.mapped(whole)]
    assert methods == ["map", "map", "interleave", "flat_map"]
    (given,) = _compat.given_tensors(slices([1, 2]).repeat().batch(1))
    assert given.numpy().tolist() == [1, 2]
    through_python = data.map(lambda x: tf.py_function(plus, (x,), tf.int64))
    assert _compat.mapped(through_python) == []
    assert [op.type for op in _compat.python_calls(through_python)] == ["EagerPyFunc"]
    assert _compat.python_calls(data) == []


def test_a_running_fit_still_shows_its_data_and_epoch():
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse", run_eagerly=True)
    data = tf.data.Dataset.from_tensors((tf.ones((2, 1)), tf.ones((2, 1)))).repeat(2)
    seen = []

    class Look(keras.callbacks.Callback):
        def on_train_batch_begin(self, batch, logs=None):
            seen.append(_compat.running_fit(self.model))

    model.fit(data, epochs=2, verbose=0, callbacks=[Look()], shuffle=False)
    assert [(fit.epoch, fit.batch) for fit in seen] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert all(fit.data is data for fit in seen)
    assert _compat.running_fit(model) is None


def test_functions_still_hold_their_variables_weakly():
    module = types.SimpleNamespace(kept=tf.Variable([1.0]), gone=tf.Variable([2.0]))
    concrete = tf.function(lambda x: x + module.kept + module.gone)
    concrete = concrete.get_concrete_function(tf.TensorSpec([1]))
    assert len(_compat.living_variables(concrete)) == 2
    module.gone = None
    gc.collect()
    assert _compat.living_variables(concrete) == (module.kept,)
    with pytest.raises(AssertionError, match="have been deleted"):
        _ = concrete.variables


def test_the_version_of_a_graph_still_counts_its_operations():
    concrete = tf.function(lambda x: tf.linalg.inv(x) + 1.0).get_concrete_function(
        tf.TensorSpec([2, 2])
    )
    graph = concrete.graph
    assert _compat.count_operations(graph) == len(graph.get_operations()) == 5


def test_an_operation_is_still_made_without_the_wrappers():
    assert inspect.unwrap(tf.Graph.create_op) is not tf.Graph.create_op
    with tf.Graph().as_default() as graph, tf.name_scope("scope"):
        op = _compat.create_op("Neg", [tf.constant(1.0)], [tf.float32], name="n")
    assert (op.graph, op.name) == (graph, "scope/n")


def test_a_graph_still_keeps_the_definitions_of_its_operations():
    graph = tf.function(tf.exp).get_concrete_function(tf.constant(1.0)).graph
    op = next(op for op in graph.get_operations() if op.type == "Exp")
    assert graph.op_def_for_type("Exp") is graph.op_def_for_type("Exp")
    assert _compat.op_def(op).SerializeToString() == op.op_def.SerializeToString()


def test_a_graph_still_captures_without_an_operation():
    outside = tf.range(200.0)  # A small one is copied as a constant.

    @tf.function
    def function():
        inside = _compat.captured(outside)
        assert inside.graph is tf.compat.v1.get_default_graph()
        assert inside.op.type == "Placeholder"
        return inside + 1

    np.testing.assert_array_equal(function(), np.arange(1.0, 201))
    types = [op.type for op in function.get_concrete_function().graph.get_operations()]
    assert "Identity" not in types[:-1]


def test_gradients_still_skip_the_inputs_that_no_source_reaches():
    def count(skips):
        def function(x):
            y = x * tf.constant([[2.0], [3.0]]) * tf.constant([[4.0, 5.0]])
            with _compat.skipped_inputs([x]) if skips else contextlib.nullcontext():
                (slope,) = tf.gradients(y, [x])
            return slope

        concrete = tf.function(function).get_concrete_function(tf.ones([2, 2]))
        np.testing.assert_array_equal(concrete(tf.ones([2, 2])), [[8, 10], [12, 15]])
        return len(concrete.graph.get_operations())

    assert count(True) < count(False)
