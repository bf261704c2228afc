"""Uses tfsafe as its users do; each line marked `error` is a mistake to be reported.

`python -m tests.typing` compares the marks with what mypy and pyright say.
"""

import keras
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
    regularizers,
)


def use(*values: object) -> None:
    del values


@tfsafe.checked
def fraction(hits: float, total: int) -> float:
    return hits / total


@tfsafe.checked(checks="full", exclude=["op:Log"])
def percent(hits: float, total: int) -> float:
    return 100 * hits / total


@tfsafe.stabilize
def odds(probability: float) -> float:
    return probability / (1 - probability)


@tfsafe.stabilize(exclude="log1p")
def inverse_odds(probability: float) -> float:
    return (1 - probability) / probability


def correct() -> None:
    value: float = fraction(1.0, 2) + percent(1.0, 2) + odds(0.5) + inverse_odds(0.5)
    names: list[str] = tfsafe.stabilize.rules()
    use(tfsafe.stabilize.report(odds, 0.5), names, value)
    model = tfsafe.checked(keras.Sequential([layers.Dense(1), layers.LogSoftmax()]))
    model.compile(
        tfsafe.SafeOptimizer(optimizers.Adam(1e-3), policy="zero_variable"),
        losses.MeanSquaredError(),
        metrics=[metrics.Mean(policy="skip"), metrics.R2Score()],
    )
    model.fit(
        tfsafe.check_finite(tf.ones((2, 3)), policy="drop"),
        callbacks=[callbacks.CSVLogger("log"), tfsafe.NumericsMonitor(policy="stop")],
    )
    with tfsafe.check_numerics(checks="domain"):
        use(ops.log(tf.constant(1.0)), debugging.summarize(model))
    tfsafe.enable_check_numerics(strict=True)
    cells = [layers.LayerNormLSTMCell(8, forget_bias=0.5, dropout=0.1, name="cell")]
    use(layers.RNN(cells), layers.LayerNormGRU(8, return_state=True, name="gru"))
    use(layers.LayerNormLSTM(8, "relu", dropout=0.1, seed=1, normalize_state="stored"))
    use(layers.GlobalAveragePooling1D(dtype="float32"), layers.Softmax(axis=1))
    use(layers.LayerNormalization(-1, epsilon=1e-6, rms_scaling=True, name="norm"))
    use(regularizers.L2(0.1), data.check_finite([1.0], policy="report"))


def mistakes() -> None:
    losses.MeanSquaredErrr()  # error
    layers.Dens(1)  # error
    layers.LayerNormLSTM("32")  # error
    layers.LayerNormLSTM(32, dropuot=0.1)  # error
    layers.LayerNormLSTM(32, normalize_state="storde")  # error
    layers.LayerNormLSTM(32, return_sequence=True)  # error
    layers.LayerNormLSTMCell(32, kernel_initialiser="zeros")  # error
    layers.LayerNormGRU(32, recurrent_dropuot=0.1)  # error
    layers.LayerNormGRUCell(32, forget_bias=1.0)  # error
    layers.LayerNormalization(espilon=1e-6)  # error
    layers.Normalization(nmae="norm")  # error
    layers.GlobalAveragePooling1D(empty_valeu=0.0)  # error
    layers.MaxPooling1D(2, strids=1)  # error
    layers.SafeMeanPooling(keepdim=True)  # error
    layers.LogSoftmax(axes=1)  # error
    metrics.R2Scores()  # error
    optimizers.SafeOptimiser("adam")  # error
    callbacks.NumericMonitor()  # error
    regularizers.L3(0.1)  # error
    ops.logg(1.0)  # error
    tfsafe.chekced(fraction)  # error
    tfsafe.stabilize.reports(odds, 0.5)  # error
    fraction("one", 2)  # error
    percent(1.0)  # error
    odds(probabilty=0.5)  # error
    inverse_odds("half")  # error
    text: str = fraction(1.0, 2)  # error
    use(text)
    tfsafe.checked(3)  # error
    tfsafe.checked(fraction, checks="ful")  # error
    tfsafe.enable_check_numerics(checks="all")  # error
    tfsafe.check_numerics(checks="all")  # error
    tfsafe.SafeOptimizer("adam", policy="skp")  # error
    tfsafe.SafeOptimizer("adam", polcy="skip")  # error
    tfsafe.NumericsMonitor(policy="skp")  # error
    tfsafe.check_finite([1.0], policy="rase")  # error
    metrics.Mean(policy="skp")  # error
    layers.Normalization().adapt([1.0], policy="skp")  # error
    losses.StableCrossEntropy(from_logit=True)  # error
    losses.StableCrossEntropy(labels="one_hot")  # error
    tfsafe.NumericsMonitor(checks="ful")  # error
    tfsafe.NumericsMonitor("full")  # error
    tfsafe.checked(fraction, look_every="often")  # error
    tfsafe.stabilize(odds, exclde="log1p")  # error
    use(debugging.summarise(1.0))  # error
    debugging.replay("nan.zip", checks="ful")  # error
    use(tfsafe.last_error().findings)  # error
    tfsafe.install("losses")  # error
    ops.divide(1.0)  # error
    ops.norm(1.0, axs=0)  # error
    use(tfsafe.coverage("mse").sumary)  # error
    tfsafe.NumericsError("text").to_htm()  # error
