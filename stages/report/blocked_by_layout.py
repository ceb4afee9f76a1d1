"""Which layers could not have a kernel made for the target because of the layout that was decided for them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from stages.support.messages.wording import of_several

if TYPE_CHECKING:
    from stages.ir.graph import Graph


def blocked_by_layout(layers: list[dict[str, Any]], graph: Graph, engine: str = "") -> list[str]:
    """A sentence for each such kernel and reason, with its layers. `layers` are the report's, `graph` tensorize's.

    `engine` is the target's accelerator: what any kernel of the core computes for the sake of a layout counts.
    Reasons that differ in the names of the layers' tensors are one.
    """
    names = {layer.index: [*layer.inputs, *layer.outputs] for layer in graph.layers}
    found: dict[tuple[str, str], list[tuple[int, str]]] = {}
    for layer in layers:
        is_general = layer["kernel"].startswith("generic.")
        for other in layer["alternatives"]:
            reason = other.get("reason", "") if is_general or other["kernel"] == engine else ""
            if any(word in reason for word in ("NHWC", "NCHW", "layout")):
                general = _general(reason, names.get(layer["index"], ()))
                found.setdefault((other["kernel"], general), []).append((layer["index"], reason))
    sentences = []
    for (kernel, general), told in found.items():
        indices = list(dict.fromkeys(str(index) for index, _ in told))
        reason = told[0][1] if len(indices) == 1 else general
        sentences.append(f"{kernel} cannot compute {of_several('layer', indices)} in this layout: {reason}")
    return sentences


def _general(reason: str, names: Iterable[str]) -> str:
    """The reason without the names of tensors in it: `a tensor is NCHW`."""
    # At once and whole words only, the longest first: a name may be a single letter, or begin another.
    known = "|".join(re.escape(name) for name in sorted(filter(None, names), key=len, reverse=True))
    return re.sub(rf"(\btensor )?(?<![\w/])({known})(?![\w/])", "a tensor", reason) if known else reason
