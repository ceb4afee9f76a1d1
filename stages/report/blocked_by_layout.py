"""Layers that use a generic kernel because their layout excludes the target's own kernels."""

import re
from collections.abc import Iterable
from typing import Any

from stages.ir.graph import Graph
from stages.support.messages.wording import of_several


def blocked_by_layout(layers: list[dict[str, Any]], graph: Graph, engine: str = "") -> list[str]:
    """Return a warning for each excluded kernel and reason, with its layers.

    `layers` are the report's, `graph` is tensorize's. With an accelerator (`engine`), layers on the core count too.
    Reasons that differ only in tensor names are merged.
    """
    names = {layer.index: [*layer.inputs, *layer.outputs] for layer in graph.layers}
    blocked: dict[tuple[str, str], list[tuple[int, str]]] = {}
    for layer in layers:
        is_general = layer["kernel"].startswith("generic.")
        for alternative in layer["alternatives"]:
            reason = alternative.get("reason", "") if is_general or alternative["kernel"] == engine else ""
            if any(term in reason for term in ("NHWC", "NCHW", "layout")):
                general = _general(reason, names.get(layer["index"], ()))
                blocked.setdefault((alternative["kernel"], general), []).append((layer["index"], reason))
    sentences = []
    for (kernel, general), entries in blocked.items():
        indices = list(dict.fromkeys(str(index) for index, _ in entries))
        reason = entries[0][1] if len(indices) == 1 else general
        sentences.append(f"{kernel} cannot compute {of_several('layer', indices)} in this layout: {reason}")
    return sentences


def _general(reason: str, names: Iterable[str]) -> str:
    """Replace tensor names in the reason: `a tensor is NCHW`."""
    # In one pass, whole words only, the longest first: a name may be a single letter or a prefix of another.
    pattern = "|".join(re.escape(name) for name in sorted(filter(None, names), key=len, reverse=True))
    return re.sub(rf"(\btensor )?(?<![\w/])({pattern})(?![\w/])", "a tensor", reason) if pattern else reason
