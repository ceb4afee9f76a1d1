"""The recipe's `model:` entry of one network: one of file, url, zoo, op."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from stages.ir.models.zoo.names import check
from stages.ir.operators.table import OPERATORS, operator_of, plugin_operators
from stages.support.messages import escape
from stages.support.messages.wording import all_known, did_you_mean, several
from stages.support.options.strict_model import StrictModel, mistake
from stages.support.system.pathname import Pathname

# TFLite stores sizes, axes and amounts in 32 bits.
_MOST = 2**31 - 1
# Elements of a generated tensor: about ten times those of the largest layers in use.
LARGEST_TENSOR = 2**26
Size = Annotated[int, Field(ge=1, le=_MOST)]
Shape = Annotated[tuple[Size, ...], Field(min_length=1)]
Pair = tuple[Size, Size]
Amounts = tuple[Annotated[int, Field(ge=0, le=_MOST)], Annotated[int, Field(ge=0, le=_MOST)]]
Pads = Annotated[tuple[Amounts, ...], Field(min_length=1)]
Number = Annotated[float, Field(allow_inf_nan=False)] | int | bool
MODEL_FILES = (".tflite", ".onnx")
ONNX_OPTIONS = ("shapes", "constants", "states", "layout")
Integers = Annotated[tuple[Annotated[int, Field(ge=-_MOST, le=_MOST)], ...], Field(min_length=1)]


class Incremental(StrictModel):
    """Options of an incremental network, such as `incremental: {frames: 2}`.

    Each run reads only the new frames of a window of time (stages.import_model.incremental).

    frames  new frames per run; by default the number that the strides in time need
    axis    axis of time in the input's shape; by default the first after the batch
    """

    frames: Size | None = None
    axis: Annotated[int, Field(ge=1, le=7)] | None = None


class _Windowed(StrictModel):
    """Option of models that may take a window of time."""

    incremental: bool | Incremental | None = None

    @property
    def window(self) -> Incremental | None:
        """The options of an incremental network; None if each run takes the whole window."""
        return Incremental() if self.incremental is True else self.incremental or None


class _WholeModel(_Windowed):
    """Options of a TFLite or ONNX file, whose name tells the format.

    signature  entry point of a TFLite file, by default the first
    shapes     shapes of an ONNX file's inputs, by name, where the file leaves sizes open
    constants  values of an ONNX file's inputs that never change, by name; a list has them in the order of the shape
    states     outputs of an ONNX file whose values the next run reads, and the inputs that read them
    layout     nchw: four-axis inputs and outputs are as in the ONNX file; nhwc: they are images, channels last
    """

    signature: str | None = None
    shapes: dict[str, Annotated[tuple[Size, ...], Field(max_length=8)]] | None = None
    constants: dict[str, Number | tuple[Number, ...]] | None = None
    states: dict[str, str] | None = None
    layout: Literal["nchw", "nhwc"] | None = None

    @property
    def source(self) -> str:
        """Path or URL of the file."""
        raise NotImplementedError

    @model_validator(mode="after")
    def _check(self) -> Self:
        for key in ("signature", "incremental") if is_onnx(self) else ONNX_OPTIONS:
            if getattr(self, key) not in (None, False):
                named = escape.quoted(Path(self.source).name)
                kind = "a TFLite" if is_onnx(self) else "an ONNX"
                raise mistake(f"{key} is an option of {kind} file, and {named} is not one", key, key=True)
        return self


class FileModel(_WholeModel):
    """A TFLite or ONNX file, absolute or relative to the project."""

    file: Pathname

    @property
    def source(self) -> str:
        """Path of the file."""
        return self.file


def _without_user(url: str) -> str:
    try:
        parts = urlsplit(url)
        wrong = "@" in parts.netloc or parts.port == 0
    except ValueError:  # a password with a / looks like a port
        wrong = True
    if wrong:
        raise mistake("should be a URL without user and password, which reports would show; use `file:` instead")
    return url


class UrlModel(_WholeModel):
    """A download, cached by its sha256."""

    url: Annotated[str, AfterValidator(_without_user)]
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")

    @property
    def source(self) -> str:
        """URL without its query."""
        return self.url.split("?")[0]


class WeightBits(StrictModel):
    """`weights: {bits: 4}`: random weights of these bits; the file has them as int8."""

    bits: int = Field(ge=2, le=8)


class ZooModel(_Windowed):
    """A topology of the zoo with seeded weights: `mobilenet_v1_1.0_224`, `ds_cnn`, ..."""

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


class PluginModel(_Windowed):
    """A topology of a plug-in; `build(dtype, seed)` of its module returns a TFLite file."""

    modules: ClassVar[Mapping[str, str]] = {}
    places: ClassVar[Mapping[str, Path]] = {}
    zoo: str
    dtype: Literal["int8", "uint8", "float32"] = "int8"
    seed: int = 0

    @property
    def module(self) -> str:
        """Name of the module that builds it."""
        return type(self).modules[self.zoo]

    @property
    def place(self) -> Path:
        """The module's file or package."""
        return type(self).places[self.zoo]


class Quantization(StrictModel):
    """Affine quantization of one tensor."""

    # TFLite stores scales as float32.
    scale: float = Field(ge=2.0**-126, lt=2.0**128)
    zero_point: int = 0


def _known(op: str) -> str:
    declared = operator_of(op)
    if declared is None:
        guess = did_you_mean(op, _alone())
        raise mistake(f"unknown operator {escape.quoted(op)}{guess}" + ("" if guess else f"\n{all_known(_alone())}"))
    if declared.model is None:
        raise mistake(f"{escape.name(op)} cannot be a model by itself\n{all_known(_alone())}")
    return op


