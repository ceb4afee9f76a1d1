"""Apply all rules to all layers until none applies."""

from stages.ir.graph import Graph
from stages.lower.simplify.rewrites import Rewrite
from stages.lower.simplify.rules import RULES, rewritten
from stages.lower.simplify.value_ranges import BYTES, value_ranges


def simplified(graph: Graph) -> tuple[Graph, list[Rewrite]]:
    """Return the simplified graph and its rewrites. Outputs are the same for all inputs."""
    rewrites: list[Rewrite] = []
    ranges = value_ranges(graph)  # a tensor that stays keeps its range
    done: set[str] = set()
    while (layer := next((layer for layer in graph.layers if layer.name not in done), None)) is not None:
        for name, rule in RULES.items():
            changed = rule(graph, ranges, layer) if len(layer.outputs) == 1 and not layer.state else None
            if changed is not None:
                graph, what = changed
                rewrites.append(rewritten(layer, name, what))
                if any(name not in ranges for name, tensor in graph.tensors.items() if tensor.dtype in BYTES):
                    ranges = value_ranges(graph)
                break
        else:
            done.add(layer.name)
    return graph, rewrites
