"""Defines one row of the table of fixes."""

from typing import NamedTuple

# Numbers that suggested code names, in half precision and in other dtypes.
_NUMBERS = {
    # A lower bound, whose reciprocal is finite.
    "{floor}": {"float16": "1e-3", "": "1e-6"},
    # A lower bound of what is drawn, below all but 0 of it.
    "{least}": {"float16": "1e-4", "": "1e-30"},
    # How far from 1 a number is that is not rounded to 1.
    "{gap}": {"float16": "1e-3", "bfloat16": "1e-2", "": "1e-6"},
    # What is added to the diagonal of a matrix.
    "{shift}": {"float16": "1e-2", "": "1e-3"},
    # A bound of an exponent, whose exponential leaves room for sums.
    "{highest}": {"float16": "10.0", "": "20.0"},
}


class Fix(NamedTuple):
    """One row: for which failure, the code to write, and what it does.

    Attributes:
      op: Type of the operation, the forward one for a gradient.
      code: The code, with the fields of `in_dtype`, and `{0}`, `{1}` for the arguments,
        `{inner}` for those of the call that is the first, `{weight}` for what the
        result is multiplied by, `{own_weight}` for that if it is the argument,
        `{expanded}` for the product of a weight and the difference of two logarithms,
        `{exponent}` for x of `exp(x) / sum(exp(x))` and of `log(sum(exp(x)))`,
        `{of_softmax}` for that of `log(exp(x) / sum(exp(x)))`,
        `{axis}` and `{keepdims}` for those of the softmax or of the sum, with a comma
        before them, `{complement_of_sigmoid}` for what is in `1 - sigmoid(x)`,
        `{complement_of_tanh}` for what is in `1 - tanh(x)**2`,
        `{beside_one}` for what is in `1 + exp(x)`, `{log_added}` for the logarithm of
        anything else that is added to it, `{bound}` for c of `minimum(x, c) / x`,
        `{segments}` and `{count}` for those of a sum over segments, `{rest}` for all
        arguments but the first; empty where there is none.
      words: What it does, or what to change; with the fields of the code.
      when: `"forward"`, `"gradient"`, or empty for both.
      source: Type of the operation that made an input; empty for any.
      last: Type of the operation that made the last input; empty for any.
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
    last: str = ""

    def in_dtype(self, dtype: str) -> "Fix":
        """Returns the row with the numbers that a dtype holds, in code and words.

        They have fields: `{floor}` above 0, `{least}` above a draw of 0, `{gap}` below
        1, `{shift}` for a diagonal, `{highest}` for an exponent.
        """
        code, words = self.code, self.words
        for field, numbers in _NUMBERS.items():
            number = numbers.get(dtype, numbers[""])
            code = code.replace(field, number)
            words = words.replace(field, number)
        return self._replace(code=code, words=words)
