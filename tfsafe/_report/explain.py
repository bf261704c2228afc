"""Explains a finding in a few lines: what, where, why and what to do."""

import dataclasses
import itertools
import re
from collections.abc import Sequence

from tfsafe._report.catalogue import TRAPS
from tfsafe._report.costs import COSTS
from tfsafe._report.records import FindingFields, Link, TensorStats
from tfsafe._report.text import INDENT, STEPS, counted, middle_out, wrapped

# A call that starts a training of Keras, which then makes the operations.
_TRAINING = re.compile(r"\.(fit|evaluate|predict|(train|test|predict)_on_batch)\(")
# A name of the package in a suggestion.
_SUGGESTED = re.compile(r"\btfsafe\.(\w+\.\w+)")
_SURVEY = "data.check_finite"
# What a metric of Keras adds up, and what it reads, only repeats the loss.
_METRIC = re.compile(r"\.(update_state|result)\(")
_OF_LOSS = "gradient of the loss"
# Scope in which Keras computes the losses of `compile`.
LOSSES = "compile_loss"
# A step of a path takes one line, so a longer line of source is cut.
_WIDE = 100


def lines_of(finding: FindingFields) -> list[str]:
    """Returns the explanation of a finding, line by line."""
    size = [f"  what:  {what(finding)}"] if finding.size else []
    lines = [headline(finding), *size, *_where(finding)]
    if finding.cause:
        lines += wrapped("  why:   ", finding.cause)
    heads = ["  input: "] + [INDENT] * len(finding.inputs)
    for head, stats in zip(heads, finding.inputs, strict=False):
        lines += wrapped(head, f"{stats.name}, {kind_of(stats)}: {figures(stats)}")
    return lines + fix_lines(finding)


def fix_lines(finding: FindingFields) -> list[str]:
    """Returns the lines of the suggested fix; none without a suggestion."""
    if not finding.suggestion:
        return []
    if not finding.suggested_code:
        return wrapped("  fix:   ", finding.suggestion)
    first, *rest = finding.suggested_code.split("\n")
    code = [f"  fix:   {first}", *(f"{INDENT}{line}" for line in rest)]
    return [*code, *wrapped(INDENT, finding.suggestion)]


def traps_of(finding: FindingFields) -> dict[str, str]:
    """Returns the traps that the suggested names fix; the most similar line first."""
    names = _SUGGESTED.findall(f"{finding.suggested_code} {finding.suggestion}")
    traps = {row: trap for n in names for row, trap in TRAPS.get(n, {}).items()}
    source = finding.site.source if finding.site else ""
    own = _words(f"{finding.op_type} {finding.forward_op} {source}")
    rows = sorted(traps, key=lambda row: -len(own & _words(traps[row])))
    return {row: traps[row] for row in rows}


def cost_of(finding: FindingFields) -> str:
    """Says how long the suggested code takes, where that was measured."""
    code, words = finding.suggested_code, finding.suggestion
    for name in [*_SUGGESTED.findall(code), *_SUGGESTED.findall(words)]:
        if name == _SURVEY:
            return "one pass over the data, before the training"
        if name in COSTS:
            low, high = COSTS[name]
            often = f"{low:.1f} to {high:.1f} times as long"
            if name.startswith("optimizers."):
                return f"a step takes {often} with `tfsafe.{name}`"
            return f"`tfsafe.{name}` takes {often} as the plain function"
    return ""


def _words(text: str) -> set[str]:
    return set(re.findall(r"[a-z]\w+", text.lower()))


def headline(finding: FindingFields) -> str:
    """Returns one sentence: which value came from where."""
    if finding.row is None:
        return f"{_head(finding)}."
    row = f", first in row {finding.row} of the batch"
    if is_everywhere(finding):
        return f"{_head(finding)}, in every row of the batch."
    # The column of a table is the feature.
    is_table = finding.origin and len(finding.index) == 2
    feature = f", feature {finding.index[1]}" if is_table else ""
    return f"{_head(finding)}{row}{feature}."


def is_everywhere(finding: FindingFields) -> bool:
    """Returns whether every value of every row of the batch is non-finite."""
    many = bool(finding.shape) and finding.shape[0] > 1
    return finding.row is not None and many and finding.count == finding.size


