"""Classes that declare an operator of TFLite's schema."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from stages.ir.layers import LayerOp
from stages.ir.operators.operation import Operation, Shape, Table
from stages.ir.operators.single_operator import SingleOperatorModel

EIGHT_BITS = ("int8", "uint8")
INTEGERS = (*EIGHT_BITS, "int16")  # types of activations
NARROW = ("int4", "int2")
COMPUTED = (*EIGHT_BITS, "float32")
WIDE = (*COMPUTED, "int16")
NUMBERS = (*COMPUTED, "int32", "int64")
MOVED = (*NUMBERS, "int16", "bool")
UNSIGNED = ("uint32", "uint64")
FLOAT = ("float32",)
MANY = 1 << 31
# Prefix of a custom operator's code, which is a text in the file.
CUSTOM = "CUSTOM:"

Scales = Literal["one", "optional", "any"]
Layout = Literal["transposing", "following", "bound"]

# Kinds that are not the schema's name in lower case.
_KINDS = {
    "AVERAGE_POOL_2D": "avg_pool2d",
    "MAX_POOL_2D": "max_pool2d",
    "CONV_2D": "conv2d",
    "DEPTHWISE_CONV_2D": "depthwise_conv2d",
    "UNIDIRECTIONAL_SEQUENCE_LSTM": "lstm",
}


@dataclass(frozen=True)
class Tensors:
    """Number, types and roles of an operator's tensors.

    inputs    minimum and maximum number; absent ones at the end do not count
    outputs   minimum and maximum number
    types     of its data: all tensors except `indices` and the weights
    results   types of the outputs, if they differ from those of the data
    mixed     whether the output's type may differ from the input's
    indices   inputs that are shapes, axes and the like
    apart     data inputs of another type, which `shapes` checks: indices, conditions
    looks_up  for an operator that reads at computed indices: the position of that input, and the number of valid
              indices
    optional  inputs that may be absent, among the minimum number
    state     inputs that it reads and writes: variable tensors, kept between inferences
    layout    `transposing`: can write another layout than it reads at no cost. `following`: computes the same in both
              layouts after renumbering its axes, and writes the layout that it reads. `bound`: NHWC only, since it
              depends on the order of elements
    """

    inputs: tuple[int, int] = (1, 1)
    outputs: tuple[int, int] = (1, 1)
    types: tuple[str, ...] = COMPUTED
    results: tuple[str, ...] = ()
    mixed: bool = False
    indices: tuple[int, ...] = ()
    apart: tuple[int, ...] = ()
    looks_up: Callable[[Operation], tuple[int, int]] | None = None
    optional: tuple[int, ...] = ()
    state: tuple[int, ...] = ()
    layout: Layout = "bound"


@dataclass(frozen=True)
class Quantization:
    """Scales of an operator's tensors.

    quantized  whether it is imported with scales, as quantize(op(dequantize(x))) or by moving integers; else in float32
    scales     of tensors of bytes: `one` each; `optional`: one each, or none at all; `any`: it moves bytes
    alike      whether the output's scale must be the input's
    check      checks types and scales beyond the other fields; raises Refused
    """

    quantized: bool = True
    scales: Scales = "one"
    alike: bool = False
    check: Callable[[Operation], None] | None = None


@dataclass(frozen=True)
class Weights:
    """Weights and bias.

    own       positions of inputs with type rules of their own: weights and bias
    operands  positions of data, weights and bias
    channels  the axis of per-channel scales of the weights
    narrow    types of less than a byte that LiteRT takes for constant weights, by the type of the data
    macs      multiply-accumulates for one output element, from the shape of the weights
    """

    own: tuple[int, ...] = ()
    operands: tuple[int, int, int] = (0, 1, 2)
    channels: int | None = None
    narrow: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    macs: Callable[[Shape], int] | None = None


@dataclass(frozen=True)
class Legalization:
    """Conversion of an operator of a file to layers of the integer graph.

    layers    its classes of layers; empty if there is no integer form
    legalize  of a plug-in's operator: appends its layers to the integer graph, from a stages.quantize.operator.Operator
              and with a stages.quantize.writer.GraphWriter
    opaque    whether import bypasses TVM's front end: its layers, of any type, define its result
    body      its computation on real numbers, in Relax, if TVM's front end takes float32 only
    onnx      of a custom operator: its name in ONNX files, `domain.OpType`. Its attributes are its options, as a
              flexbuffer of a dictionary
    images    whether its tensors of four axes in ONNX files are images, to be imported as NHWC; else all axes keep the
              order of the ONNX file
    """

    layers: tuple[type[LayerOp], ...] = ()
    legalize: Callable[[Any, Any], None] | None = None
    opaque: bool = False
    body: Callable[..., Any] | None = None
    onnx: str = ""
    images: bool = True


@dataclass(frozen=True)
class LiteRT:
    """LiteRT's support for an operator, and the reference if LiteRT cannot be the reference.

    fuses      whether it applies the activation in the operator's options
    version    the version at which TFLite's converter registers its int8 form; others are version 1
    optimized  whether it has only an optimized kernel, no reference kernel
    misjudged  types by input position that its reference kernel refuses or computes wrongly; `reference` replaces it
    tflm       whether TFLM's own interpreter is the reference (stages.ir.reference.tflm), since LiteRT lacks it
    reference  of an operator that it lacks, mostly a plug-in's: returns its outputs and then the new values of its
               state, from an Operation and arrays in the order of its inputs (constants too, None for absent ones).
               `verify` compares with it
    """

    fuses: bool = True
    version: int = 2
    optimized: bool = False
    misjudged: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    tflm: bool = False
    reference: Callable[..., Sequence[Any]] | None = None


@dataclass(frozen=True)
class Operator:
    """Declaration of one operator.

    name          in the schema; of a custom operator CUSTOM: and its code
    shapes        returns the output shapes from inputs, options and constants; raises Refused
    tensors       number, types and roles of its tensors
    table         its options, None if it has none that matter
    quantization  scales of its tensors
    weights       weights and bias
    legalization  how it becomes layers of the integer graph
    litert        LiteRT's support for it
    model         builds it alone for a recipe; None if that is not possible
    limits        further restrictions, for docs/reference/operators.md
    """

    name: str
    shapes: Callable[[Operation], list[Shape]]
    tensors: Tensors = Tensors()
    table: Table | None = None
    quantization: Quantization = Quantization()
    weights: Weights = Weights()
    legalization: Legalization = Legalization()
    litert: LiteRT = LiteRT()
    model: SingleOperatorModel | None = None
    limits: str = ""

    @property
    def kind(self) -> str:
        """Name in rules and reports."""
        if self.litert.tflm:
            return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", self.name.removeprefix(CUSTOM)).lower()
        if self.name.startswith(CUSTOM):
            return re.sub(r"\W+", "_", self.name.removeprefix(CUSTOM)).lower()
        return _KINDS.get(self.name, self.name.lower())

    @property
    def moves(self) -> bool:
        """Whether it only moves data, the same for every type."""
        return self.quantization.scales != "one" and not self.tensors.results
