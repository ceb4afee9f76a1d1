"""Streamed groups in tensorize's plan."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from stages.ir.tensor_layout import Layout
from stages.lower.streaming.schedule import RowLayer, RowTensor, Schedule, simulate


class StreamedGroup(BaseModel):
    """Layers [first, end) that run by rows.

    layers    in execution order
    tensors   those that the group reads or writes by rows
    capacity  rows that the rolling buffer of each inner tensor holds
    layouts   of tensors whose rows lie as planes
    pushed    name of the input that the caller passes row by row, '' if there is none
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    first: int
    end: int
    layers: tuple[RowLayer, ...]
    tensors: dict[str, RowTensor]
    capacity: dict[str, int]
    layouts: dict[str, Layout] = {}
    pushed: str = ""

    def schedule(self) -> Schedule:
        """Return the calls in order."""
        return simulate(self.layers, self.tensors, self.pushed)

    @property
    def sums(self) -> RowLayer | None:
        """The last layer if it adds up rows."""
        return self.layers[-1] if self.layers[-1].window.accumulates else None

    def bytes_of(self, name: str) -> int:
        """Return the bytes of the buffer of a tensor that has one, with rows of padding."""
        tensor = self.tensors[name]
        return (tensor.total if tensor.whole else self.capacity[name]) * tensor.row_bytes
