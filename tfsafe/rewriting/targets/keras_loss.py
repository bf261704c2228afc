"""Makes a Keras loss whose formula is rewritten into its stable form."""

from collections.abc import Iterable, Sequence
from typing import Any

import keras
import tensorflow as tf

from tfsafe import _compat
from tfsafe.rewriting.engine.function import stabilized
from tfsafe.rewriting.reports.verify import verified
from tfsafe.rewriting.rules import table

_Names = str | Iterable[str]


@keras.saving.register_keras_serializable(package="tfsafe")
class StabilizedLoss(keras.losses.Loss):
    """A Keras loss whose formula is rewritten into its stable form.

    `tfsafe.stabilize(loss)` makes it. It has the name, the reduction and the attributes
    of the loss, and is saved with it.

    Args:
      loss: The loss.
      rules: As in `stabilize`.
      exclude: As in `stabilize`.
      verify: As in `stabilize`; not saved.

    Attributes:
      loss: The loss.
      function: The `tf.function` that computes it.
    """

    def __init__(
        self,
        loss: keras.losses.Loss,
        rules: _Names | None = None,
        exclude: _Names = (),
        verify: bool = False,
    ):
        super().__init__(name=loss.name, reduction=loss.reduction, dtype=loss.dtype)
        self.loss = loss
        self._rules = rules if rules is None else _listed(rules)
        self._exclude = _listed(exclude)
        chosen = table.chosen(self._rules, self._exclude)
        self.function = stabilized(self._whole, chosen, autograph=False)
        self._parts = stabilized(loss.call, chosen, autograph=False)
        self._run = self.function
        if verify:
            self._run = verified(self._whole, chosen, autograph=False)

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        """Computes the reduced loss, as the loss itself does."""
        return self._run(*self.arguments(y_true, y_pred, sample_weight))

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """Computes the loss of each sample, as the loss itself does."""
        return self._parts(y_true, y_pred)

    def arguments(
        self, y_true: Any, y_pred: Any, sample_weight: Any = None
    ) -> Sequence[Any]:
        """Returns the arguments of `function` for those of a call."""
        # What Keras attaches to a tensor does not enter a `tf.function` with it.
        attached = [
            (_compat.keras_mask(each), _compat.keras_logits(each))
            for each in tf.nest.flatten(y_pred)
        ]
        return y_true, y_pred, sample_weight, attached

    def _whole(
        self, y_true: Any, y_pred: Any, sample_weight: Any, attached: Any
    ) -> Any:
        for each, (mask, logits) in zip(tf.nest.flatten(y_pred), attached, strict=True):
            if mask is not None:
                _compat.set_keras_mask(each, mask)
            if logits is not None:
                _compat.set_keras_logits(each, logits)
        return self.loss(y_true, y_pred, sample_weight)

    def get_config(self) -> dict[str, Any]:
        """Returns what `from_config` makes the loss from."""
        return {
            "loss": keras.saving.serialize_keras_object(self.loss),
            "rules": self._rules,
            "exclude": self._exclude,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "StabilizedLoss":
        """Makes a loss from what `get_config` returned."""
        loss = keras.saving.deserialize_keras_object(config["loss"])
        return cls(**{**config, "loss": loss})

    def __getattr__(self, name: str) -> Any:
        # `copy` and `pickle` ask before `__init__` has run.
        if name.startswith("_") or name == "loss":
            raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")
        return getattr(self.loss, name)


def _listed(names: _Names) -> list[str]:
    return [names] if isinstance(names, str) else list(names)
