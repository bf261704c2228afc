"""Checks the training, evaluation and prediction steps of Keras models.

`model` replaces the functions that Keras calls once a batch, `step` makes one of them a
checked `tf.function`, on several devices as well, `loss_scale` finds gradients that no
loss scale helps, and `when` adds step, epoch and batch to an error.

May import: `debugging.checks` and what that may import. Only `entry` and `callbacks`
import it:

    check_model(model)  # from now on `model.fit` raises NumericsError
    uncheck_model(model)
"""
