"""Wrong calls are answered with the argument, what was received, and what to do."""

import re
import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfsafe
from tfsafe import (
    callbacks,
    data,
    debugging,
    layers,
    losses,
    metrics,
    ops,
    optimizers,
    rewriting,
)

X = tf.constant([1.0, 2.0])


def log_loss(x):
    return tf.reduce_sum(tf.math.log(x))


def with_numpy(x):
    return tf.reduce_sum(np.log(x))


def with_an_unknown_function(x):
    return np.array(x)


def batches():
    yield X


async def served(x):
    return log_loss(x)


class LegacyAdam:
    """Stands for an optimizer of the package `tf_keras`, which is Keras 2."""

    __module__ = "tf_keras.src.optimizers.adam"


def model():
    return keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])


def fitted(**options):
    ours = model()
    ours.compile("sgd", "mse")
    return ours.fit(np.ones((2, 2)), np.ones((2, 1)), verbose=0, **options)


def finding():
    try:
        tfsafe.checked(log_loss)(tf.constant([-1.0]))
    except tfsafe.NumericsError as error:
        return error


# The call, the type of the error, and what its text holds: the argument (or the
# function), what was received, what to do.
WRONG = {
    # Checks.
    "checked-number": (
        lambda: tfsafe.checked(3),
        TypeError,
        ("`target`", "Received: target=3", "a function, a `tf.function`"),
    ),
    "checked-class": (
        lambda: tfsafe.checked(LegacyAdam),
        TypeError,
        ("`target`", "Received: target=LegacyAdam", "Check an instance"),
    ),
    "checked-result": (
        lambda: tfsafe.checked(log_loss(X)),
        TypeError,
        ("`target`", "Received: target=<tf.Tensor", "Pass the function itself"),
    ),
    "checked-level-as-target": (
        lambda: tfsafe.checked("full"),
        TypeError,
        ("`target`", "Received: target='full'", 'checks="full"'),
    ),
    "checked-level": (
        lambda: tfsafe.checked(log_loss, checks="ful"),
        ValueError,
        ("`checks`", "Received: checks='ful'", '"watch", "domain" or "full"'),
    ),
    "checked-strict": (
        lambda: tfsafe.checked(log_loss, strict="yes"),
        TypeError,
        ("`strict`", "Received: strict='yes'", "True or False"),
    ),
    "checked-exclude-rule": (
        lambda: tfsafe.checked(log_loss, exclude=["Log"]),
        ValueError,
        ("`exclude`", "Received: 'Log'", '"op:Log"'),
    ),
    "checked-exclude-text": (
        lambda: tfsafe.checked(log_loss, exclude="op:Log"),
        TypeError,
        ("`exclude`", "Received: exclude='op:Log'", "a sequence of strings"),
    ),
    "checked-generator": (
        lambda: tfsafe.checked(batches),
        TypeError,
        ("`target`", "Received: target=batches, a generator", "one item"),
    ),
    "stabilize-coroutine": (
        lambda: tfsafe.stabilize(served),
        TypeError,
        ("`target`", "Received: target=served, a coroutine", "`@tfsafe.stabilize`"),
    ),
    "check-numerics-function": (
        lambda: tfsafe.check_numerics(log_loss),
        TypeError,
        ("`check_numerics`", "Received: 1 positional", r"`checked\(f\)`"),
    ),
    "check-numerics-tensor": (
        lambda: tfsafe.check_numerics(X, "message"),
        TypeError,
        ("`check_numerics`", "Received: 2 positional", r"`debugging.summarize\(x\)`"),
    ),
    "check-numerics-level": (
        lambda: tfsafe.check_numerics(checks="all"),
        ValueError,
        ("`checks`", "Received: checks='all'", '"watch", "domain" or "full"'),
    ),
    "enable-level": (
        lambda: tfsafe.enable_check_numerics(checks="all"),
        ValueError,
        ("`checks`", "Received: checks='all'", '"watch", "domain" or "full"'),
    ),
    "enable-level-positional": (
        lambda: tfsafe.enable_check_numerics("full"),
        TypeError,
        ("level", "Received: stack_height_limit='full'", "Write `checks=` before"),
    ),
    "replay-none": (
        lambda: debugging.replay(None),
        TypeError,
        ("`path`", "Received: path=None", "such as 'nan.zip'"),
    ),
    "html-number": (
        lambda: tfsafe.NumericsError("x").to_html(3.5),
        TypeError,
        ("`path`", "Received: path=3.5", "such as 'finding.html'"),
    ),
    "coverage-number": (
        lambda: tfsafe.coverage(3),
        ValueError,
        ("`of`", "Received: 3", "such as 'Softmax'"),
    ),
    # Stable forms.
    "stabilize-verify": (
        lambda: tfsafe.stabilize(log_loss, verify="yes"),
        ValueError,
        ("`verify`", "Received: verify='yes'", "one of True, False"),
    ),
    "stabilize-fit": (
        lambda: tfsafe.stabilize(model().fit),
        TypeError,
        ("`target`", "Received: target=fit", r"`stabilize\(model\)`"),
    ),
    "stabilize-numpy": (
        lambda: tfsafe.stabilize(with_numpy)(X),
        TypeError,
        (
            "`with_numpy` cannot be traced",
            r"np.log\(x\)",
            rf"line {with_numpy.__code__.co_firstlineno + 1} of .*test_wrong_calls.py",
            "Use `tf.math.log`",
        ),
    ),
    "stabilize-numpy-unknown": (
        lambda: tfsafe.stabilize(with_an_unknown_function)(X),
        TypeError,
        ("`with_an_unknown_function`", r"np.array\(x\)", "TensorFlow's functions"),
    ),
    "stabilize-numpy-method": (
        lambda: tfsafe.stabilize(lambda x: x.numpy() + 1)(X),
        TypeError,
        ("`<lambda>`", r"has `.numpy\(\)` compute", "outside of the function"),
    ),
    "report-numpy": (
        lambda: tfsafe.stabilize.report(with_numpy, X),
        TypeError,
        ("`with_numpy`", "has NumPy compute with a tensor", "Use `tf.math.log`"),
    ),
    "report-without-arguments": (
        lambda: tfsafe.stabilize.report(log_loss),
        TypeError,
        ("`log_loss`", "Received: none", r"`stabilize.report\(log_loss, x\)`"),
    ),
    "report-loss-without-arguments": (
        lambda: tfsafe.stabilize.report(keras.losses.MeanSquaredError()),
        TypeError,
        ("`mean_squared_error`", "Received: none", "Pass them after the function"),
    ),
    "report-model-without-batch": (
        lambda: tfsafe.stabilize.report(keras.Sequential(name="net")),
        TypeError,
        ("`net`", "Received: none", r"`stabilize.report\(net, x\)`"),
    ),
    "report-text": (
        lambda: tfsafe.stabilize.report("x"),
        TypeError,
        ("`target`", "Received: target='x'", "a Keras loss or a Keras model"),
    ),
    "stabilize-list": (
        lambda: tfsafe.stabilize([log_loss]),
        TypeError,
        ("`target`", r"Received: target=\[<function", "Pass the function itself"),
    ),
    "coverage-list": (
        lambda: tfsafe.coverage(["Softmax", "Dense"]),
        ValueError,
        ("`of`", r"Received: \['Softmax', 'Dense'\]", "Pass a name"),
    ),
    "stabilize-class": (
        lambda: tfsafe.stabilize(keras.losses.MeanSquaredError),
        TypeError,
        ("`target`", "Received: target=MeanSquaredError", "Stabilize an instance"),
    ),
    "stabilize-name": (
        lambda: tfsafe.stabilize("mse"),
        TypeError,
        ("`target`", "Received: target='mse'", r"keras.losses.get\('mse'\)"),
    ),
    "stabilize-rule": (
        lambda: tfsafe.stabilize(log_loss, rules=["log_of_softmx"]),
        ValueError,
        ("`rules`", "Received: rules=", "Did you mean 'log-of-softmax'"),
    ),
    "stabilize-exclude": (
        lambda: tfsafe.stabilize(log_loss, exclude="log_of_softmx"),
        ValueError,
        ("`exclude`", "Received: exclude=", r"`tfsafe.stabilize.rules\(\)` lists all"),
    ),
    # Looking at tensors.
    "summarize-none": (
        lambda: debugging.summarize(None),
        TypeError,
        ("Expected tensors", "Received: None", "or a model"),
    ),
    "summarize-unbuilt": (
        lambda: debugging.summarize(keras.layers.Dense(2)),
        ValueError,
        ("weights", "Received: 'dense.*', which is not built", "Call it on data"),
    ),
    "summarize-text": (
        lambda: debugging.summarize("x"),
        TypeError,
        ("Expected tensors", "Received: 'x'", "or a model"),
    ),
    "summarize-function": (
        lambda: debugging.summarize(log_loss),
        TypeError,
        ("Expected tensors", "Received: <function log_loss", "or a model"),
    ),
    "plot-text": (
        lambda: debugging.plot("x"),
        TypeError,
        ("`plot`", "Received: 'x'", "needs numbers"),
    ),
    "plot-texts": (
        lambda: debugging.plot(["a", "b"]),
        TypeError,
        ("`plot`", r"Received: \['a', 'b'\]", "at least one tensor of numbers"),
    ),
    "plot-kind": (
        lambda: debugging.plot(X, "bars"),
        ValueError,
        ("`kind`", "Received: kind='bars'", "'image', 'histogram'"),
    ),
    "retain-number": (
        lambda: debugging.retain_gradients(3).__enter__(),
        TypeError,
        ("`model`", "Received: .*3", "Keras"),
    ),
    "html-folder": (
        lambda: finding().to_html(sys.executable + "/x.html"),
        OSError,
        (re.escape(sys.executable),),
    ),
    # Data.
    "check-finite-two": (
        lambda: tfsafe.check_finite(np.ones(3), np.ones(3)),
        TypeError,
        ("`check_finite`", "Received: 2 positional", r"check_finite\(\(x, y\)\)"),
    ),
    "check-finite-none": (
        lambda: tfsafe.check_finite(None),
        TypeError,
        ("`check_finite`", "Received: dataset=None", "end in `return`"),
    ),
    "check-finite-path": (
        lambda: tfsafe.check_finite("data.csv"),
        ValueError,
        ("check_finite", "Received: x='data.csv'", "pandas.read_csv"),
    ),
    "check-finite-model": (
        lambda: tfsafe.check_finite(model()),
        TypeError,
        ("check_finite", "Received: x of type Sequential", "arrays, tensors"),
    ),
    "check-finite-policy": (
        lambda: tfsafe.check_finite(np.ones(3), policy="rase"),
        ValueError,
        ("`policy`", "Received: policy='rase'", "'raise', 'drop', 'replace', 'report'"),
    ),
    "check-finite-value": (
        lambda: data.check_finite(np.ones(3), policy="replace", value="mea"),
        TypeError,
        ("`value`", "Received: value='mea'", "must be a number"),
    ),
    # Calls that do not fit the signature.
    "call-monitor-level": (
        lambda: tfsafe.NumericsMonitor("full"),
        TypeError,
        ("`NumericsMonitor`", "Received: 'full'", r"NumericsMonitor\(checks='full'\)"),
    ),
    "call-monitor-model": (
        lambda: tfsafe.NumericsMonitor(model()),
        TypeError,
        ("`NumericsMonitor`", "Received: <Sequential", "It takes restore_state, log"),
    ),
    "call-monitor-keyword": (
        lambda: tfsafe.NumericsMonitor(polcy="stop"),
        TypeError,
        ("`polcy`", "Received: polcy='stop'", r"Did you mean `policy`\?$"),
    ),
    "call-rollback-keyword": (
        lambda: callbacks.RollbackOnNonFinite(factor=0.5),
        TypeError,
        ("`factor`", "Received: factor=0.5", "It takes lower_learning_rate"),
    ),
    "call-terminate-keyword": (
        lambda: callbacks.TerminateOnNaN(wach="loss"),
        TypeError,
        ("`wach`", "Received: wach='loss'", "Did you mean `watch`"),
    ),
    "call-callback-class": (
        lambda: fitted(callbacks=[tfsafe.NumericsMonitor]),
        TypeError,
        ("`callbacks`", "Received: a class", r"\[tfsafe.NumericsMonitor\(\)\]"),
    ),
    "call-callback-class-alone": (
        lambda: fitted(callbacks=callbacks.RollbackOnNonFinite),
        TypeError,
        ("`callbacks`", "Received: a class", "Call it"),
    ),
    "call-install": (
        lambda: tfsafe.install("x"),
        TypeError,
        ("`install`", "Received: 'x'", r"Write `install\(\)`. It is for all classes"),
    ),
    "call-uninstall": (
        lambda: tfsafe.uninstall("losses"),
        TypeError,
        ("`uninstall`", "Received: 'losses'", r"Write `uninstall\(\)`"),
    ),
    "call-scope": (
        lambda: tfsafe.keras_scope("losses"),
        TypeError,
        ("`keras_scope`", "Received: 'losses'", r"`with tfsafe.keras_scope\(\):`"),
    ),
    "call-safe-rate": (
        lambda: tfsafe.SafeOptimizer(learning_rate=1e-3),
        TypeError,
        ("`learning_rate`", "Received: learning_rate=0.001", r"Adam\(learning_rate=1"),
    ),
    "call-safe-nothing": (
        lambda: tfsafe.SafeOptimizer(),
        TypeError,
        ("`SafeOptimizer` needs `inner_optimizer`", "Received: none", "It takes inner"),
    ),
    "call-safe-keyword": (
        lambda: tfsafe.SafeOptimizer("adam", plicy="skip"),
        TypeError,
        ("`plicy`", "Received: plicy='skip'", r"Did you mean `policy`\?$"),
    ),
    "call-safe-position": (
        lambda: tfsafe.SafeOptimizer("adam", "skip", 1.0),
        TypeError,
        ("takes 2 positional arguments", "Received: 1.0", "It takes inner_opt"),
    ),
    "call-loss-scale-name": (
        lambda: optimizers.LossScaleOptimizer("adam"),
        ValueError,
        ("`inner_optimizer`", "Received: inner_optimizer='adam'", "an instance of"),
    ),
    "call-loss-scale-class": (
        lambda: optimizers.LossScaleOptimizer(keras.optimizers.Adam),
        ValueError,
        ("`inner_optimizer`", "Received: .*Adam'>", r"`keras.optimizers.Adam\(\)`"),
    ),
    "call-checked-keyword": (
        lambda: tfsafe.checked(log_loss, check="full"),
        TypeError,
        ("`check`", "Received: check='full'", "Did you mean `checks`"),
    ),
    "call-stabilize-keyword": (
        lambda: tfsafe.stabilize(log_loss, exclde="log1p"),
        TypeError,
        ("`exclde`", "Received: exclde='log1p'", "Did you mean `exclude`"),
    ),
    "call-enable-stabilize-model": (
        lambda: tfsafe.enable_stabilize(model()),
        TypeError,
        (
            "`enable_stabilize`",
            "Received: <Sequential",
            r"`stabilize\(f\)` is for a fun",
        ),
    ),
    "call-enable-checks-model": (
        lambda: tfsafe.enable_check_numerics(model()),
        TypeError,
        ("`enable_check_numerics`", "Received: .*<Sequential", r"`checked\(f\)`"),
    ),
    "call-check-finite-nothing": (
        lambda: tfsafe.check_finite(),
        TypeError,
        ("`check_finite` needs `dataset`", "Received: none", "It takes dataset"),
    ),
    "call-check-finite-keyword": (
        lambda: tfsafe.check_finite(np.ones(3), polcy="drop"),
        TypeError,
        ("`polcy`", "Received: polcy='drop'", "Did you mean `policy`"),
    ),
    "call-coverage-keyword": (
        lambda: tfsafe.coverage("mse", printer=print),
        TypeError,
        ("`printer`", "Received: printer=<built-in", "Did you mean `print_fn`"),
    ),
    "call-loss-keyword": (
        lambda: losses.StableCrossEntropy(from_logit=True),
        TypeError,
        ("`from_logit`", "Received: from_logit=True", "Did you mean `from_logits`"),
    ),
    "call-lstm-keyword": (
        lambda: layers.LayerNormLSTM(3, dropuot=0.1),
        TypeError,
        ("`dropuot`", "Received: dropuot=0.1", "Did you mean `dropout`"),
    ),
    "call-gru-keyword": (
        lambda: layers.LayerNormGRU(3, recurrent_dropuot=0.1),
        TypeError,
        ("`recurrent_dropuot`", "Received: .*=0.1", "Did you mean `recurrent_dropout`"),
    ),
    # Optimizers and callbacks.
    "check-finite-nothing": (
        lambda: tfsafe.check_finite({"a": None}),
        TypeError,
        ("`check_finite`", r"Received: dataset=\{'a': None\}", "end in `return`"),
    ),
    "safe-list": (
        lambda: tfsafe.SafeOptimizer(["sgd"]),
        ValueError,
        ("`inner_optimizer`", r"Received: .*\['sgd'\]", "Did you mean 'sgd'"),
    ),
    "safe-window": (
        lambda: tfsafe.SafeOptimizer("sgd", outlier_threshold=6, outlier_window=0),
        ValueError,
        ("`outlier_window`", "Received: outlier_window=0", "at least 2"),
    ),
    "safe-gradients-tensor": (
        lambda: tfsafe.SafeOptimizer("sgd").apply(X, [tf.Variable(X)]),
        TypeError,
        ("`grads`", r"Received: a tensor of shape \(2,\)", r"`apply\(\[gradient\]"),
    ),
    "monitor-checks": (
        lambda: tfsafe.NumericsMonitor(checks="all"),
        ValueError,
        ("`checks`", "Received: checks='all'", '"watch", "domain" or "full"'),
    ),
    "monitor-exclude": (
        lambda: tfsafe.NumericsMonitor(exclude="op:Log"),
        TypeError,
        ("`exclude`", "Received: exclude='op:Log'", "a sequence of strings"),
    ),
    "monitor-restore": (
        lambda: tfsafe.NumericsMonitor(restore_state="yes"),
        TypeError,
        ("`restore_state`", "Received: restore_state='yes'", "True"),
    ),
    "rollback-number": (
        lambda: callbacks.RollbackOnNonFinite(max_rollbacks=-1),
        ValueError,
        ("`max_rollbacks`", "Received: max_rollbacks=-1", "a positive integer"),
    ),
    "safe-class": (
        lambda: tfsafe.SafeOptimizer(keras.optimizers.Adam),
        ValueError,
        ("`inner_optimizer`", "Received: .*Adam", r"`SafeOptimizer\(Adam\(\)\)`"),
    ),
    "safe-name": (
        lambda: tfsafe.SafeOptimizer("adma"),
        ValueError,
        (
            "`inner_optimizer`",
            "Received: inner_optimizer='adma'",
            "Did you mean .*adam",
        ),
    ),
    "safe-keras-2": (
        lambda: tfsafe.SafeOptimizer(LegacyAdam()),
        ValueError,
        (
            "`inner_optimizer`",
            "Received: .*LegacyAdam",
            "Keras 2; .*`keras.optimizers`",
        ),
    ),
    "safe-none": (
        lambda: tfsafe.SafeOptimizer(None),
        ValueError,
        ("`inner_optimizer`", "Received: inner_optimizer=None", "such as 'adam'"),
    ),
    "safe-rate": (
        lambda: tfsafe.SafeOptimizer(0.001),
        ValueError,
        ("`inner_optimizer`", "Received: inner_optimizer=0.001", "such as 'adam'"),
    ),
    "safe-model": (
        lambda: tfsafe.SafeOptimizer(model()),
        ValueError,
        ("`inner_optimizer`", "Received: .*Sequential", r"`model.compile\(SafeOpt"),
    ),
    "safe-twice": (
        lambda: tfsafe.SafeOptimizer(tfsafe.SafeOptimizer("sgd")),
        ValueError,
        ("`inner_optimizer`", "Received: .*safe_optimizer", "wrap its `inner_optim"),
    ),
    "safe-policy": (
        lambda: tfsafe.SafeOptimizer("sgd", policy="skp"),
        ValueError,
        ("`policy`", "Received: policy='skp'", "'replace', 'zero_variable', 'skip'"),
    ),
    "safe-limit": (
        lambda: tfsafe.SafeOptimizer("sgd", limit=-1),
        ValueError,
        ("`limit`", "Received: limit=-1", "a positive number"),
    ),
    "safe-clipnorm": (
        lambda: tfsafe.SafeOptimizer("sgd", clipnorm=-1.0),
        ValueError,
        ("`clipnorm`", "Received: clipnorm=-1.0", "or None not to clip"),
    ),
    "safe-two-clips": (
        lambda: tfsafe.SafeOptimizer("sgd", clipnorm=1.0, global_clipnorm=1.0),
        ValueError,
        ("`global_clipnorm`", "Received: clipnorm=1.0", "Only one"),
    ),
    "safe-outliers": (
        lambda: tfsafe.SafeOptimizer("sgd", outlier_threshold=0),
        ValueError,
        ("`outlier_threshold`", "Received: outlier_threshold=0", "such as 6.0"),
    ),
    "safe-consecutive": (
        lambda: tfsafe.SafeOptimizer("sgd", max_consecutive=0),
        ValueError,
        ("`max_consecutive`", "Received: max_consecutive=0", "a positive integer"),
    ),
    "safe-lengths": (
        lambda: tfsafe.SafeOptimizer("sgd").apply([X], [tf.Variable(X)] * 2),
        ValueError,
        ("`grads`", "Received: 1 gradients and 2 variables", "Pass None"),
    ),
    "safe-pairs": (
        lambda: tfsafe.SafeOptimizer("sgd").apply([(X, tf.Variable(X))]),
        TypeError,
        ("`grads`", "Received: a tuple", r"`apply_gradients\(zip"),
    ),
    "safe-swapped": (
        lambda: tfsafe.SafeOptimizer("sgd").apply([tf.Variable(X)], [X]),
        TypeError,
        ("`trainable_variables`", r"Received: a tensor of shape \(2,\)", "come first"),
    ),
    "safe-shapes": (
        lambda: tfsafe.SafeOptimizer("sgd").apply([tf.ones(3)], [tf.Variable(X)]),
        ValueError,
        ("`grads`", r"a gradient of shape \(3,\)", "in the same order"),
    ),
    "monitor-capsule": (
        lambda: tfsafe.NumericsMonitor(capsule=3),
        TypeError,
        ("`capsule`", "Received: capsule=3", '"nan.zip"'),
    ),
    "monitor-policy": (
        lambda: tfsafe.NumericsMonitor(policy="skp"),
        ValueError,
        ("`policy`", "Received: policy='skp'", "'raise', 'skip', 'stop'"),
    ),
    "terminate-flag": (
        lambda: callbacks.TerminateOnNonFinite(raise_error="x"),
        TypeError,
        ("`raise_error`", "Received: raise_error='x'", "True or False"),
    ),
    "rollback-factor": (
        lambda: callbacks.RollbackOnNonFinite(-1),
        ValueError,
        ("`lower_learning_rate`", "Received: .*-1", "such as 0.5"),
    ),
    # Layers.
    "lstm-rank": (
        lambda: layers.LayerNormLSTM(4)(tf.ones((2, 3))),
        ValueError,
        ("`sequences`", r"Received: shape \(2, 3\)", r"x\[\.\.\., tf.newaxis\]"),
    ),
    "gru-rank": (
        lambda: layers.LayerNormGRU(4)(tf.ones((2, 3))),
        ValueError,
        ("`sequences`", r"Received: shape \(2, 3\)", r"\(batch, steps, features\)"),
    ),
    "lstm-units-text": (
        lambda: layers.LayerNormLSTM("32"),
        TypeError,
        ("`units`", "Received: units='32'", "a positive integer"),
    ),
    "gru-units-fraction": (
        lambda: layers.LayerNormGRU(2.5),
        TypeError,
        ("`units`", "Received: units=2.5", "a positive integer"),
    ),
    "lstm-dropout": (
        lambda: layers.LayerNormLSTM(4, dropout=1.5),
        ValueError,
        ("`dropout`", "Received: dropout=1.5", "the fraction of units to drop"),
    ),
    "lstm-dropout-text": (
        lambda: layers.LayerNormLSTM(4, dropout="a"),
        TypeError,
        ("`dropout`", "Received: dropout='a'", "must be a number"),
    ),
    "lstm-from-dense": (
        lambda: layers.LayerNormLSTM.from_keras(keras.layers.Dense(3)),
        TypeError,
        ("`from_keras`", "Received: <Dense", "takes a keras.layers.LSTM"),
    ),
    "lstm-from-unbuilt": (
        lambda: layers.LayerNormLSTM.from_keras(keras.layers.LSTM(3)),
        UserWarning,
        ("`from_keras`", "'lstm.*' alone: it is not built", "on data, or load"),
    ),
    "lstm-one-state": (
        lambda: layers.LayerNormLSTM(4)(tf.ones((2, 3, 4)), initial_state=X),
        ValueError,
        ("`initial_state`", "Received: 1", "a list of 2 tensors"),
    ),
    "cell-one-state": (
        lambda: layers.LayerNormLSTMCell(4)(tf.ones((2, 3)), tf.ones((2, 4))),
        ValueError,
        ("`states`", "Received: 1", r"`get_initial_state\("),
    ),
    "gru-two-states": (
        lambda: layers.LayerNormGRU(4)(tf.ones((2, 3, 4)), initial_state=[X, X]),
        ValueError,
        ("`initial_state`", "Received: 2", "a list of 1 tensor of shape"),
    ),
    "lstm-units-none": (
        lambda: layers.LayerNormLSTM(None),
        TypeError,
        ("`units`", "Received: units=None", "a positive integer"),
    ),
    "pooling-mask": (
        lambda: layers.SafeMeanPooling()(tf.ones((2, 3, 4)), mask=tf.ones((2, 4))),
        ValueError,
        ("`mask`", r"Received: mask.shape=\(2, 4\)", "the leading axes of `inputs`"),
    ),
    "normalization-text": (
        lambda: layers.Normalization().adapt(np.array(["a"])),
        TypeError,
        ("`data`", "Received: text, .*'a'", r"`data.astype\('float32'\)`"),
    ),
    "normalization-none": (
        lambda: layers.Normalization().adapt(None),
        TypeError,
        ("`data`", "Received: NoneType", "a NumPy array, a tensor"),
    ),
    "log-softmax-axis": (
        lambda: layers.LogSoftmax(axis="x"),
        TypeError,
        ("`axis`", "Received: axis='x'", "an integer"),
    ),
    "normalization-policy": (
        lambda: layers.Normalization().adapt(np.ones((3, 2)), policy="skp"),
        ValueError,
        ("`policy`", "Received: policy='skp'", "'skip', 'raise'"),
    ),
    "to-keras-number": (
        lambda: tfsafe.to_keras(3),
        TypeError,
        ("`model`", "Received: model=3", "must be a Keras model"),
    ),
    # Losses and metrics.
    "loss-shapes": (
        lambda: losses.MeanSquaredError()(tf.ones((2, 3)), tf.ones((2, 4))),
        ValueError,
        ("`y_true` and `y_pred`", r"Received: y_true of shape \(2, 3\)", "newaxis"),
    ),
    "loss-without-labels": (
        lambda: losses.StableCrossEntropy()(None, X),
        TypeError,
        ("`y_true`", "Received: y_true=None", "Give `fit` the labels"),
    ),
    "loss-text-labels": (
        lambda: losses.BinaryCrossentropy()(["a"], [0.5]),
        TypeError,
        ("`y_true`", "Received: dtype=string", "StringLookup"),
    ),
    "loss-flag": (
        lambda: losses.StableCrossEntropy(from_logits="yes"),
        ValueError,
        ("`from_logits`", "Received: from_logits='yes'", "one of False, True"),
    ),
    "loss-smoothing": (
        lambda: losses.StableCrossEntropy(label_smoothing=2.0),
        ValueError,
        ("`label_smoothing`", "Received: label_smoothing=2.0", "from 0 to 1"),
    ),
    "loss-swapped": (
        lambda: losses.StableCrossEntropy()(tf.ones((2, 3)), tf.constant([0, 1])),
        TypeError,
        ("`y_pred`", "Received: dtype=int32, shape=", r"tf.cast\(y_pred"),
    ),
    "loss-reduction": (
        lambda: losses.StableCrossEntropy(reduction="men"),
        ValueError,
        ("`reduction`", "Received: reduction='men'", "'sum_over_batch_size'"),
    ),
    "sparse-labels": (
        lambda: losses.SparseCategoricalCrossentropy()(X, tf.ones((3, 4)) / 4),
        ValueError,
        ("`y_true`", r"Received: y_true.shape=\(2,\)", r"the shape \(3,\)"),
    ),
    "metric-policy": (
        lambda: metrics.Mean(policy="skp"),
        ValueError,
        ("`policy`", "Received: policy='skp'", "'propagate', 'skip'"),
    ),
    # Functions.
    "op-layer": (
        lambda: ops.log(keras.layers.Dense(1)),
        TypeError,
        ("`x`", "Received: x=<Dense .* of type Dense", "Call it"),
    ),
    "op-function": (
        lambda: ops.softmax(log_loss),
        TypeError,
        ("`logits`", "Received: logits=<function log_loss", "pass its result"),
    ),
    "op-ragged": (
        lambda: ops.log(tf.ragged.constant([[1.0], [1.0, 2.0]])),
        TypeError,
        ("`x`", "Received: RaggedTensor", r"`x.to_tensor\(\)`"),
    ),
    "op-vector": (
        lambda: ops.cholesky(X),
        ValueError,
        ("`input`", r"Received: shape=\(2,\)", r"`input\[:, tf.newaxis\]`"),
    ),
    "op-bounds": (
        lambda: ops.clip(X, 2.0, 1.0),
        ValueError,
        ("`low`", "Received: low=2.0, high=1.0", "at most `high`"),
    ),
    "op-integers": (
        lambda: ops.log(tf.constant([1, 2])),
        TypeError,
        ("`x`", "Received: dtype=int32", r"`tf.cast\(x, tf.float32\)`"),
    ),
    "op-unequal-lists": (
        lambda: ops.log([[1.0], [1.0, 2.0]]),
        ValueError,
        ("`x`", r"Received: \[\[1.0\], \[1.0, 2.0\]\]", "tf.ragged.constant"),
    ),
    "op-text": (
        lambda: ops.log("1.5"),
        TypeError,
        ("`x`", "Received: dtype=string", r"`tf.strings.to_number\(x\)`"),
    ),
    "op-complex": (
        lambda: ops.log(tf.constant([1j])),
        TypeError,
        ("`x`", "Received: dtype=complex128", r"`tf.math.real\(x\)`"),
    ),
    "op-none": (
        lambda: ops.log(None),
        TypeError,
        ("`x`", "Received: x=None", "`tape.gradient`"),
    ),
    "op-axis": (
        lambda: ops.softmax(X, axis=3),
        ValueError,
        ("`axis`", "Received: axis=3", "run from -1 to 0"),
    ),
    "op-dtypes": (
        lambda: ops.divide(X, tf.constant([1.0, 2.0], tf.float64)),
        TypeError,
        ("`x` and `y`", "Received: x: float32, y: float64", "with `tf.cast`"),
    ),
    "op-shapes": (
        lambda: ops.divide(X, tf.ones(3)),
        ValueError,
        ("`x` and `y`", r"y of shape \(3,\)", r"`y\[:, tf.newaxis\]`"),
    ),
    "op-mask": (
        lambda: ops.mean(X, mask=tf.constant([True] * 3)),
        ValueError,
        ("`mask`", r"Received: mask of shape \(3,\)", r"`mask\[..., tf.newaxis\]`"),
    ),
    "op-order": (
        lambda: ops.norm(X, ord="eu"),
        ValueError,
        ("`ord`", "Received: ord='eu'", "'euclidean', 'fro'"),
    ),
    "where-apply-tensors": (
        lambda: ops.where_apply(X > 1, X, 0.0, 0.0),
        TypeError,
        ("`fn`", "Received: fn=a tensor", r"`tf.where\(condition, a, b\)`"),
    ),
    "where-apply-numbers": (
        lambda: ops.where_apply(X, tf.math.log, X, 0.0),
        TypeError,
        ("`condition`", "Received: dtype=float32", "`condition > 0`"),
    ),
    # Names.
    "name-top": (
        lambda: tfsafe.chekced,
        AttributeError,
        ("'tfsafe'", "'chekced'", "Did you mean `tfsafe.checked`"),
    ),
    "name-of-keras": (
        lambda: tfsafe.Adam,
        AttributeError,
        ("'tfsafe'", "'Adam'", "It is `tfsafe.optimizers.Adam`"),
    ),
    "name-moved": (
        lambda: tfsafe.LayerNormLSTM,
        AttributeError,
        ("'tfsafe'", "'LayerNormLSTM'", "It is `tfsafe.layers.LayerNormLSTM`"),
    ),
    "name-loss": (
        lambda: losses.MeanSquaredErrr(),
        AttributeError,
        ("'tfsafe.losses'", "'MeanSquaredErrr'", "Did you mean 'MeanSquaredError'"),
    ),
    "name-optimizer": (
        lambda: optimizers.SafeOptimiser,
        AttributeError,
        ("'tfsafe.optimizers'", "'SafeOptimiser'", "Did you mean 'SafeOptimizer'"),
    ),
    "check-finite-value-name": (
        lambda: data.check_finite(np.ones(3), policy="replace", value="median"),
        TypeError,
        ("`value`", "Received: value='median'", '"mean" for that of the column'),
    ),
    "name-where": (
        lambda: ops.where(X > 1, X, 0.0),
        AttributeError,
        ("'tfsafe.ops'", "'where'", r"`tfsafe.ops.where_apply\("),
    ),
    "name-op-of-tensorflow": (
        lambda: ops.reduce_mean(X),
        AttributeError,
        ("'tfsafe.ops'", "'reduce_mean'", r"Use `tfsafe.ops.mean\(x, axis\)`"),
    ),
    "name-op": (
        lambda: ops.logg,
        AttributeError,
        ("'tfsafe.ops'", "'logg'", "Did you mean 'log'"),
    ),
}


