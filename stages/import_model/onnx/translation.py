"""The state of a translation: what each name of the ONNX graph stands for, and the TFLite file that grows.

Images lie as NHWC from the first operator that asks for them so; only what needs ONNX' own order (a Reshape that mixes
axes, an output of the model) has them transposed back. All tensors of 8 bits are int8: uint8 ones are less by 128, and
so are their zero points.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import onnx

from stages.import_model.onnx.subgraphs import captured
from stages.import_model.onnx.values import Array, Held, Order, Real, Shape, Stored, Value, permuted, plain_order
from stages.ir.arithmetic import activation_bounds
from stages.ir.models.builder import ModelBuilder
from stages.ir.models.onnx_names import LOWERED, Traced
from stages.ir.operators.operation import Refused, listed

MICROSOFT = "com.microsoft"
_BYTES = (onnx.TensorProto.INT8, onnx.TensorProto.UINT8)
BOUNDS = {
    name.lower(): (-np.inf if low is None else low, np.inf if high is None else high)
    for name, (low, high) in activation_bounds.BOUNDS.items()
}


@dataclass(frozen=True)
class Node:
    """An operator of the ONNX graph; absent inputs are ''.

    parts  those of the file that it stands for, in their order, where it is none of them
    """

    index: int
    proto: onnx.NodeProto
    parts: tuple[Node, ...] = ()

    @property
    def op(self) -> str:
        """`Conv`, of another domain `com.microsoft.QGemm`."""
        domain = self.proto.domain
        return self.proto.op_type if domain in ("", "ai.onnx") else f"{domain}.{self.proto.op_type}"

    @property
    def name(self) -> str:
        return self.proto.name or (self.outputs[0] if self.outputs else "")

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        names = list(self.proto.input)
        while names and not names[-1]:
            names.pop()
        return tuple(names)

    @cached_property
    def read(self) -> tuple[str, ...]:
        """The names of all that it reads, those included that graphs inside of it do."""
        return tuple(dict.fromkeys((*filter(None, self.inputs), *sorted(captured(self.proto)))))

    @property
    def outputs(self) -> tuple[str, ...]:
        return tuple(self.proto.output)

    @cached_property
    def attributes(self) -> Mapping[str, Any]:
        """Texts as str (bytes where a plug-in's operator has something else), lists as lists."""
        found = {one.name: onnx.helper.get_attribute_value(one) for one in self.proto.attribute}
        return {name: as_text(value) if isinstance(value, bytes) else value for name, value in found.items()}

    def copied(self, inputs: Sequence[str], outputs: Sequence[str]) -> onnx.NodeProto:
        """The operator with other names for its inputs and outputs; an absent input stays so."""
        made = onnx.NodeProto()
        made.CopyFrom(self.proto)
        made.ClearField("input")
        made.ClearField("output")
        made.input.extend(inputs)
        made.output.extend(outputs)
        return made

    def has(self, position: int) -> bool:
        return position < len(self.inputs) and self.inputs[position] != ""


@dataclass(frozen=True)
class Out:
    """Where an operator's result goes: the name that it has in ONNX, after an activation that is fused.

    quant   scale and zero point of int8; None for float32
    passed  numbers of the operators in between, which are part of it
    """

    name: str
    activation: str = "none"
    quant: tuple[float, int] | None = None
    passed: tuple[int, ...] = ()

    @property
    def bounds(self) -> tuple[int, int]:
        """Between which int8 results are clamped: halves go to even."""
        assert self.quant is not None
        low, high = BOUNDS[self.activation]
        scale, zero_point = self.quant
        limits = (np.rint(np.float32(bound) / np.float32(scale)) + zero_point for bound in (low, high))
        return tuple(int(np.clip(limit, -128, 127)) for limit in limits)  # type: ignore[return-value]


class Translation:
    """values: by ONNX name. names: of tensors of the file, by number. rules: of its operators (`rule`), by number."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.model = model
        self.builder = ModelBuilder()
        self.nodes = _needed(model.graph)
        self.opset = max((one.version for one in model.opset_import if one.domain in ("", "ai.onnx")), default=1)
        self.values: dict[str, Value] = {}
        self.names: dict[int, Traced] = {}
        self.rules: dict[int, dict[str, Any]] = {}
        self.done: set[int] = set()
        self.outputs = [one.name for one in model.graph.output]
        self.readers: dict[str, list[Node]] = defaultdict(list)
        self._dequantized: dict[str, Held] = {}
        for node in self.nodes:
            for name in dict.fromkeys(node.inputs):
                self.readers[name].append(node)

    # ---- names ---------------------------------------------------------------------------------------------------

    def bind(self, name: str, value: Value) -> None:
        """`name` stands for `value` from now on."""
        self.values[name] = value
        if isinstance(value, Held):
            self.names.setdefault(value.tensor.index, Traced(name, value.base, value.order))

    @cached_property
    def _types(self) -> Mapping[str, int]:
        told = onnx.ModelProto()
        told.CopyFrom(self.model)
        constants = {one.name: one.data_type for one in told.graph.initializer if one.data_type in _BYTES}
        typed = {one.name for one in (*told.graph.value_info, *told.graph.output)}
        # Inference does not know Microsoft's operators; their results have the type of what they read.
        for node in told.graph.node:
            kinds = [constants[name] for name in node.input if name in constants]
            if node.domain == MICROSOFT and kinds and node.output[0] not in typed:
                told.graph.value_info.append(onnx.helper.make_tensor_value_info(node.output[0], kinds[0], None))
        graph = onnx.shape_inference.infer_shapes(told).graph
        return {one.name: one.type.tensor_type.elem_type for one in (*graph.input, *graph.value_info, *graph.output)}

    def integer_type(self, name: str) -> np.dtype[Any]:
        """int8 or uint8, as ONNX has the integers of `name`; Refused where it cannot be known."""
        found = self._types.get(name, onnx.TensorProto.UNDEFINED)
        if found not in _BYTES:
            raise Refused(f"reads the integers '{name}', of which the file does not say whether they are int8 or uint8")
        return np.dtype(np.uint8 if found == onnx.TensorProto.UINT8 else np.int8)

    def held(self, node: Node, position: int, *, integers: bool = False) -> Held:
        """An input that is computed; Refused for a constant, and for integers as they are where these are not meant."""
        value = self.value(node, position)
        if isinstance(value, Stored):
            raise Refused(f"reads the constant '{node.inputs[position]}' where a computed tensor is needed")
        if integers and isinstance(value, Held):
            return value
        return self.real(node.inputs[position], value)

    def real(self, name: str, value: Held | Real) -> Held:
        """What is dequantized, in float32. Refused for integers that nobody dequantized."""
        if isinstance(value, Held):
            if value.tensor.scale:
                raise Refused(
                    f"computes on the integers '{name}' as they are", "A DequantizeLinear is to stand before it."
                )
            return value
        if name not in self._dequantized:
            source = value.held
            made = self.builder.dequantize(source.tensor, name=name)
            self._dequantized[name] = Held(made, source.base, source.shape, source.order)
            self.names.setdefault(made.index, Traced(name, source.base, source.order))
        return self._dequantized[name]

    def value(self, node: Node, position: int) -> Value:
        if not node.has(position):
            raise Refused(f"lacks its input {position}")
        return self.values[node.inputs[position]]

    def stored(self, node: Node, position: int, what: str) -> Array:
        """A constant input, as an array of what it stands for; Refused for a computed one."""
        value = self.value(node, position)
        if not isinstance(value, Stored):
            raise Refused(f"takes {what} from '{node.inputs[position]}', a computed tensor; it must be a constant")
        return value.real

    def integers(self, node: Node, position: int, what: str) -> list[int]:
        values = self.stored(node, position, what)
        if values.dtype.kind not in "iufb":
            raise Refused(f"takes {what} from '{node.inputs[position]}', which is {values.dtype}; they are integers")
        return [int(value) for value in values.reshape(-1)]

    def only_reader(self, name: str) -> Node | None:
        """The one operator that reads a value which is no output of the model."""
        readers = self.readers[name]
        return readers[0] if len(readers) == 1 and name not in self.outputs else None

    # ---- order of axes -------------------------------------------------------------------------------------------

    def settled(self, x: Held) -> Held:
        """As a tensor of its shape, whatever the order: reshapes that are due are made."""
        if not x.reshaped:
            return x
        tensor = x.tensor if x.is_plain else self.plain(Held(x.tensor, x.base, x.base, x.order)).tensor
        return Held.of(self.builder.reshape(tensor, x.shape, name=f"{tensor.name}/reshaped"), _plain(x.shape))

    def ordered(self, x: Held, order: Order) -> Held:
        """As a tensor of its shape whose axes are those of ONNX in `order`."""
        x = self.settled(x)
        if x.order == order:
            return x
        shape = permuted(x.shape, order)
        if [a for a in x.order if x.shape[a] != 1] == [a for a in order if x.shape[a] != 1]:
            return Held.of(self.builder.reshape(x.tensor, shape, name=f"{x.tensor.name}/laid"), order)
        moved = [x.order.index(axis) for axis in order]
        return Held.of(self.builder.transpose(x.tensor, moved, name=f"{x.tensor.name}/transposed"), order)

    def plain(self, x: Held) -> Held:
        """In ONNX' own order."""
        return self.ordered(x, _plain(x.shape))

    def aligned(self, parts: Sequence[Held]) -> list[Held]:
        """Tensors of one rank in one order: that of the first which is not ONNX' own."""
        settled = [self.settled(part) for part in parts]
        order = next((part.order for part in settled if not part.is_plain), settled[0].order)
        return [self.ordered(part, order) for part in settled]

    # ---- results -------------------------------------------------------------------------------------------------

    def rule(self, **facts: Any) -> None:
        """Notes facts of the operator that was appended last, for the stages that follow."""
        self.rules[self.builder.operators - 1] = facts

    def parameters(self, node: Node, scale_at: int, zero_at: int) -> tuple[float, int]:
        """Scale and zero point of an int8 tensor, from two constant inputs; Refused for several, or other types."""
        scale = self.stored(node, scale_at, "the scale")
        if scale.size != 1:
            raise Refused(f"has {scale.size} scales for a computed tensor; one is supported")
        zero = self.stored(node, zero_at, "the zero point") if node.has(zero_at) else np.zeros((), np.uint8)
        if zero.size != 1:
            raise Refused(f"has {zero.size} zero points for a computed tensor; one is supported")
        if zero.dtype not in (np.int8, np.uint8):
            raise Refused(f"has a zero point of type {zero.dtype}; tensors are int8 or uint8")
        if not float(scale.reshape(-1)[0]) > 0:
            raise Refused(f"has the scale {float(scale.reshape(-1)[0]):g}; it must be positive")
        return float(scale.reshape(-1)[0]), int(zero.reshape(-1)[0]) - (LOWERED if zero.dtype == np.uint8 else 0)

    def destination(self, node: Node, *, integers: bool) -> Out | None:
        """Where the first result goes, with an activation that follows it and nothing else does.

        integers: as int8, through the QuantizeLinear that follows; None where there is none.
        """
        name, activation, passed = node.outputs[0], "none", []
        following = self.only_reader(name)
        if following is not None and (found := self._activation(following)):
            name, activation = following.outputs[0], found
            passed.append(following)
        if integers:
            out = self.quantized(name)
            if out is None or out.quant is None:
                return None
            halves = [bound / np.float32(out.quant[0]) % 1 for bound in BOUNDS[activation] if np.isfinite(bound)]
            if 0.5 in halves:  # TFLite rounds such a bound away from zero
                return None
            return Out(out.name, activation, out.quant, (*(one.index for one in passed), *out.passed))
        return Out(name, activation, None, tuple(one.index for one in passed))

    def quantized(self, name: str) -> Out | None:
        """Where real numbers go as int8, where the one operator that reads them is a QuantizeLinear; else None."""
        following = self.only_reader(name)
        if following is None or following.op != "QuantizeLinear" or following.inputs[0] != name:
            return None
        return Out(following.outputs[0], "none", self.parameters(following, 1, 2), (following.index,))

    def finish(self, out: Out, value: Held) -> None:
        """The result of an operator, and of what is part of it."""
        self.done |= {*out.passed}
        self.bind(out.name, value)

    def _activation(self, node: Node) -> str:
        """What TFLite calls an activation that operators can have; '' for none."""
        if node.op == "Relu":
            return "relu"
        if node.op == "Clip":
            try:
                return {(0.0, 6.0): "relu6", (-1.0, 1.0): "relu_n1_to_1", (0.0, float("inf")): "relu"}.get(
                    clip_bounds(self, node), ""
                )
            except Refused:
                return ""
        return ""


def clip_bounds(t: Translation, node: Node) -> tuple[float, float]:
    """The bounds of a Clip, infinite where it has none."""
    if t.opset < 11:
        return float(node.attributes.get("min", -np.inf)), float(node.attributes.get("max", np.inf))
    low = float(t.stored(node, 1, "its bound").reshape(())) if node.has(1) else -np.inf
    high = float(t.stored(node, 2, "its bound").reshape(())) if node.has(2) else np.inf
    # Exporters write the largest float32 where they mean no bound.
    largest = float(np.finfo(np.float32).max)
    return (-np.inf if low <= -largest else low), (np.inf if high >= largest else high)


def as_text(value: bytes) -> str | bytes:
    """Return the text that UTF-8 bytes say; other bytes as they are."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value


def _needed(graph: onnx.GraphProto) -> list[Node]:
    """Return the nodes that an output depends on, with their numbers in the file."""
    needed, found = {one.name for one in graph.output}, []
    for index, proto in reversed(list(enumerate(graph.node))):
        node = Node(index, proto)
        if needed & set(node.outputs):
            needed |= set(node.read)
            found.append(node)
    return found[::-1]


def axis_in(axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        raise Refused(f"has the axis {axis} of a tensor with {rank} axes")
    return axis % rank


def check_rank(x: Held, ranks: Sequence[int]) -> None:
    if len(x.shape) not in ranks:
        raise Refused(f"reads a tensor of shape {listed(x.shape)}; {' or '.join(map(str, ranks))} axes are supported")


def _plain(shape: Shape) -> Order:
    return plain_order(len(shape))
