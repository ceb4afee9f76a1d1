"""Workloads of layers that keep state."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import prod

from stages.backends.kernels.tir.block import Buffer, Function
from stages.ir.graph import LayerView
from stages.ir.operators.variables import Slide


class StatefulFunction(Function):
    """Function with buffers for the tensors of `Layer.state`, which it reads and writes."""

    def __enter__(self) -> StatefulFunction:
        super().__enter__()
        return self

    def state(self, number: int, shape: Sequence[int], dtype: str) -> Buffer:
        """Declare state tensor `number`."""
        return self._parameter(f"state:{number}", f"state{number}", shape, dtype)

    def copied(self, view: LayerView, used: Collection[int]) -> tuple[dict[int, Buffer], Buffer]:
        """Return the flat buffers that copies read (for the inputs `used`) and write.

        A slide moves rows within its state. TVM does not match a block whose operands are one buffer, so the state
        is two parameters, which the printed function has as one.
        """
        if isinstance(view.op, Slide):
            (state,) = view.states
            before = self._parameter("state:0", "before0", (state.elements,), state.dtype)
            return {0: before}, self.state(0, (state.elements,), state.dtype)
        inputs = {i: self.input(i, (prod(x.physical_shape),), x.dtype) for i, x in enumerate(view.inputs) if i in used}
        y = view.outputs[0]
        return inputs, self.output(0, (prod(y.physical_shape),), y.dtype)
