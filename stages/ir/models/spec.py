"""The recipe's `model:` entry. Exactly one of file, url, zoo, op."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from stages.ir.models.zoo.names import check
from stages.ir.operators.table import OPERATORS, operator_of, outside
from stages.support.messages import escape
from stages.support.messages.wording import all_known, did_you_mean
from stages.support.options.strict_model import StrictModel, mistake
from stages.support.system.pathname import Pathname

# TFLite stores sizes, axes and amounts in 32 bits.
_MOST = 2**31 - 1
# Elements of one tensor that is built here; some ten times those of the largest layers in use.
LARGEST_TENSOR = 2**26
Size = Annotated[int, Field(ge=1, le=_MOST)]
Shape = Annotated[tuple[Size, ...], Field(min_length=1)]
Pair = tuple[Size, Size]
Amounts = tuple[Annotated[int, Field(ge=0, le=_MOST)], Annotated[int, Field(ge=0, le=_MOST)]]
Pads = Annotated[tuple[Amounts, ...], Field(min_length=1)]
Integers = Annotated[tuple[Annotated[int, Field(ge=-_MOST, le=_MOST)], ...], Field(min_length=1)]


class _WholeModel(StrictModel):
    """What a recipe says of a TFLite or ONNX file, which is told by its name.

    signature  the entry point of a TFLite file, by default the first
    shapes     of the inputs of an ONNX file, by name, where it leaves sizes open
    layout     nchw: inputs and outputs of four axes are as in the ONNX file; nhwc: they are images, channels last
    """

    signature: str | None = None
    shapes: dict[str, Annotated[tuple[Size, ...], Field(max_length=8)]] | None = None
    layout: Literal["nchw", "nhwc"] | None = None

    @property
    def source(self) -> str:
        """The path or address of the file."""
        raise NotImplementedError

    @model_validator(mode="after")
    def _check(self) -> Self:
        for key in ("signature",) if is_onnx(self) else ("shapes", "layout"):
            if getattr(self, key) is not None:
                named = escape.quoted(Path(self.source).name)
                kind = "a TFLite" if key == "signature" else "an ONNX"
                raise mistake(f"{key} is of {kind} file; {named} is none", key, key=True)
        return self


class FileModel(_WholeModel):
    """A TFLite or ONNX file, relative to the project's root or absolute."""

    file: Pathname

    @property
    def source(self) -> str:
        return self.file


def _without_user(url: str) -> str:
    try:
        parts = urlsplit(url)
        wrong = "@" in parts.netloc or parts.port == 0
    except ValueError:  # a password with a / looks like a port
        wrong = True
    if wrong:
        raise mistake("is no address without user and password, which reports would show; give the file by `file:`")
    return url


class UrlModel(_WholeModel):
    """A download, cached by its sha256."""

    url: Annotated[str, AfterValidator(_without_user)]
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")

    @property
    def source(self) -> str:
        return self.url.split("?")[0]


class WeightBits(StrictModel):
    """`weights: {bits: 4}`: weights drawn within so many bits; the file has them as int8."""

    bits: int = Field(ge=2, le=8)


class ZooModel(StrictModel):
    """A topology built by this project with seeded weights: `mobilenet_v1_1.0_224`, `ds_cnn`, ..."""

    zoo: Annotated[str, AfterValidator(check)]
    dtype: Literal["int8", "uint8", "float32"] = "int8"
    seed: int = 0
    weights: WeightBits | None = None

    @model_validator(mode="after")
    def _check(self) -> ZooModel:
        if self.weights is not None and self.dtype != "int8":
            message = f"{self.weights.bits}-bit weights go with dtype int8, not {self.dtype}"
            raise mistake(message, "weights", beside=("dtype",))
        return self


class PluginModel(StrictModel):
    """A topology that a plug-in builds: its module has `build(dtype, seed)`, which gives the bytes of a TFLite file.

    `modules` and `places` are those of the models there are, by name.
    """

    modules: ClassVar[Mapping[str, str]] = {}
    places: ClassVar[Mapping[str, Path]] = {}
    zoo: str
    dtype: Literal["int8", "uint8", "float32"] = "int8"
    seed: int = 0

    @property
    def module(self) -> str:
        """The name of the module that builds it."""
        return type(self).modules[self.zoo]

    @property
    def place(self) -> Path:
        """The module's file or package."""
        return type(self).places[self.zoo]


