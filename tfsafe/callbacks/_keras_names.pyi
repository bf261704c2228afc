# ruff: noqa
# Written by `python -m tests.typing --write`.
from keras.callbacks import (
    CSVLogger as CSVLogger,
    Callback as Callback,
    CallbackList as CallbackList,
    History as History,
    LambdaCallback as LambdaCallback,
    LearningRateScheduler as LearningRateScheduler,
    OrbaxCheckpoint as OrbaxCheckpoint,
    ProgbarLogger as ProgbarLogger,
    RemoteMonitor as RemoteMonitor,
    TensorBoard as TensorBoard,
)
