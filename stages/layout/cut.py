"""Minimum cut: the cheapest way to split things into two sides.

Choosing one of two layouts for each operator so that the fewest bytes are transposed is such a split: operators are
nodes, and a tensor whose writer and readers do not all stand on one side costs its bytes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable

_ENDLESS = 1 << 62


class Split:
    """Nodes to be put on side `first` or `second`; both are nodes themselves, with their sides given."""

    def __init__(self, first: Hashable, second: Hashable) -> None:
        self.first, self.second = first, second
        self._capacity: dict[Hashable, dict[Hashable, int]] = {first: {}, second: {}}
        self._bundles = 0

    def bundle(self, nodes: Iterable[Hashable], cost: int) -> None:
        """`cost` is due unless all `nodes` are on the same side.

        As edges: every node -> a -> b -> every node, where only a -> b can be cut. One node on the first side pulls a
        there, one on the second side pulls b there, and then the edge between them is cut.
        """
        a, b = ("bundle", self._bundles), ("bundle", self._bundles + 1)
        self._bundles += 2
        self._edge(a, b, cost)
        for node in nodes:
            self._edge(node, a, _ENDLESS)
            self._edge(b, node, _ENDLESS)

    def second_side(self) -> set[Hashable]:
        """The nodes on the second side of a cheapest split: as few of them as possible.

        Edmonds and Karp's maximum flow: augment along shortest paths until none is left. Then what still reaches the
        second side in the residual graph must be on it, and everything else may be on the first.
        """
        while (path := self._path()) is not None:
            amount = min(self._capacity[a][b] for a, b in path)
            for a, b in path:
                self._capacity[a][b] -= amount
                self._capacity[b][a] += amount
        reached, queue = {self.second}, deque([self.second])
        while queue:
            node = queue.popleft()
            for other in self._capacity[node]:
                if other not in reached and self._capacity[other][node] > 0:
                    reached.add(other)
                    queue.append(other)
        return reached

    def _edge(self, a: Hashable, b: Hashable, capacity: int) -> None:
        edges = self._capacity.setdefault(a, {})
        edges[b] = edges.get(b, 0) + capacity
        self._capacity.setdefault(b, {}).setdefault(a, 0)

    def _path(self) -> list[tuple[Hashable, Hashable]] | None:
        """A shortest path with capacity left, as edges; None when there is none."""
        came: dict[Hashable, Hashable] = {self.first: self.first}
        queue = deque([self.first])
        while queue:
            node = queue.popleft()
            for other, left in self._capacity[node].items():
                if left > 0 and other not in came:
                    came[other] = node
                    queue.append(other)
        if self.second not in came:
            return None
        path, node = [], self.second
        while node != self.first:
            path.append((came[node], node))
            node = came[node]
        return path