class Quantization(StrictModel):
    """Affine quantization of one tensor."""

    # Within what float32 holds, in which TFLite stores it.
    scale: float = Field(ge=2.0**-126, lt=2.0**128)
    zero_point: int = 0


def _known(op: str) -> str:
    declared = operator_of(op)
    if declared is None:
        guess = did_you_mean(op, _alone())
        raise mistake(f"unknown operator {escape.quoted(op)}{guess}" + ("" if guess else f"\n{all_known(_alone())}"))
    if declared.model is None:
        raise mistake(
            f"{escape.name(op)} is computed in networks, and cannot stand alone as a model\n{all_known(_alone())}"
        )
    return op


class OpModel(StrictModel):
    """One operator, for bringing up a kernel.

    shape is the first input's, without the batch; `batch` goes before it, so [8, 8, 16] is a tensor of [1, 8, 8, 16]
    (NHWC). Axes, permutations, begins and pads count the batch as axis 0. kernel, stride and dilation are
    [height, width]. `bias: false` stores zeros where the format demands a bias. An option that the operator does not
    have is an error. Quantizations not given are chosen so that random inputs use the outputs' range and do not
    saturate them.
    """

    op: Annotated[str, AfterValidator(_known)] = Field(json_schema_extra=lambda schema: schema.update(enum=[*_alone()]))
    shape: Shape
    batch: Size = 1
    dtype: Literal["int8", "uint8", "int16", "float32"] = "int8"
    input: Quantization | None = None
    output: Quantization | None = None
    seed: int = 0
    activation: Literal["none", "relu", "relu6"] = "none"
    # Convolution, fully connected, pooling
    out_channels: Size | None = None
    kernel: Pair = (1, 1)
    stride: Pair = (1, 1)
    dilation: Pair = (1, 1)
    padding: Literal["same", "valid"] = "same"
    groups: Size = 1
    depth_multiplier: Size = 1
    bias: bool = True
    weights: Literal["int8", "int4", "int2"] | WeightBits = "int8"  # a type in the file, or int8 of fewer bits
    per_channel: bool = True
    # SVDF: features for each unit, and how many of their values are remembered
    rank: Annotated[int, Field(ge=1, le=1000)] = 1
    memory: Annotated[int, Field(ge=1, le=100_000)] = 8
    # The second operand of add, sub and mul; `constant` stores it in the model instead of making it an input
    other_shape: Shape | None = None
    other: Quantization | None = None
    constant: bool = False
    # Functions
    alpha: float = Field(default=0.2, gt=-(2.0**128), lt=2.0**128)
    beta: float = Field(default=1.0, gt=0, lt=2.0**128)
    # Reduction and data movement
    axes: Integers | None = None
    keep_dims: bool = False
    axis: int = Field(default=-1, ge=-_MOST, le=_MOST)
    parts: int = Field(default=2, ge=1, le=1000)
    pads: Pads | None = None
    new_shape: Integers | None = None
    multiples: Integers | None = None
    indices: Integers | None = None
    permutation: Integers | None = None
    begin: Integers | None = None
    end: Integers | None = None
    size: Integers | None = None
    strides: Integers | None = None
    align_corners: bool = False
    half_pixel_centers: bool = False
    to: Literal["int8", "uint8", "int16"] | None = None

    @property
    def weight_bits(self) -> int:
        """Bits that all weights fit."""
        return int(self.weights.removeprefix("int")) if isinstance(self.weights, str) else self.weights.bits

    @model_validator(mode="after")
    def _check(self) -> OpModel:
        declared = operator_of(self.op)
        assert declared is not None and declared.model is not None  # _known saw to it
        allowed, required, narrow = declared.model.options, declared.model.required, declared.narrow.get("int8", ())
        for name in sorted(self.model_fields_set - COMMON):
            if name not in allowed:
                has = ", ".join(sorted(allowed)) or "none"
                raise mistake(f"{self.op} has no option {name!r}; it has {has}", name, key=True)
        missing = [name for name in required if getattr(self, name) is None]
        if missing:
            raise ValueError(f"{self.op} needs {' and '.join(missing)}")
        if self.dtype == "float32" and (self.input or self.output or self.other):
            given = next(name for name in ("input", "output", "other") if getattr(self, name))
            message = "float32 tensors have no quantization; leave out input, other and output"
            raise mistake(message, given, beside=("dtype",) if "dtype" in self.model_fields_set else ())
        if self.dtype not in declared.types:
            known = ", ".join(dtype for dtype in ("int8", "uint8", "int16", "float32") if dtype in declared.types)
            raise mistake(f"{self.op} has no form in {self.dtype}; it has {known}", "dtype")
        if self.op == "dequantize" and self.dtype == "float32":
            raise mistake("dequantize reads int8, uint8 or int16", "dtype")
        if isinstance(self.weights, str) and self.weights not in ("int8", *narrow):
            known = ", ".join(("int8", *narrow))
            raise mistake(f"{self.op} of LiteRT has no {self.weights} weights; it has {known}", "weights")
        if self.weights != "int8" and self.dtype != "int8":
            narrow_ones = self.weights if isinstance(self.weights, str) else f"{self.weight_bits}-bit"
            raise mistake(f"{narrow_ones} weights go with dtype int8, not {self.dtype}", "weights", beside=("dtype",))
        if self.op in ("conv2d", "depthwise_conv2d") and len(self.shape) != 3:
            raise mistake(f"{self.op} needs shape [height, width, channels], got {list(self.shape)}", "shape")
        if self.shape[-1] % self.groups or (self.out_channels or self.groups) % self.groups:
            message = f"groups {self.groups} must divide the input's and the output's channels"
            raise mistake(message, "groups", beside=("out_channels",) if self.out_channels else ("shape",))
        for elements, key in self._elements():
            if elements > LARGEST_TENSOR:
                raise mistake(f"makes a tensor of {elements:,} elements; {LARGEST_TENSOR:,} at most", key)
        for name, dtype in (("input", self.dtype), ("other", self.dtype), ("output", self.to or self.dtype)):
            given = getattr(self, name)
            low, high = {"uint8": (0, 255), "int16": (0, 0)}.get(dtype, (-128, 127))
            if given is not None and not low <= given.zero_point <= high:
                bounds = f"{low} to {high}" if high > low else str(low)
                raise mistake(f"a zero point of {dtype} is {bounds}, not {given.zero_point}", name, "zero_point")
        return self

    def _elements(self) -> Iterator[tuple[int, str]]:
        """Elements of the operands, each with the option that makes them many."""
        shape = self.batch * prod(self.shape)
        yield shape, "shape"
        yield self.batch * prod(self.other_shape or ()), "other_shape"
        channels = self.shape[-1]
        if self.op == "depthwise_conv2d":
            yield prod(self.kernel) * channels * self.depth_multiplier, "depth_multiplier"
        elif self.out_channels is not None:
            yield prod(self.kernel) * (channels // self.groups) * self.out_channels, "out_channels"
        if self.op == "concatenation":
            yield shape * self.parts, "parts"


# Options of every operator.
COMMON = {"op", "shape", "batch", "dtype", "input", "seed"}


def options() -> dict[str, tuple[frozenset[str], tuple[str, ...]]]:
    """For each operator of Firmline: the options it has beside the common ones, and those it cannot do without."""
    models = {operator.kind: operator.model for operator in OPERATORS.values()}
    return {kind: (model.options, model.required) for kind, model in models.items() if model is not None}


def option_names(op: str) -> frozenset[str] | None:
    """The keys that a model of one operator may have, None where there is no such operator."""
    declared = operator_of(op)
    return None if declared is None or declared.model is None else frozenset(declared.model.options | COMMON)


def _alone() -> list[str]:
    """The operators that a recipe can have as a model of their own, those of plug-ins among them."""
    theirs = [operator.kind for operator in outside().operators.values() if operator.model is not None]
    return [*options(), *theirs]


def is_onnx(model: object) -> bool:
    """Whether the model is an ONNX file, by its name."""
    return isinstance(model, _WholeModel) and model.source.lower().endswith(".onnx")


ModelSource = FileModel | UrlModel | ZooModel | PluginModel | OpModel
