"""All rules on all layers, until none is for any."""

from __future__ import annotations

from stages.ir.graph import Graph
from stages.lower.simplify.rewrites import Rewrite
from stages.lower.simplify.rules import RULES, rewritten
from stages.lower.simplify.value_ranges import BYTES, value_ranges


def simplified(graph: Graph) -> tuple[Graph, list[Rewrite]]:
    """The graph with less work, and what went; outputs are the same for all inputs."""
    found: list[Rewrite] = []
    reach = value_ranges(graph)  # of a tensor that stays it stays
    done: set[str] = set()
    while (layer := next((layer for layer in graph.layers if layer.name not in done), None)) is not None:
        for name, rule in RULES.items():
            changed = rule(graph, reach, layer) if len(layer.outputs) == 1 and not layer.state else None
            if changed is not None:
                graph, what = changed
                found.append(rewritten(layer, name, what))
                if any(name not in reach for name, tensor in graph.tensors.items() if tensor.dtype in BYTES):
                    reach = value_ranges(graph)
                break
        else:
            done.add(layer.name)
    return graph, found