def first_line(finding: FindingFields) -> str:
    """Returns the first sentence of the text of a finding, of any class."""
    return str(finding).partition("\n")[0]


def _head(finding: FindingFields) -> str:
    if finding.origin:
        return f"{finding.kind} in {finding.origin}"
    if finding.is_gradient and finding.forward_op:
        forward, own = finding.forward_op, finding.op_type
        return f"{finding.kind} in the gradient of `{forward}`, from `{own}`"
    where = " in the backward pass" if finding.is_gradient else ""
    return f"{finding.kind} from `{finding.op_type}`{where}"


def what(finding: FindingFields) -> str:
    """Says how many elements are non-finite, and where the first one is."""
    if not finding.size:
        return f"values of {finding.dtype}" if finding.dtype else ""
    if not finding.shape:
        return f"the only value, {finding.dtype}"
    first = "at" if finding.count == 1 else "the first at"
    return (
        f"{_amount(finding)}, {first} {finding.index}; shape {finding.shape}, "
        f"{finding.dtype}"
    )


def _amount(finding: FindingFields) -> str:
    """Says how many values of how many, by kind where there are several."""
    counts = _nonfinite_counts(finding.output) if finding.output else []
    if len(counts) < 2 or sum(count for count, _ in counts) != finding.count:
        return f"{finding.count} of {finding.size} values"
    by_kind = " and ".join(f"{count} {kind}" for count, kind in counts)
    return f"{by_kind} of {finding.size} values"


def place_of(finding: FindingFields) -> str:
    """Describes the surroundings of the line: the layers, the loops."""
    around = finding.layer or _of_scope(finding.scope)
    notes = [f"inside {around}"] if around else []
    if finding.iteration:
        notes.append(f"loop iteration {', '.join(map(str, finding.iteration))}")
    if finding.is_gradient and finding.forward_op and finding.site is not None:
        notes.insert(0, "the forward operation")
    if finding.origin and finding.site is not None:
        notes.insert(0, "which reads it first")
    return "; ".join(notes)


def _of_scope(scope: str) -> str:
    head, _, loss = scope.partition("/")
    return f"the loss {loss}".rstrip() if head == LOSSES else scope


def _where(finding: FindingFields) -> list[str]:
    around = place_of(finding)
    note = f" ({around})" if around else ""
    site = finding.site
    if site is None:
        if finding.origin:
            return []
        operation = finding.op_name or finding.op_type
        return [f"  where: no line of yours; operation `{operation}`{note}"]
    lines = [f"  where: {site.place} in {site.function}{note}"]
    return lines + ([f"{INDENT}    {site.source}"] if site.source else [])


def kind_of(tensor: TensorStats | FindingFields | Link) -> str:
    """Returns dtype and shape of a tensor as text."""
    return f"{tensor.dtype} {'x'.join(map(str, tensor.shape)) or 'scalar'}"


def figures(stats: TensorStats) -> str:
    """Describes the contents of a tensor: its range, and what deserves a look."""
    phrases = []
    if stats.min is not None and stats.max is not None:
        same = stats.min == stats.max
        low, high = f"{stats.min:.4g}", f"{stats.max:.4g}"
        phrases.append(f"all {low}" if same and stats.shape else f"{low} to {high}")
        if same and not stats.shape:
            phrases = [low]
        elif not same:
            phrases.append(f"mean {stats.mean:.4g}")
    elif not _nonfinite_counts(stats):
        return "no elements"
    if stats.min != stats.max:
        phrases += counted(stats.zeros, "zero"), counted(stats.negatives, "negative")
    phrases += [f"{count} {kind}" for count, kind in _nonfinite_counts(stats)]
    return ", ".join(part for part in phrases if part)


def _nonfinite_counts(stats: TensorStats) -> list[tuple[int, str]]:
    kinds = (stats.nans, "NaN"), (stats.posinfs, "+Inf"), (stats.neginfs, "-Inf")
    return [(count, kind) for count, kind in kinds if count]


