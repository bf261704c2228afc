"""Defines one row of the table of fixes."""

from typing import NamedTuple


class Fix(NamedTuple):
    """One row: for which failure, the code to write, and what it does.

    Attributes:
      op: Type of the operation, the forward one for a gradient.
      code: The code, with `{0}`, `{1}` for the arguments, `{inner}` for those of the
        call that is the first, `{weight}` for what the result is multiplied by,
        `{own_weight}` for that if it is the argument, `{expanded}` for the product of a
        weight and the difference of two logarithms,
        `{exponent}` for x of `exp(x) / sum(exp(x))` and of `log(sum(exp(x)))`,
        `{of_softmax}` for that of `log(exp(x) / sum(exp(x)))`,
        `{axis}` and `{keepdims}` for those of the softmax or of the sum, with a comma
        before them, `{complement_of_sigmoid}` for what is in `1 - sigmoid(x)`,
        `{complement_of_tanh}` for what is in `1 - tanh(x)**2`,
        `{beside_one}` for what is in `1 + exp(x)`, `{log_added}` for the logarithm of
        anything else that is added to it,
        `{segments}` and `{count}` for those of a sum over segments, `{rest}` for all
        arguments but the first; empty where there is none.
      words: What it does, or what to change; with the fields of the code.
      when: `"forward"`, `"gradient"`, or empty for both.
      source: Type of the operation that made an input; empty for any.
      fault: Kind of the fault; empty for any.
      met_next: Operations that the values met next; empty for any.
      met_later: An operation that sums, factors or picked elements of the values met;
        empty for any.
      is_rewritten: Whether a rule of `tfsafe.stabilize` repairs it too.
      dtype: Name of the dtype; empty for any.
      kind: What the values became; empty for anything.
      written: What the user's line calls, as a regular expression; empty for anything.
      zero: How the zero behind it was made, or the type of the operation that did, see
        `Failure`; empty for anything.
      above_one: Whether an argument is above 1, unlike a probability.
      replaces: What the code takes the place of: `"all"`, the operation and those that
        its values met next; `"first"`, the operation alone; otherwise the type of the
        outermost operation, or empty where it is more than an expression.
      is_read: Whether it is for a line alone that shows what the code needs.
    """

    op: str
    code: str
    words: str
    when: str = ""
    source: str = ""
    fault: str = "domain"
    met_next: tuple[str, ...] = ()
    is_rewritten: bool = False
    dtype: str = ""
    kind: str = ""
    written: str = ""
    zero: str = ""
    is_read: bool = False
    above_one: bool = False
    replaces: str = "all"
    met_later: str = ""
