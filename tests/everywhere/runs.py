"""How the matrix runs a program: eagerly, traced, compiled, loaded, in a thread."""

import concurrent.futures
import tempfile
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tests.everywhere.faults import HEALTHY, batch
from tests.everywhere.places import Program, plain

Function = Callable[..., Any]
Way = Callable[[Function], Function]


def eager(way: Way, program: Program) -> Function:
    return way(program.step)


def graph(way: Way, program: Program) -> Function:
    return way(tf.function(program.step, autograph=False))


def xla(way: Way, program: Program) -> Function:
    return way(tf.function(program.step, autograph=False, jit_compile=True))


def in_thread(way: Way, program: Program) -> Function:
    checked = graph(way, program)

    def run(*args: Any) -> Any:
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            return pool.submit(checked, *args).result()

    return run


def beside_another(way: Way, program: Program) -> Function:
    """Runs a second program, which is well, before and after."""
    other, checked = graph(way, Program(plain, HEALTHY)), graph(way, program)

    def run(*args: Any) -> Any:
        other(batch(HEALTHY))
        try:
            return checked(*args)
        finally:
            other(batch(HEALTHY))

    return run


def loaded(way: Way, program: Program) -> Function:
    spec = tf.TensorSpec([2, 3], tf.float32, name="x")
    program.step = tf.function(program.step, input_signature=[spec], autograph=False)
    with tempfile.TemporaryDirectory() as directory:
        tf.saved_model.save(program, directory)
        again = tf.saved_model.load(directory)  # loaded
    # For as long as the function is used.
    program.weight, program.loaded = again.weight, again
    return way(again.step)


RUNS = {each.__name__: each for each in (eager, graph, xla)}
OTHER_RUNS = {each.__name__: each for each in (in_thread, beside_another, loaded)}