def trap_lines(finding: FindingFields) -> list[str]:
    """Returns the line of the measured trap that is most like a finding, if any is."""
    for row, title in traps_of(finding).items():
        return wrapped("  trap:  ", f"{row}, {title}; see `tfsafe coverage {row}`")
    return []


def chain_lines(chain: Sequence[Link]) -> list[str]:
    """Returns the propagation path as a table, one line a step."""
    rows = [
        (
            f"{number}",
            name_of(link),
            link.kind,
            amount_of(link),
            short_place(link),
            link.site.source if link.site else "",
        )
        for number, link in enumerate(folded(chain), 1)
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(
            cell.ljust(width) for cell, width in zip(row, widths, strict=True)
        ).rstrip()
        for row in rows
    ]
    lines = [
        line if len(line) <= _WIDE else f"{line[: _WIDE - 3]}..." for line in lines
    ]
    kept, omitted = middle_out(lines)
    if omitted:
        kept.insert(STEPS // 2, f"... {omitted} more ...")
    heads = ["  chain: "] + [INDENT] * len(kept)
    return [head + line for head, line in zip(heads, kept, strict=False)]


def folded(chain: Sequence[Link]) -> list[Link]:
    """Returns a path with the operations of one layer, or of Keras, as one step.

    The first operation stays: the values begin there. Keras' mean of the losses is the
    loss.
    """
    if not chain:
        return []
    first, *rest = chain
    rest = [each for each in rest if each.origin or not _is_metric(each)]
    if not first.origin and first.layer:
        site = None if _is_in_training(first) else first.site
        name = f"{first.op_type} in {first.layer}"
        first = dataclasses.replace(first, origin=name, site=site, scope="", layer="")
    steps = [first]
    update = _start_of_update([first, *rest]) - 1
    blocks = [_block(each, at >= update) for at, each in enumerate(rest)]
    for at in range(1, len(blocks)):
        # What adds up the gradients of a layer belongs to the layer.
        if blocks[at] == _OF_LOSS and blocks[at - 1].startswith("gradient of "):
            blocks[at] = blocks[at - 1]
    named = zip(blocks, rest, strict=True)
    for block, links in itertools.groupby(named, lambda pair: pair[0]):
        found = [link for _, link in links]
        if not block:
            steps += found
            continue
        last = found[-1]
        site = None if _is_in_training(last) else last.site
        steps.append(
            dataclasses.replace(last, origin=block, site=site, scope="", layer="")
        )
    if len(steps) > 1 and steps[-1].origin == "output['loss']":
        end = dataclasses.replace(steps.pop(), origin="loss")
        steps[-1:] = [*steps[-1:], end] if steps[-1].origin != "loss" else [end]
    return steps


def _start_of_update(chain: Sequence[Link]) -> int:
    """Returns where a path enters the optimizer: behind the last gradient of all."""
    last = max((at for at, each in enumerate(chain) if each.is_gradient), default=None)
    if last is None or not chain[-1].origin.startswith("variable"):
        return len(chain)
    return last + 1


def _block(link: Link, is_update: bool) -> str:
    """Returns the name of the layer or the part of Keras that made an operation."""
    if link.origin:
        return ""
    if link.layer:
        return f"gradient of {link.layer}" if link.is_gradient else link.layer
    if not _is_in_training(link):
        return ""
    if is_update:
        return "update by the optimizer"
    return _OF_LOSS if link.is_gradient else "loss"


def _is_in_training(link: Link) -> bool:
    """Returns whether the user's line only starts a training of Keras."""
    return link.site is not None and bool(_TRAINING.search(link.site.source))


def _is_metric(link: Link) -> bool:
    return link.site is not None and bool(_METRIC.search(link.site.source))


def name_of(link: Link) -> str:
    """Returns the name of a step."""
    return link.origin or link.op_type or "from outside"


def amount_of(link: Link) -> str:
    """Says how many elements of a step's output are non-finite, if it is known."""
    return f"{link.count} of {link.size}" if link.size else ""


def short_place(link: Link) -> str:
    """Returns file and line of a step, or the layers around it."""
    if link.site is None:
        return link.layer or link.scope
    return link.site.short_place