@pytest.mark.parametrize("row", WRONG)
def test_a_wrong_call_is_answered_with_what_to_do(row):
    call, kind, parts = WRONG[row]
    # Under `error` in setup.cfg a warning is raised.
    with pytest.raises(kind) as caught:
        call()
    text = str(caught.value)
    for part in parts:
        assert re.search(part, text), f"{part!r} is not in {text!r}"


def test_a_function_with_an_input_signature_is_reported_without_arguments():
    function = tf.function(log_loss, input_signature=[tf.TensorSpec([], tf.float32)])
    assert isinstance(tfsafe.stabilize.report(function), rewriting.Report)


def test_what_was_refused_does_not_disturb_the_checks():
    # The error holds the frames, and they hold the object, as in a notebook.
    with pytest.raises(ValueError, match="adma") as refused:
        tfsafe.SafeOptimizer("adma")
    with pytest.raises(tfsafe.NumericsError):
        tfsafe.checked(tf.function(log_loss))(tf.constant([-1.0]))
    del refused


@pytest.mark.parametrize("missing", ["tensorflow", "keras"])
def test_a_missing_package_is_named_with_the_command_that_installs_it(missing):
    code = (
        "import sys\n"
        "class Missing:\n"
        "    def find_spec(self, name, *_):\n"
        f"        if name == {missing!r}:\n"
        "            raise ModuleNotFoundError(f'No module named {name}', name=name)\n"
        "sys.meta_path.insert(0, Missing())\n"
        "import tfsafe\n"
        "try: tfsafe.checked\n"
        "except ImportError as error: print(error)\n"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert f"needs {missing}" in answer
    assert "pip install tensorflow keras" in answer
