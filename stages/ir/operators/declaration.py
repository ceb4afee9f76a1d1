"""What is declared of an operator of TFLite's schema."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from stages.ir.models.operators import OneOperator
    from stages.ir.models.tflite_writer import Tensor
    from stages.ir.operators.layer import LayerOp
    from stages.ir.operators.operation import Operation, Shape

EIGHT_BITS = ("int8", "uint8")
INTEGERS = (*EIGHT_BITS, "int16")  # of activations
NARROW = ("int4", "int2")
COMPUTED = (*EIGHT_BITS, "float32")
WIDE = (*COMPUTED, "int16")
NUMBERS = (*COMPUTED, "int32", "int64")
MOVED = (*NUMBERS, "int16", "bool")
FLOAT = ("float32",)
MANY = 1 << 31
# Before the code of a custom operator, which the file gives as a text.
CUSTOM = "CUSTOM:"

Scales = Literal["one", "optional", "any"]
Layout = Literal["transposing", "following", "bound"]

# What the schema calls an operator is its kind in lower case, but for these.
_KINDS = {
    "AVERAGE_POOL_2D": "avg_pool2d",
    "MAX_POOL_2D": "max_pool2d",
    "CONV_2D": "conv2d",
    "DEPTHWISE_CONV_2D": "depthwise_conv2d",
    "UNIDIRECTIONAL_SEQUENCE_LSTM": "lstm",
}


@dataclass(frozen=True)
class Table:
    """A table of options in the schema: its name and its fields, `name:type` in the schema's order.

    Types are those of stages.ir.models.operator_options. With `required`, LiteRT's defaults (zeros) for a missing table
    make no sense.
    """

    name: str
    fields: str
    required: bool = True

    @property
    def kinds(self) -> tuple[tuple[str, str], ...]:
        """(name, type) of each field, in order; the name of an unused one is ''."""
        pairs = (entry.partition(":") for entry in self.fields.split())
        return tuple((name, kind) for name, _, kind in pairs)

    @property
    def defaults(self) -> dict[str, Any]:
        """What LiteRT takes where the file has no such table: zeros, for strides too."""
        zeros = {"bool": False, "float": 0.0, "ints": ()}
        return {name: zeros.get(kind, 0) for name, kind in self.kinds if name}


@dataclass(frozen=True)
class OneOperatorModel:
    """The operator as a model of its own, `model: {op: conv2d, ...}` in a recipe.

    options   those it has beside the common ones, fields of stages.ir.models.spec.OpModel
    required  those it cannot do without
    build     appends it to the model behind the first input, and gives its outputs
    """

    build: Callable[[OneOperator, Tensor], Tensor | list[Tensor]]
    options: frozenset[str] = frozenset()
    required: tuple[str, ...] = ()


@dataclass(frozen=True)
class Operator:
    """One operator.

    name      in the schema; of a custom operator CUSTOM: and its code
    shapes    the shapes of the outputs, from inputs, options and constants; raises Refused
    inputs    the least and the most it takes; absent ones at the end do not count
    outputs   the least and the most it gives
    table     its options, None when it has none that matter
    fuses     whether LiteRT applies the activation that its options name
    types     of its data, that is of all tensors that are neither `indices` nor `own`
    indices   inputs that are shapes, axes and the like
    own       inputs whose type goes by rules of their own: weights and bias
    state     inputs that it reads and writes: variable tensors, kept from one inference to the next
    optional  of the least number of inputs those that may be absent
    operands  where weighted operators have their data, weights and bias
    apart     inputs that are data of another type, which the shape rule checks: indices, conditions
    looks_up  of an operator that reads at places which an input says: that input's position, and how many places
              there are; 0 to less than these are right
    results   types of the outputs, where they are not those of the data
    mixed     whether the output may have another type than the input
    quantized whether it is imported with scales, as quantize(op(dequantize(x))) or by moving integers; else in float32
    scales    of tensors of bytes: `one` each; `optional`: one each, or none anywhere; `any`: it moves bytes, whatever
              they mean
    alike     whether the output's scale must be the input's
    opaque    whether TVM's front end is not asked: its layers, of any type, say what it computes
    body      what it computes with real numbers, in Relax, where TVM's front end takes float32 only
    channels  the axis of the weights along which they may have a scale for each channel
    macs      multiply-accumulates for one element of the output, from the shape of the weights
    layout    `transposing`: walks the output anyway and may write it in another layout than it reads. `following`:
              computes the same in both layouts once its axes are renumbered, and writes what it reads. `bound`: the
              order of elements is its meaning, NHWC
    narrow    types of less than a byte that LiteRT takes for constant weights, by the type of the data
    layers    what the integer graph makes of it; empty when there is no integer form
    model     how a recipe builds it alone; None where it cannot
    limits    what must hold beside all that, for docs/reference/operators.md
    check     what must hold of types and scales beyond the other fields; raises Refused
    legalize  of a plug-in's operator: appends its layers to the integer graph, from a stages.quantize.operator.Operator
              and with a stages.quantize.writer.GraphWriter
    optimized whether LiteRT has it among its usual kernels alone, not among the reference ones
    reference of an operator that LiteRT does not know, a plug-in's mostly: its outputs, from an Operation and arrays in
              the order of its inputs (constants too, None for absent ones), and behind them what it writes to its
              state. What `verify` compares with
    misjudged types by input position that LiteRT's reference kernel refuses or computes wrongly; `reference` judges
              them
    version   the version at which TFLite's converter registers its int8 form; others are version 1
    onnx      of a custom operator: what it is in ONNX files too, `domain.OpType`. Its attributes there are its options,
              a flexbuffer of a dictionary
    images    whether its tensors of four axes are images in ONNX files, which it has as NHWC, as in TFLite's; else
              all axes are in the order of the ONNX file
    """

    name: str
    shapes: Callable[[Operation], list[Shape]]
    inputs: tuple[int, int] = (1, 1)
    outputs: tuple[int, int] = (1, 1)
    table: Table | None = None
    fuses: bool = True
    types: tuple[str, ...] = COMPUTED
    indices: tuple[int, ...] = ()
    own: tuple[int, ...] = ()
    state: tuple[int, ...] = ()
    optional: tuple[int, ...] = ()
    operands: tuple[int, int, int] = (0, 1, 2)
    apart: tuple[int, ...] = ()
    looks_up: Callable[[Operation], tuple[int, int]] | None = None
    results: tuple[str, ...] = ()
    mixed: bool = False
    quantized: bool = True
    scales: Scales = "one"
    alike: bool = False
    opaque: bool = False
    body: Callable[..., Any] | None = None
    channels: int | None = None
    narrow: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    macs: Callable[[Shape], int] | None = None
    layout: Layout = "bound"
    layers: tuple[type[LayerOp], ...] = ()
    model: OneOperatorModel | None = None
    limits: str = ""
    check: Callable[[Operation], None] | None = None
    legalize: Callable[[Any, Any], None] | None = None
    optimized: bool = False
    reference: Callable[..., Sequence[Any]] | None = None
    misjudged: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    version: int = 2
    onnx: str = ""
    images: bool = True

    @property
    def kind(self) -> str:
        """The operator's name in rules and reports: that of the integer graph, where it has one."""
        if self.name.startswith(CUSTOM):
            return re.sub(r"\W+", "_", self.name.removeprefix(CUSTOM)).lower()
        return _KINDS.get(self.name, self.name.lower())

    @property
    def moves(self) -> bool:
        """Whether it only moves data, the same for every type."""
        return self.scales != "one" and not self.results
