"""Tensors of the integer graph."""

from collections.abc import Mapping
from math import prod
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from stages.ir.tensor_layout import LOGICAL, Layout

DType = Literal["int8", "uint8", "int16", "int32", "uint32", "int64", "uint64", "float32", "bool"]
ITEM_BYTES: dict[str, int] = {
    **dict.fromkeys(("int8", "uint8", "bool"), 1),
    "int16": 2,
    **dict.fromkeys(("int32", "uint32", "float32"), 4),
    **dict.fromkeys(("int64", "uint64"), 8),
}


class Quant(BaseModel):
    """Affine quantization: real = scale * (q - zero_point).

    One value, or one for each index along `axis`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)
    scale: tuple[float, ...]
    zero_point: tuple[int, ...]
    axis: int | None = None


class Tensor(BaseModel):
    """A tensor of the graph.

    shape         logical: the order of the imported model (NHWC for images)
    layout        '' or 'NHWC': memory order is `shape`; 'NCHW': planar, physical shape (N, C, H, W); others for 4-D
                  tensors
    tflite_index  index of the original, the equal tensor in the imported file; None if there is none
    channels      channels of the original (last axis) that this tensor has; None: all
    added         added to the original's integers: 128 for an int8 tensor stored as uint8
    constant      the data is in the graph's constants under `name` (physical order)
    state         its values persist between inferences, outside of the arena
    alias_of      tensor with which it shares memory, such as the input of a reshape or slice, or a joined tensor
    offset        bytes from that tensor's start to this one's
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)
    name: str
    shape: tuple[int, ...]
    dtype: DType
    layout: Layout = LOGICAL
    quant: Quant | None = None
    tflite_index: int | None = None
    channels: tuple[int, ...] | None = None
    added: int = 0
    constant: bool = False
    state: bool = False
    alias_of: str | None = None
    offset: int = Field(default=0, ge=0)

    @property
    def elements(self) -> int:
        """Elements without block padding."""
        return prod(self.shape)

    @property
    def bytes(self) -> int:
        """Bytes in memory, with block padding."""
        return self.layout.bytes(self.shape, 8 * ITEM_BYTES[self.dtype])

    @property
    def permutation(self) -> tuple[int, ...]:
        """Axes: physical = logical.transpose(permutation). Raises ValueError for blocked layouts."""
        if self.layout.is_blocked:
            raise ValueError(f"tensor {self.name} lies in blocks: {self.layout}")
        return tuple(digit.axis for digit in self.layout.digits(self.shape))

    @property
    def physical_shape(self) -> tuple[int, ...]:
        """Extents of the layout's parts, with block padding."""
        return self.layout.physical_shape(self.shape)

    def lies_as(self, layout: str) -> bool:
        """Whether its bytes are the same in `layout`."""
        return self.layout.lies_as(Layout(layout), self.shape)

    @property
    def scale(self) -> float:
        """The per-tensor scale. Raises ValueError for a tensor without one."""
        if self.quant is None or len(self.quant.scale) != 1:
            raise ValueError(f"tensor {self.name} has no per-tensor quantization")
        return self.quant.scale[0]

    @property
    def zero_point(self) -> int:
        """The per-tensor zero point, 0 for a tensor without quantization."""
        return self.quant.zero_point[0] if self.quant is not None else 0

    @property
    def initial(self) -> int:
        """Value of each element of a state tensor after a reset, as LiteRT resets variables."""
        return self.zero_point if self.dtype == "int8" else 0


def storage_of(tensors: Mapping[str, Tensor], name: str) -> tuple[str, int]:
    """Return the tensor at the end of the aliases, and the offset in it in bytes.

    Raises ValueError for a cycle.
    """
    seen, offset = {name}, 0
    while (target := tensors[name].alias_of) is not None:
        if target in seen:
            raise ValueError(f"tensor {name} is an alias of itself")
        seen.add(target)
        offset += tensors[name].offset
        name = target
    return name, offset
