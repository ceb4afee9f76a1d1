"""Streamed groups in tensorize's plan."""

from pydantic import BaseModel, ConfigDict

from stages.ir.tensor_layout import Layout
from stages.lower.streaming.schedule import RowLayer, RowTensor, Schedule, simulate


class Streaming(BaseModel):
    """Effect of streaming on a network.

    bytes        of all tensors in use at the peak, without scratch
    whole_bytes  the same if all layers computed whole images
    extra        estimated instructions beyond those of whole images, in the plan's unit
    cost         instructions of whole images
    reason       why no layer runs by rows, '' if some do
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    bytes: int = 0
    whole_bytes: int = 0
    extra: float = 0.0
    cost: float = 0.0
    reason: str = ""

    @property
    def share(self) -> float:
        """The extra instructions, divided by those of whole images."""
        return self.extra / self.cost if self.cost else 0.0


class StreamedGroup(BaseModel):
    """Layers [first, end) that run by rows.

    layers       in execution order
    tensors      those that the group reads or writes by rows
    capacity     rows that the rolling buffer of each inner tensor holds
    layouts      of tensors whose rows lie as planes
    distance     bytes from the first row of its output to that of its input, from which on they may overlap; None: they
                 may not
    pushed       name of the input that the caller passes row by row, '' if there is none
    bytes        of tensors in use while it runs, without scratch
    whole_bytes  the same if its layers computed whole images
    extra        estimated instructions beyond those of whole images
    ends         why it ends before the next layer
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    first: int
    end: int
    layers: tuple[RowLayer, ...]
    tensors: dict[str, RowTensor]
    capacity: dict[str, int]
    layouts: dict[str, Layout] = {}
    distance: int | None = None
    pushed: str = ""
    bytes: int = 0
    whole_bytes: int = 0
    extra: float = 0.0
    ends: str = ""

    def schedule(self) -> Schedule:
        """Return the calls in order."""
        return simulate(self.layers, self.tensors, self.pushed)

    @property
    def source(self) -> str:
        """The group's input."""
        written = {layer.output for layer in self.layers}
        return next(name for name in self.tensors if name not in written)

    @property
    def output(self) -> str:
        """The group's output."""
        return self.layers[-1].output

    @property
    def emitted(self) -> str:
        """The group's output if the application receives its rows, '' if it is whole."""
        return "" if self.tensors[self.output].whole else self.output

    @property
    def sums(self) -> RowLayer | None:
        """The last layer if it adds up rows, else None."""
        return self.layers[-1] if self.layers[-1].window.accumulates else None

    def bytes_of(self, name: str) -> int:
        """Return the bytes of the buffer of a tensor that has one, with rows of padding."""
        tensor = self.tensors[name]
        return (tensor.total if tensor.whole else self.capacity[name]) * tensor.row_bytes
