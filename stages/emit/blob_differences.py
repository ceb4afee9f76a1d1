"""Why a blob of weights for one emitted network does not fit the code of another."""

import json
import re
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any

from stages.support.messages import escape

_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_PORT_FIELDS = ("dtype", "shape")


def differences(old: Path, new: Path) -> Iterator[str]:
    """Yield the differences of two emitted folders, the most general first.

    `old` and `new` are artifacts of emit.
    """
    models = [json.loads((folder / "model.json").read_text()) for folder in (old, new)]
    before, after = models
    if len(before["layers"]) != len(after["layers"]):
        yield f"layers: {len(before['layers'])} in the firmware, {len(after['layers'])} in the new network"
        return
    for kind in ("input", "output"):
        yield from _ports(kind, before[f"{kind}s"], after[f"{kind}s"])
    changed = set()
    for one, other in zip(before["layers"], after["layers"], strict=True):
        for field, label in (("op", "operator"), ("shape_out", "output shape"), ("kernel", "kernel")):
            if one[field] != other[field]:
                changed.add(one["index"])
                yield f"layer {_named(other)}: {label} {_value(one[field])} in the firmware, now {_value(other[field])}"
                break
    constants = [{entry["name"]: entry["bytes"] for entry in model["constants"]} for model in models]
    for name in sorted(constants[0].keys() | constants[1].keys()):
        sizes = [known.get(name, 0) for known in constants]
        if sizes[0] != sizes[1] and int(name.partition(".")[0]) not in changed:
            yield f"constant {escape.name(name)}: {sizes[0]:,} bytes in the firmware, now {sizes[1]:,}"
    if before["prefix"] == after["prefix"]:
        yield from _code((old / "src/layers.c").read_text(), (new / "src/layers.c").read_text(), changed)


def _ports(kind: str, before: list[Any], after: list[Any]) -> Iterator[str]:
    if len(before) != len(after):
        yield f"{kind}s: {len(before)} in the firmware, {len(after)} in the new network"
        return
    for number, (one, other) in enumerate(zip(before, after, strict=True)):
        for field in _PORT_FIELDS:
            if one[field] != other[field]:
                label = field.replace("_", " ")
                yield f"{kind} {number}: {label} {_value(one[field])} in the firmware, now {_value(other[field])}"


def _code(before: str, after: str, known: set[int]) -> Iterator[str]:
    """Yield the first different line of each layer's code."""
    functions = [_functions(text) for text in (before, after)]
    for index in sorted(functions[0].keys() | functions[1].keys()):
        lines = [known_functions.get(index, []) for known_functions in functions]
        pair = next((pair for pair in zip_longest(*lines, fillvalue="") if pair[0] != pair[1]), None)
        if pair is not None and index not in known:
            yield f"layer {index}: its code is `{pair[0]}` in the firmware, now `{pair[1]}`"


def _functions(text: str) -> dict[int, list[str]]:
    """Return the lines of code by layer.

    A layer's static functions count to the next layer's own function.
    """
    lines: dict[int, list[str]] = {}
    waiting: list[str] = []
    for line in _COMMENT.sub("", text).splitlines():
        if line.strip():
            waiting.append(line.strip())
        if line.startswith("}") and (match := re.search(r"^\w.*\blayer_(\d+)_", "\n".join(waiting), re.MULTILINE)):
            lines.setdefault(int(match[1]), []).extend(waiting)
            waiting = []
    return lines


def _named(layer: Mapping[str, Any]) -> str:
    return f"{layer['index']} ({escape.name(layer['name'])})"


def _value(value: Any) -> str:
    return escape.name(str(value))
