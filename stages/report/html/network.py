"""Picture of the graph: layers in a column, arcs for tensors that skip layers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stages.ir.graph import Graph

ROW, NODE, WIDTH, LEFT, LANE = 26, 20, 160, 8, 12


@dataclass(frozen=True)
class Node:
    """A layer. `y` is in pixels; `share` of the instructions (0 to 1) sets the colour."""

    index: int
    y: int
    label: str
    title: str
    share: float


@dataclass(frozen=True)
class Drawing:
    """Nodes, edges as SVG paths, and the size in pixels."""

    nodes: tuple[Node, ...]
    edges: tuple[str, ...]
    width: int
    height: int


def edges(graph: Graph) -> list[tuple[int, int]]:
    """Return the pairs of layer positions that a tensor connects, each pair once."""
    maker = {name: position for position, layer in enumerate(graph.layers) for name in layer.outputs}
    pairs = {
        (maker[name], position): None
        for position, layer in enumerate(graph.layers)
        for name in layer.inputs
        if name in maker
    }
    return list(pairs)


def drawing(report: Mapping[str, Any], between: Sequence[tuple[int, int]]) -> Drawing:
    """Return the nodes and paths for the report's layers and the edges `between` them."""
    layers = report["layers"]
    most = max((layer["instructions"] or 0 for layer in layers), default=0)
    nodes = tuple(
        Node(
            layer["index"],
            4 + ROW * position,
            f"{layer['index']} {layer['op']}"[:26],
            f"{layer['name']}: {layer['kernel']}",
            (layer["instructions"] or 0) / most if most else 0.0,
        )
        for position, layer in enumerate(layers)
    )
    middle = LEFT + WIDTH // 2
    straight = [f"M{middle} {4 + ROW * a + NODE}V{4 + ROW * b}" for a, b in between if b == a + 1]
    skips = sorted((pair for pair in between if pair[1] != pair[0] + 1), key=lambda pair: pair[1] - pair[0])
    lanes: list[list[tuple[int, int]]] = []
    arcs = []
    for a, b in skips:
        free = (n for n, pairs in enumerate(lanes) if all(b <= c or d <= a for c, d in pairs))
        lane = next(free, len(lanes))
        if lane == len(lanes):
            lanes.append([])
        lanes[lane].append((a, b))
        right, out = LEFT + WIDTH, LEFT + WIDTH + LANE * (lane + 1)
        start, end = 4 + ROW * a + NODE // 2, 4 + ROW * b + NODE // 2
        bend = f"C{out + 4} {start} {out} {start + 6} {out} {start + 12}"
        arcs.append(f"M{right} {start}{bend}V{end - 12}C{out} {end - 6} {out + 4} {end} {right} {end}")
    width = LEFT + WIDTH + LANE * (len(lanes) + 2)
    return Drawing(nodes, (*straight, *arcs), width, 8 + ROW * len(layers))
