"""Allocations as scalar variables, one for each element that is read."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from stages.lower.codegen.widths import is_within_int32
from stages.support.lazy import tirx, tvm_ffi

Element = tuple[int, int]  # identity of a buffer (its `hash`), index


@dataclass(frozen=True)
class _Store:
    """A store to `target` (None: memory): what its value reads, and whether it calls."""

    target: Element | None
    reads: Counter[Element]
    calls: bool
    is_choice: bool
    is_within: bool


class Scalars:
    """The allocations of a function: buffers by identity, and their elements that are read.

    Raises RuntimeError for an allocation with a variable index: it would be an array on the stack.
    """

    def __init__(self, body: Any) -> None:
        from tvm.ir import TensorLoad

        self.buffers: dict[int, Any] = {}
        self.used: dict[int, set[int]] = {}
        reads: Counter[Element] = Counter()
        stores: list[_Store] = []

        def allocations(node: Any) -> None:
            if isinstance(node, tirx.AllocBuffer):
                self.buffers[hash(node.buffer)] = node.buffer
                self.used[hash(node.buffer)] = set()

        def accesses(node: Any) -> None:
            if isinstance(node, tirx.BufferStore):
                is_choice = isinstance(node.value, tirx.Max | tirx.Min | tirx.Select)
                properties = (*self._of(node.value), is_choice, is_within_int32(node.value))
                stores.append(_Store(self.element(node.buffer, node.indices), *properties))
            elif isinstance(node, TensorLoad) and (element := self.element(node.source, node.indices)):
                reads[element] += 1

        tvm_ffi.structural_walk(body, allocations)
        tvm_ffi.structural_walk(body, accesses)
        for store in stores:
            reads -= store.reads
        self._dead: set[Element] = set()
        for element in [(buffer, index) for buffer in self.buffers for index in sorted(self.used[buffer])]:
            stores_to_element = [store for store in stores if store.target == element]
            others = (s for s in stores if s.target != element and s.target not in self._dead)
            if not (
                reads[element] or any(s.calls for s in stores_to_element) or any(element in s.reads for s in others)
            ):
                self._dead.add(element)
        self._extremes = {
            store.target
            for store in stores
            if store.target
            and store.is_choice
            and store.target in store.reads
            and str(self.buffers[store.target[0]].dtype) == "int32"
            and all(other.is_within for other in stores if other.target == store.target)
        }

    def element(self, buffer: Any, indices: Any) -> Element | None:
        """Return the element of an allocation that an access means; None for other memory."""
        if hash(buffer) not in self.buffers:
            return None
        if any(not isinstance(index, tirx.IntImm) for index in indices):
            raise RuntimeError(f"internal error: array {buffer.name} would be on the stack")
        element = (hash(buffer), int(indices[0]) if len(indices) else 0)
        self.used[element[0]].add(element[1])
        return element

    def is_dead(self, element: Element) -> bool:
        """Return whether only stores to the element itself read it."""
        return element in self._dead

    def is_extreme(self, element: Element) -> bool:
        """Return whether the element is a running minimum or maximum of 32-bit values."""
        return element in self._extremes

    def _of(self, value: Any) -> tuple[Counter[Element], bool]:
        from tvm.ir import Call, TensorLoad

        reads: Counter[Element] = Counter()
        calls: list[bool] = []

        def visit(node: Any) -> None:
            if isinstance(node, TensorLoad) and (element := self.element(node.source, node.indices)):
                reads[element] += 1
            elif isinstance(node, Call):
                calls.append(getattr(node.op, "name", "").startswith("tirx.call_"))

        tvm_ffi.structural_walk(value, visit)
        return reads, any(calls)
