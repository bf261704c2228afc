"""Run as a script: TensorFlow splits the CPU at start-up only.

Prints a JSON object with what one way in, which is its argument, finds on two replicas,
by failure.
"""

import dataclasses
import json
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

import tfsafe
from tests.everywhere import faults, models, ways

GRAPH = models.Place()


def main() -> None:
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0],
        [tf.config.LogicalDeviceConfiguration()] * 2,
    )
    warnings.simplefilter("ignore")
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    run = ways.MODELS[sys.argv[1]]
    cells = {
        name: cell(strategy, run, fault)
        for name, fault in {**faults.FAULTS, "healthy": faults.HEALTHY}.items()
    }
    json.dump(cells, sys.stdout)


def cell(
    strategy: tf.distribute.Strategy, run: Callable[..., None], fault: faults.Fault
) -> dict[str, Any]:
    with strategy.scope():
        model = models.model_of(GRAPH, fault)
    try:
        run(model, GRAPH, fault)
    except tfsafe.NumericsError as error:
        found = dataclasses.asdict(error.findings[0])
    else:
        found = None
    (scale,) = model.trainable_variables
    local = strategy.experimental_local_results(scale.value)
    return {"finding": found, "scale": [np.asarray(each).tolist() for each in local]}


if __name__ == "__main__":
    main()
