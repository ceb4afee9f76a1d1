"""Errors about operators of a model: one in detail, or several with counts and places."""

import re
from collections.abc import Sequence

from stages.support.messages import escape
from stages.support.messages.stage_error import StageError
from stages.support.messages.wording import several

_GROUPS = 3  # kinds of error that get a line: a message has at most five lines
# Names, lists and numbers, which differ between errors of the same kind.
_PARTICULAR = re.compile(r"'[^']*'|\"[^\"]*\"|\[[^\]]*\]|[-+]?\d[\d.,e+-]*")


def operator_label(index: int, op: str, name: str | None = None) -> str:
    """Return `operator 3 (CONV_2D)`, or with a name `operator 3 (CONV_2D) 'conv'`."""
    return f"operator {index} ({op})" if name is None else f"operator {index} ({op}) {escape.quoted(name)}"


class OperatorError(StageError):
    """One operator that cannot be computed: `operator 3 (CONV_2D) what`, tensors on line two.

    what     completes the sentence that begins with the operator: "is not supported"
    index    number of the operator in the file
    name     name of its first output
    tensors  `'input', 'weights' -> 'output'`
    """

    def __init__(self, index: int, op: str, name: str, what: str, tensors: str, *, hint: str = "", named: bool = False):
        super().__init__(f"{operator_label(index, op, name if named else None)} {what}\n  {tensors}", hint=hint)
        self.index, self.op, self.name, self.what = index, op, name, what


def combined_error(errors: Sequence[OperatorError]) -> StageError:
    """Return one error for all, in at most five lines, the most frequent kind first."""
    if len(errors) == 1:
        return errors[0]
    groups: dict[tuple[str, str], list[OperatorError]] = {}
    for error in errors:
        groups.setdefault((_kind(error), _PARTICULAR.sub("…", error.what)), []).append(error)
    kinds = sorted(groups.values(), key=lambda alike: -len(alike))
    lines = [f"{len(errors)} operators cannot be computed:"]
    lines += [f"  {_counted(alike)}: {alike[0].what.removeprefix('is ')}" for alike in kinds[:_GROUPS]]
    hint = kinds[0][0].hint
    if len(kinds) > _GROUPS:
        rest = [f"{len(alike)} x {_kind(alike[0])}" for alike in kinds[_GROUPS:]]
        hint = f"  and {sum(map(len, kinds[_GROUPS:]))} more: {several(rest, 10)}"
    return StageError("\n".join(lines), hint=hint)


def _counted(alike: list[OperatorError]) -> str:
    """Return `3 x WHILE (operators 4 'a', 9 'b', 12 'c')`; custom operators by their code."""
    named = [error.op.partition(":")[2] or (escape.quoted(error.name) if error.name else "") for error in alike]
    where = several([f"{error.index} {name}".rstrip() for error, name in zip(alike, named, strict=True)])
    return f"{len(alike)} x {_kind(alike[0])} (operator{'s' if len(alike) > 1 else ''} {where})"


def _kind(error: OperatorError) -> str:
    """Return the operator's name without a custom code: `CUSTOM` for `CUSTOM:MyKernel`."""
    return error.op.partition(":")[0]
