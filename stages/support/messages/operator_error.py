"""What is wrong with operators of a model: one in detail, several at once with counts and where they are."""

from __future__ import annotations

import re
from collections.abc import Sequence

from stages.support.messages import escape
from stages.support.messages.stage_error import StageError
from stages.support.messages.wording import several

_GROUPS = 3  # lines of their own when several operators are wrong: a message has five at most
# What tells two complaints of the same kind apart: names, lists, numbers.
_PARTICULAR = re.compile(r"'[^']*'|\"[^\"]*\"|\[[^\]]*\]|[-+]?\d[\d.,e+-]*")


def called(index: int, op: str, name: str | None = None) -> str:
    """`operator 3 (CONV_2D)`, with the name of its first output `operator 3 (CONV_2D) 'conv'`."""
    return f"operator {index} ({op})" if name is None else f"operator {index} ({op}) {escape.quoted(name)}"


class OperatorError(StageError):
    """One operator that cannot be computed: `operator 3 (CONV_2D) what`, with its tensors on a second line.

    what     completes the sentence that begins with the operator: "is not supported"
    index    its number in the file
    name     of its first output
    tensors  `'input', 'weights' -> 'output'`
    """

    def __init__(self, index: int, op: str, name: str, what: str, tensors: str, *, hint: str = "", named: bool = False):
        super().__init__(f"{called(index, op, name if named else None)} {what}\n  {tensors}", hint=hint)
        self.index, self.op, self.name, self.what = index, op, name, what


def together(errors: Sequence[OperatorError]) -> StageError:
    """All of them in one to five lines, the most frequent kind first; a single one as it is."""
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
    """`3 x WHILE (operators 4 'a', 9 'b', 12 'c')`, of custom ones what they are called: `(operator 4 MyKernel)`."""
    named = [error.op.partition(":")[2] or (escape.quoted(error.name) if error.name else "") for error in alike]
    where = several([f"{error.index} {name}".rstrip() for error, name in zip(alike, named, strict=True)])
    return f"{len(alike)} x {_kind(alike[0])} (operator{'s' if len(alike) > 1 else ''} {where})"


def _kind(error: OperatorError) -> str:
    """`CUSTOM` of `CUSTOM:MyKernel`."""
    return error.op.partition(":")[0]