class OpModel(StrictModel):
    """One operator, for work on a kernel.

    shape is the first input's without the batch. `batch` is prepended: [8, 8, 16] is a tensor of [1, 8, 8, 16] (NHWC).
    Axes, permutations, begins and pads count the batch as axis 0. kernel, stride and dilation are [height, width].
    `bias: false` stores zeros if the format demands a bias. Options that the operator does not have are errors. Missing
    quantizations are chosen such that random inputs use the outputs' range without saturation.
    """

    op: Annotated[str, AfterValidator(_known)] = Field(json_schema_extra=lambda schema: schema.update(enum=[*_alone()]))
    shape: Shape
    batch: Size = 1
    dtype: Literal["int8", "uint8", "int16", "float32", "int32", "uint32", "uint64"] = "int8"
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
    # SVDF: features for each unit, and how many of their values are stored
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
    # Signal operators; lengths and steps in samples
    shift: Annotated[int, Field(ge=0, le=31)] = 12
    fft_length: Size | None = None
    frame_size: Size | None = None
    frame_step: Size | None = None
    prefill: bool = True
    delay_length: Annotated[int, Field(ge=0, le=1 << 20)] = 160
    left_context: Annotated[int, Field(ge=0, le=1 << 20)] = 1
    right_context: Annotated[int, Field(ge=0, le=1 << 20)] = 0
    stacker_step: Size = 1

    @model_validator(mode="before")
    @classmethod
    def _own_type(cls, data: Any) -> Any:
        """Default to the operator's first type if it has no int8 form."""
        if isinstance(data, dict) and "dtype" not in data and isinstance(data.get("op"), str):
            declared = operator_of(data["op"])
            if declared is not None and "int8" not in declared.tensors.types:
                return {**data, "dtype": declared.tensors.types[0]}
        return data

    @property
    def weight_bits(self) -> int:
        """Bits that hold every weight."""
        return int(self.weights.removeprefix("int")) if isinstance(self.weights, str) else self.weights.bits

    @model_validator(mode="after")
    def _check(self) -> OpModel:
        declared = operator_of(self.op)
        assert declared is not None and declared.model is not None  # checked by _known
        allowed, required, narrow = (
            declared.model.options,
            declared.model.required,
            declared.weights.narrow.get("int8", ()),
        )
        for name in sorted(self.model_fields_set - COMMON):
            if name not in allowed:
                has = ", ".join(sorted(allowed)) or "none"
                raise mistake(f"{self.op} has no option {name!r}; it has {has}", name, key=True)
        missing = [name for name in required if getattr(self, name) is None]
        if missing:
            raise ValueError(f"{self.op} needs {' and '.join(missing)}")
        if self.dtype == "float32" and (self.input or self.output or self.other):
            key = next(name for name in ("input", "output", "other") if getattr(self, name))
            message = "float32 tensors have no quantization; leave out input, other and output"
            raise mistake(message, key, beside=("dtype",) if "dtype" in self.model_fields_set else ())
        if self.dtype not in declared.tensors.types:
            types = ("int8", "uint8", "int16", "float32", "int32", "uint32", "uint64")
            available = ", ".join(dtype for dtype in types if dtype in declared.tensors.types)
            raise mistake(f"{self.op} has no form in {self.dtype}; it has {available}", "dtype")
        if self.op == "dequantize" and self.dtype == "float32":
            raise mistake("dequantize reads int8, uint8 or int16", "dtype")
        if isinstance(self.weights, str) and self.weights not in ("int8", *narrow):
            available = ", ".join(("int8", *narrow))
            raise mistake(f"{self.op} of LiteRT has no {self.weights} weights; it has {available}", "weights")
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
            quantization = getattr(self, name)
            low, high = {"uint8": (0, 255), "int16": (0, 0)}.get(dtype, (-128, 127))
            if quantization is not None and not low <= quantization.zero_point <= high:
                bounds = f"{low} to {high}" if high > low else str(low)
                raise mistake(f"a zero point of {dtype} is {bounds}, not {quantization.zero_point}", name, "zero_point")
        return self

    def _elements(self) -> Iterator[tuple[int, str]]:
        """Yield the elements of each operand and the option that determines them."""
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
    """Return for each built-in operator its specific options, and the required ones."""
    models = {operator.kind: operator.model for operator in OPERATORS.values()}
    return {kind: (model.options, model.required) for kind, model in models.items() if model is not None}


def option_names(op: str) -> frozenset[str] | None:
    """Return the keys of a one-operator model; None for an unknown operator."""
    declared = operator_of(op)
    return None if declared is None or declared.model is None else frozenset(declared.model.options | COMMON)


def _alone() -> list[str]:
    """Return the operators that can be a model, including plug-ins'."""
    plug_ins = [operator.kind for operator in plugin_operators().operators.values() if operator.model is not None]
    return [*options(), *plug_ins]


def is_onnx(model: object) -> bool:
    """Whether the model is an ONNX file, by its name."""
    return isinstance(model, _WholeModel) and model.source.lower().endswith(".onnx")


def models_in(folder: Path) -> str:
    """Return a hint with some models of a folder; '' if it is no readable folder."""
    try:
        names = sorted(path.name for path in folder.iterdir() if path.suffix.lower() in MODEL_FILES)
    except OSError:
        return ""
    return f"models in it: {several([*map(escape.name, names)], 3)}" if names else "it has no .tflite or .onnx file"


NetworkSource = FileModel | UrlModel | ZooModel | PluginModel | OpModel
