"""Models of one operator, from declarations of operators.

Recipes write `model: {op: conv2d, ...}`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from stages.ir.arrays import Array

if TYPE_CHECKING:
    from stages.ir.model_info import FileTensor

Quant = tuple[float, int]  # scale and zero point


class SingleOperatorBuilder(Protocol):
    """Builder of the model with its first input; a declaration's `build` appends to it.

    spec       the recipe's options, a stages.ir.models.spec.OpModel
    builder    the file, a stages.ir.models.builder.ModelBuilder
    shape      of the first input, with the batch
    quantized  whether the tensors are quantized; else float32
    quant      of the first input, None for float32
    """

    spec: Any
    builder: Any
    shape: tuple[int, ...]
    quantized: bool
    quant: Quant | None

    def second(self) -> Quant | None:
        """Return the quantization of a second operand."""

    def range(self, quant: Quant, dtype: str = "") -> tuple[float, float]:
        """Return the real values of the lowest and the highest code of a quantized tensor."""

    def output(self, low: float, high: float, dtype: str = "") -> Quant | None:
        """Return the recipe's output quantization, else one for the range, extended to contain 0."""

    def mean_output(self, axes: tuple[int, ...]) -> Quant | None:
        """Return the output quantization of a mean over the axes."""

    def weighted(
        self, shape: tuple[int, ...], axis: int, depth: int, per_channel: bool
    ) -> tuple[Array, Array | None, dict[str, Any]]:
        """Return weights, bias and ModelBuilder options of an operator that sums `depth` products.

        axis  axis of the output channels in `shape`
        """

    def bias(self, channels: int, units: Array) -> Array:
        """Return biases within half a deviation of the results.

        units  real value of one, for each channel
        """

    def constant(self, shape: tuple[int, ...]) -> Array:
        """Return a random constant of the input's type."""


@dataclass(frozen=True)
class SingleOperatorModel:
    """A model of this operator alone.

    build     appends the operator after the first input, and returns its outputs
    options   its options beside the common ones, fields of stages.ir.models.spec.OpModel
    required  its mandatory options
    """

    build: Callable[[SingleOperatorBuilder, FileTensor], FileTensor | list[FileTensor]]
    options: frozenset[str] = frozenset()
    required: tuple[str, ...] = ()
