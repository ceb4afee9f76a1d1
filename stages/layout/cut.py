"""Minimum cut: the cheapest split of nodes into two sides.

Operators are nodes, and the two sides are the layouts NHWC and NCHW. A tensor costs its bytes unless its writer and
all its readers are on one side.
"""

from collections import deque
from collections.abc import Hashable, Iterable

_ENDLESS = 1 << 62


class Split:
    """Nodes to split between the sides `first` and `second`, which are nodes themselves."""

    def __init__(self, first: Hashable, second: Hashable) -> None:
        self.first, self.second = first, second
        self._capacity: dict[Hashable, dict[Hashable, int]] = {first: {}, second: {}}
        self._bundles = 0

    def bundle(self, nodes: Iterable[Hashable], cost: int) -> None:
        """Add `cost` unless all `nodes` are on the same side.

        As edges: every node -> a -> b -> every node, where only a -> b can be cut. A node on the first side pulls a
        there, a node on the second side pulls b there, and then the edge between them is cut.
        """
        a, b = ("bundle", self._bundles), ("bundle", self._bundles + 1)
        self._bundles += 2
        self._edge(a, b, cost)
        for node in nodes:
            self._edge(node, a, _ENDLESS)
            self._edge(b, node, _ENDLESS)

    def second_side(self) -> set[Hashable]:
        """Nodes on the second side of the cheapest split with the fewest such nodes.

        Maximum flow by Edmonds and Karp: augment along shortest paths until there is none. The nodes that still reach
        the second side in the residual graph must be on it. All others may be on the first.
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
        """Edges of a shortest path with residual capacity, or None."""
        previous: dict[Hashable, Hashable] = {self.first: self.first}
        queue = deque([self.first])
        while queue:
            node = queue.popleft()
            for other, capacity in self._capacity[node].items():
                if capacity > 0 and other not in previous:
                    previous[other] = node
                    queue.append(other)
        if self.second not in previous:
            return None
        path, node = [], self.second
        while node != self.first:
            path.append((previous[node], node))
            node = previous[node]
        return path
