"""Ends `tf.data` pipelines without the wait of their autotuning.

TensorFlow tunes each pipeline in a thread that looks at it at longer and longer
intervals, up to a minute, and joins this thread where the pipeline ends. The thread is
told to end before it can see that it should: where it is fast, or has the processor to
itself, it waits for its next look (18.9 s were seen), and with it the test.
"""

import tensorflow as tf
from tensorflow.python.data.ops import dataset_ops


def switch_autotuning_off() -> None:
    """Starts no such thread for the pipelines of this process from now on."""
    plain = dataset_ops.DatasetV2._apply_debug_options

    def untuned(dataset: tf.data.Dataset) -> tf.data.Dataset:
        options = tf.data.Options()
        options.autotune.enabled = False
        return plain(dataset.with_options(options))

    dataset_ops.DatasetV2._apply_debug_options = untuned
