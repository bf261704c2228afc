"""Reports each rewrite: its place, the formula, the stable form and the reason."""

import dataclasses
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from tfsafe import _compat
from tfsafe._report import html
from tfsafe.errors import Site
from tfsafe.graph import locate
from tfsafe.rewriting.engine.function import as_argument, collected
from tfsafe.rewriting.engine.planner import Rewrite


@dataclasses.dataclass(frozen=True)
class Change:
    """One rewrite.

    Attributes:
      rule: Name of the rule.
      before: The formula as people write it.
      after: What is computed in its place.
      why: When the formula fails.
      op_type: TensorFlow's type of the operation that the formula ends in.
      op_name: Its name in the graph of the function.
      dtype: Name of the dtype of its result.
      site: The user's line, or None where only library code is on the stack.
    """

    rule: str
    before: str
    after: str
    why: str
    op_type: str
    op_name: str
    dtype: str
    site: Site | None = None

    def __str__(self) -> str:
        where = f"operation `{self.op_name}`"
        if self.site is not None:
            where = f"{self.site.place} in {self.site.function}"
        lines = [f"{self.rule} ({self.dtype}): {where}"]
        if self.site is not None and self.site.source:
            lines.append(f"    {self.site.source}")
        for head, text in (
            ("  before: ", self.before),
            ("  after:  ", self.after),
            ("  why:    ", self.why),
        ):
            indent = " " * len(head)
            lines += textwrap.wrap(
                text, 88, initial_indent=head, subsequent_indent=indent
            )
        return "\n".join(lines)


class Report(list[Change]):
    """The rewrites of one function, in the order of the program.

    Args:
      changes: The rewrites.
      name: What the function is called.
    """

    def __init__(self, changes: Iterable[Change] = (), name: str = "the function"):
        super().__init__(changes)
        self.name = name

    def __str__(self) -> str:
        if not self:
            return f"Nothing to rewrite: no rule fits a formula of `{self.name}`."
        count = "1 rewrite" if len(self) == 1 else f"{len(self)} rewrites"
        return "\n".join([f"{count} in `{self.name}`.", *map(str, self)])

    def _repr_html_(self) -> str:
        """Shows the rewrites as a table in a notebook."""
        rows = [
            (
                each.rule,
                each.site.place if each.site else f"operation {each.op_name}",
                each.site.source if each.site else each.before,
                each.after,
                each.why,
            )
            for each in self
        ]
        head = ("rule", "where", "source", "computed instead", "why")
        title = str(self).partition("\n")[0]
        return html.fragment_of_table(title, [head, *rows])


def report_of(function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Report:
    """Traces a stabilised function and reports."""
    args, kwargs = tf.nest.map_structure(as_argument, (tuple(args), dict(kwargs)))
    with collected() as found:
        _compat.with_body(function).get_concrete_function(*args, **kwargs)
        # Their graphs live until here.
        changes = [_change(each) for each in found]
    return Report(changes, getattr(function, "__name__", "the function"))


def _change(rewrite: Rewrite) -> Change:
    rule, op = rewrite
    dtypes = [each.dtype for each in op.outputs]
    dtype = next((each for each in dtypes if each.is_floating), dtypes[0])
    return Change(
        rule=rule.name,
        before=rule.before,
        after=rule.after,
        why=rule.fails_when,
        op_type=op.type,
        op_name=op.name,
        dtype=dtype.name,
        site=locate(op).site,
    )
