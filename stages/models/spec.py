"""The recipe's `model:` entry. Exactly one of file, url, zoo, op."""

from __future__ import annotations

import difflib
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Size = Annotated[int, Field(ge=1)]
# Lists in YAML, hence not strict: a strict tuple would refuse them.
Shape = Annotated[tuple[Size, ...], Field(strict=False, min_length=1)]
Pair = Annotated[tuple[Size, Size], Field(strict=False)]
Amounts = Annotated[tuple[Annotated[int, Field(ge=0)], Annotated[int, Field(ge=0)]], Field(strict=False)]
Pads = Annotated[tuple[Amounts, ...], Field(strict=False, min_length=1)]
Integers = Annotated[tuple[int, ...], Field(strict=False, min_length=1)]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class FileModel(_Model):
    """A TFLite file, relative to the project's root or absolute."""

    file: str


class UrlModel(_Model):
    """A download, cached by its sha256."""

    url: str
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")


class ZooModel(_Model):
    """A topology built by this project with seeded weights: `mobilenet_v1_1.0_224`, `ds_cnn`, ..."""

    zoo: str
    dtype: Literal["int8", "uint8", "float32"] = "int8"
    seed: int = 0


class Quantization(_Model):
    """Affine quantization of one tensor."""

    scale: float = Field(gt=0)
    zero_point: int = 0


class OpModel(_Model):
    """One operator, for bringing up a kernel.

    shape is the first input's, without the batch; `batch` goes before it, so [8, 8, 16] is a tensor of [1, 8, 8, 16]
    (NHWC). Axes, permutations, begins and pads count the batch as axis 0. kernel, stride and dilation are
    [height, width]. `bias: false` stores zeros where the format demands a bias. An option that the operator does not
    have is an error. Quantizations not given are chosen so that random inputs use the outputs' range and do not
    saturate them.
    """

    op: str
    shape: Shape
    batch: int = Field(default=1, ge=1)
    dtype: Literal["int8", "uint8", "float32"] = "int8"
    input: Quantization | None = None
    output: Quantization | None = None
    seed: int = 0
    activation: Literal["none", "relu", "relu6"] = "none"
    # Convolution, fully connected, pooling
    out_channels: int | None = Field(default=None, ge=1)
    kernel: Pair = (1, 1)
    stride: Pair = (1, 1)
    dilation: Pair = (1, 1)
    padding: Literal["same", "valid"] = "same"
    groups: int = Field(default=1, ge=1)
    depth_multiplier: int = Field(default=1, ge=1)
    bias: bool = True
    per_channel: bool = True
    # The second operand of add, sub and mul; `constant` stores it in the model instead of making it an input
    other_shape: Shape | None = None
    other: Quantization | None = None
    constant: bool = False
    # Functions
    alpha: float = 0.2
    beta: float = Field(default=1.0, gt=0)
    # Reduction and data movement
    axes: Integers | None = None
    keep_dims: bool = False
    axis: int = -1
    parts: int = Field(default=2, ge=1)
    pads: Pads | None = None
    new_shape: Integers | None = None
    permutation: Integers | None = None
    begin: Integers | None = None
    end: Integers | None = None
    size: Integers | None = None
    strides: Integers | None = None
    align_corners: bool = False
    half_pixel_centers: bool = False
    to: Literal["int8", "uint8"] | None = None

    @model_validator(mode="after")
    def _check(self) -> OpModel:
        if self.op not in OPTIONS:
            near = difflib.get_close_matches(self.op, OPTIONS, n=1, cutoff=0.4)
            guess = f"; did you mean {near[0]!r}?" if near else ""
            raise ValueError(f"unknown operator {self.op!r}{guess} Known: {', '.join(OPTIONS)}")
        allowed, required = OPTIONS[self.op]
        for name in sorted(self.model_fields_set - _COMMON):
            if name not in allowed:
                raise ValueError(f"{self.op} has no option {name!r}; it has {', '.join(sorted(allowed)) or 'none'}")
        missing = [name for name in required if getattr(self, name) is None]
        if missing:
            raise ValueError(f"{self.op} needs {' and '.join(missing)}")
        if self.dtype == "float32" and (self.input or self.output or self.other):
            raise ValueError("float32 tensors have no quantization; leave out input, other and output")
        if self.op == "dequantize" and self.dtype == "float32":
            raise ValueError("dequantize reads int8 or uint8")
        if self.op in ("conv2d", "depthwise_conv2d") and len(self.shape) != 3:
            raise ValueError(f"{self.op} needs shape [height, width, channels], got {list(self.shape)}")
        if self.shape[-1] % self.groups or (self.out_channels or self.groups) % self.groups:
            raise ValueError(f"groups {self.groups} must divide the input's and the output's channels")
        return self


_CONV = {"kernel", "stride", "dilation", "padding", "bias", "activation", "per_channel", "output"}
_BINARY = {"other_shape", "other", "constant", "activation", "output"}
_POOL = {"kernel", "stride", "padding", "activation"}
_COMMON = {"op", "shape", "batch", "dtype", "input", "seed"}

# For each operator: the options it has beside the common ones, and those it cannot do without.
OPTIONS: dict[str, tuple[set[str], tuple[str, ...]]] = {
    "conv2d": (_CONV | {"out_channels", "groups"}, ("out_channels",)),
    "depthwise_conv2d": (_CONV | {"depth_multiplier"}, ()),
    "fully_connected": ({"out_channels", "bias", "activation", "per_channel", "output"}, ("out_channels",)),
    "add": (_BINARY, ()),
    "sub": (_BINARY, ()),
    "mul": (_BINARY, ()),
    "avg_pool2d": (_POOL, ()),
    "max_pool2d": (_POOL, ()),
    "mean": ({"axes", "keep_dims", "output"}, ("axes",)),
    "softmax": ({"beta"}, ()),
    "logistic": (set(), ()),
    "tanh": (set(), ()),
    "hard_swish": ({"output"}, ()),
    "relu": ({"output"}, ()),
    "relu6": ({"output"}, ()),
    "leaky_relu": ({"alpha", "output"}, ()),
    "pad": ({"pads"}, ("pads",)),
    "concatenation": ({"axis", "parts"}, ()),
    "reshape": ({"new_shape"}, ("new_shape",)),
    "squeeze": ({"axes"}, ("axes",)),
    "transpose": ({"permutation"}, ("permutation",)),
    "slice": ({"begin", "size"}, ("begin", "size")),
    "strided_slice": ({"begin", "end", "strides"}, ("begin", "end")),
    "split": ({"axis", "parts"}, ()),
    "quantize": ({"to", "output"}, ()),
    "dequantize": (set(), ()),
    "resize_nearest_neighbor": ({"size", "align_corners", "half_pixel_centers"}, ("size",)),
}

ModelSource = FileModel | UrlModel | ZooModel | OpModel
