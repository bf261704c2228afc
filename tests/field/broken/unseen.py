"""Estimates probabilities of words from counts, of which some are 0."""

import tensorflow as tf

WORDS = ["win", "money", "noon"]
TEXTS = {"spam": "win money money", "ham": "money at noon"}


@tf.function
def log_probabilities(counts):
    return tf.math.log(counts / tf.reduce_sum(counts, axis=1, keepdims=True))  # here


counts = [[text.split().count(word) for word in WORDS] for text in TEXTS.values()]
log_probabilities(tf.constant(counts, tf.float32))
