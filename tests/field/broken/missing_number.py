"""Trains on a table of text in which a number is missing."""

import keras
import tensorflow as tf

LINES = ["30,1.0,0", "41,NaN,1", "25,0.8,0", "60,2.5,1"]


def parse(line):
    columns = [0.0, 0.0, 0.0]
    age, income, target = tf.io.decode_csv(line, columns)  # here
    return tf.stack([age / 100.0, income]), target


data = tf.data.Dataset.from_tensor_slices(LINES).map(parse).batch(2)
model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
model.compile("adam", "mse")
model.fit(data, verbose=0)
