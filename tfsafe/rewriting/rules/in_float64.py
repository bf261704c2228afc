"""Makes formulas in float64, for rules that round them once."""

from collections.abc import Collection, Mapping, Sequence

import tensorflow as tf

from tfsafe.graph import DIVISIONS, RECIPROCALS, SUMS, OpFact, op_types
from tfsafe.rewriting.analysis import wider
from tfsafe.rewriting.engine.rule import Rule, Value, first
from tfsafe.rewriting.facts.tensors import NARROW, Reader
from tfsafe.rewriting.log_space.form import Widened
from tfsafe.rewriting.match.trees import Trees

# Types of the operations that are made in float64.
INSIDE = frozenset({
    *DIVISIONS,
    *RECIPROCALS,
    *SUMS,
    *op_types(OpFact.RESHAPES),
    *("BroadcastTo", "Digamma", "Exp", "Expm1", "Lgamma", "Log", "Log1p", "Mean"),
    *("Mul", "Neg", "Pack", "Polygamma", "Pow", "Sigmoid", "Softplus", "Sqrt"),
    *("Square", "SquaredDifference", "StridedSlice", "Sum", "Transpose"),
    *("Xlog1py", "Xlogy"),
})
# Rules for logarithms that are made in float64 where all of a formula is.
LOGARITHMS = frozenset({
    *("log-of-power", "log-of-product", "log-of-ratio", "log-of-softmax"),
    *("log-of-sum", "log-softmax-by-hand", "logsumexp-by-hand"),
})
# Rules that are made in the dtype of what they are made of, besides fixed trees.
_ANY_DTYPE = frozenset({
    *("complement", "difference-of-function", "digamma-difference", "exp-minus-one"),
    *("log-of-one-plus", "log-pochhammer", "weighted-lgamma", "weighted-log"),
})


def is_made_wide(rule: Rule, rules: Collection[str] = ()) -> bool:
    """Returns whether what a rule makes can be made in float64.

    Args:
      rule: The rule.
      rules: Names of rules that can, besides those that are known to.
    """
    return rule.name in _ANY_DTYPE.union(rules) or isinstance(rule.match, Trees)


class Wide:
    """Makes tensors in float64.

    Args:
      reader: Reader of the graph.
      others: Rules for parts of the formula.
      more: Types of operations that are made in float64, too.
      rules: Names of rules that are made in float64, too.
      leaves: Tensors that the formula begins with.
    """

    def __init__(
        self,
        reader: Reader,
        others: Sequence[Rule],
        more: Collection[str] = (),
        rules: Collection[str] = (),
        leaves: Sequence[tf.Tensor] = (),
    ):
        self._reader = reader
        self._leaves = frozenset(map(reader.number, leaves))
        self._others = others
        self._rules = rules
        self._inside = INSIDE.union(more)

    def of(self, value: Value, known: Mapping[int, tf.Tensor] | None = None) -> Value:
        """Returns the counterparts in float64 of tensors of a formula.

        Args:
          value: Returns the counterpart of a tensor.
          known: Counterparts in float64, by the numbers of their tensors.
        """
        made = dict(known or {})

        def counterpart(tensor: tf.Tensor) -> tf.Tensor:
            if tensor.dtype not in NARROW:
                return value(tensor)
            key = self._reader.number(tensor)
            if key not in made:
                source = self._reader.source(tensor)
                made[key] = tf.cast(compute(source, key), tf.float64)
            return made[key]

        def compute(tensor: tf.Tensor, key: int) -> tf.Tensor:
            op = tensor.op
            is_inside = op.type in self._inside and key not in self._leaves
            if not is_inside or self._reader.constant(tensor) is not None:
                return value(tensor)
            found = first(self._others, op, self._reader)
            if found is not None:
                rule, build = found
                is_wide = is_made_wide(rule, self._rules)
                return build(wide) if is_wide else value(tensor)
            return wider.run(op, [wide(each) for each in op.inputs])

        wide = Widened(counterpart, tf.float64)
        return wide
