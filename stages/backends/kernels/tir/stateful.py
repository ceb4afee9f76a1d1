"""Workloads of layers that keep state."""

from __future__ import annotations

from collections.abc import Sequence

from stages.backends.kernels.tir.block import Buffer, Function


class StatefulFunction(Function):
    """Function with buffers for the tensors of `Layer.state`, which it reads and writes."""

    def __enter__(self) -> StatefulFunction:
        super().__enter__()
        return self

    def state(self, number: int, shape: Sequence[int], dtype: str) -> Buffer:
        return self._parameter(f"state:{number}", f"state{number}", shape, dtype)
