"""The state of a translation: the value of each ONNX name, and the TFLite file being built.

Images are NHWC from the first operator that requires it. Operators that require ONNX' order (a Reshape that mixes axes,
an output of the model) transpose them back. All 8-bit tensors are int8: uint8 values and zero points are lowered by
128.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import onnx

from stages.import_model.onnx.subgraphs import captured
from stages.import_model.onnx.values import (
    Constant,
    Dequantized,
    Order,
    Shape,
    TensorView,
    Value,
    permuted,
    plain_order,
)
from stages.ir.arithmetic import activation_bounds
from stages.ir.arrays import Array
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

    parts  operators of the file that it replaces, in their order; empty for an operator of the file
    """

    index: int
    proto: onnx.NodeProto
    parts: tuple[Node, ...] = ()

    @property
    def op(self) -> str:
        """The operator type: `Conv`, for other domains `com.microsoft.QGemm`."""
        domain = self.proto.domain
        return self.proto.op_type if domain in ("", "ai.onnx") else f"{domain}.{self.proto.op_type}"

    @property
    def name(self) -> str:
        """The node's name; without one, the name of its first output."""
        return self.proto.name or (self.outputs[0] if self.outputs else "")

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """Names of the inputs, without absent ones at the end."""
        names = list(self.proto.input)
        while names and not names[-1]:
            names.pop()
        return tuple(names)

    @cached_property
    def read(self) -> tuple[str, ...]:
        """Names of all values that the operator and its subgraphs read."""
        return tuple(dict.fromkeys((*filter(None, self.inputs), *sorted(captured(self.proto)))))

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the outputs."""
        return tuple(self.proto.output)

    @cached_property
    def attributes(self) -> Mapping[str, Any]:
        """Attributes by name; texts as str (bytes if they are not UTF-8), lists as lists."""
        values = {attribute.name: onnx.helper.get_attribute_value(attribute) for attribute in self.proto.attribute}
        return {name: as_text(value) if isinstance(value, bytes) else value for name, value in values.items()}

    def copied(self, inputs: Sequence[str], outputs: Sequence[str]) -> onnx.NodeProto:
        """Return the operator with other input and output names; an absent input is ''."""
        copy = onnx.NodeProto()
        copy.CopyFrom(self.proto)
        copy.ClearField("input")
        copy.ClearField("output")
        copy.input.extend(inputs)
        copy.output.extend(outputs)
        return copy

    def has(self, position: int) -> bool:
        """Return whether the input at `position` is present."""
        return position < len(self.inputs) and self.inputs[position] != ""


@dataclass(frozen=True)
class Out:
    """Destination of an operator's result: its ONNX name, after a fused activation.

    quant   scale and zero point of int8; None for float32
    passed  numbers of the following operators that are fused into it
    """

    name: str
    activation: str = "none"
    quant: tuple[float, int] | None = None
    passed: tuple[int, ...] = ()

    @property
    def bounds(self) -> tuple[int, int]:
        """The limits of int8 results. The activation's real bounds are rounded, halves to even."""
        assert self.quant is not None
        low, high = BOUNDS[self.activation]
        scale, zero_point = self.quant
        limits = (np.rint(np.float32(bound) / np.float32(scale)) + zero_point for bound in (low, high))
        return tuple(int(np.clip(limit, -128, 127)) for limit in limits)  # type: ignore[return-value]


class Translation:
    """The state of a translation.

    values: by ONNX name
    names: ONNX values of the file's tensors, by tensor number
    rules: arithmetic of the file's operators (`rule` in tensors.json), by operator number
    done: numbers of ONNX operators that need no translation any more
    """

    def __init__(self, model: onnx.ModelProto) -> None:
        self.model = model
        self.builder = ModelBuilder()
        self.nodes = _needed(model.graph)
        self.opset = max((entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), default=1)
        self.values: dict[str, Value] = {}
        self.names: dict[int, Traced] = {}
        self.rules: dict[int, dict[str, Any]] = {}
        self.done: set[int] = set()
        self.outputs = [entry.name for entry in model.graph.output]
        self.readers: dict[str, list[Node]] = defaultdict(list)
        self._dequantized: dict[str, TensorView] = {}
        for node in self.nodes:
            for name in dict.fromkeys(node.inputs):
                self.readers[name].append(node)

    # ---- names ---------------------------------------------------------------------------------------------------

    def bind(self, name: str, value: Value) -> None:
        """Set the value of `name`."""
        self.values[name] = value
        if isinstance(value, TensorView):
            self.names.setdefault(value.tensor.index, Traced(name, value.base, value.order))

    @cached_property
    def _types(self) -> Mapping[str, int]:
        model = onnx.ModelProto()
        model.CopyFrom(self.model)
        constants = {entry.name: entry.data_type for entry in model.graph.initializer if entry.data_type in _BYTES}
        typed_names = {entry.name for entry in (*model.graph.value_info, *model.graph.output)}
        # Shape inference lacks Microsoft's operators; their results have the type of their inputs.
        for node in model.graph.node:
            kinds = [constants[name] for name in node.input if name in constants]
            if node.domain == MICROSOFT and kinds and node.output[0] not in typed_names:
                model.graph.value_info.append(onnx.helper.make_tensor_value_info(node.output[0], kinds[0], None))
        graph = onnx.shape_inference.infer_shapes(model).graph
        return {
            entry.name: entry.type.tensor_type.elem_type for entry in (*graph.input, *graph.value_info, *graph.output)
        }

    def integer_type(self, name: str) -> np.dtype[Any]:
        """Return int8 or uint8, the ONNX type of `name`. Raises Refused if it is unknown."""
        elem_type = self._types.get(name, onnx.TensorProto.UNDEFINED)
        if elem_type not in _BYTES:
            raise Refused(f"reads the integers '{name}', whose type (int8 or uint8) the file does not state")
        return np.dtype(np.uint8 if elem_type == onnx.TensorProto.UINT8 else np.int8)

    def computed(self, node: Node, position: int, *, integers: bool = False) -> TensorView:
        """Return a computed input, dequantized unless `integers` is set.

        Raises Refused for a constant, and for integers without DequantizeLinear.
        """
        value = self.value(node, position)
        if isinstance(value, Constant):
            raise Refused(f"reads the constant '{node.inputs[position]}' where a computed tensor is needed")
        if integers and isinstance(value, TensorView):
            return value
        return self.dequantized(node.inputs[position], value)

    def dequantized(self, name: str, value: TensorView | Dequantized) -> TensorView:
        """Return a float32 tensor. Raises Refused for integers without DequantizeLinear."""
        if isinstance(value, TensorView):
            if value.tensor.scale:
                raise Refused(f"computes directly on the integers '{name}'", "Put a DequantizeLinear before it.")
            return value
        if name not in self._dequantized:
            source = value.integers
            tensor = self.builder.dequantize(source.tensor, name=name)
            self._dequantized[name] = TensorView(tensor, source.base, source.shape, source.order)
            self.names.setdefault(tensor.index, Traced(name, source.base, source.order))
        return self._dequantized[name]

    def value(self, node: Node, position: int) -> Value:
        """Return the value of an input. Raises Refused for an absent one."""
        if not node.has(position):
            raise Refused(f"lacks its input {position}")
        return self.values[node.inputs[position]]

    def constant(self, node: Node, position: int, what: str) -> Array:
        """Return a constant input as real numbers. Raises Refused for a computed one."""
        value = self.value(node, position)
        if not isinstance(value, Constant):
            raise Refused(f"takes {what} from '{node.inputs[position]}', a computed tensor; it must be a constant")
        return value.real_values

    def constant_integers(self, node: Node, position: int, what: str) -> list[int]:
        """Return a constant input as a list of integers. Raises Refused for other types."""
        values = self.constant(node, position, what)
        if values.dtype.kind not in "iufb":
            raise Refused(f"takes {what} from '{node.inputs[position]}', which is {values.dtype}; it must be integers")
        return [int(value) for value in values.reshape(-1)]

    def only_reader(self, name: str, *ops: str) -> Node | None:
        """Return the only reader of a value that is no output of the model, else None.

        With `ops`, only if it is one of these operators.
        """
        readers = self.readers[name]
        is_private = len(readers) == 1 and name not in self.outputs
        return readers[0] if is_private and (not ops or readers[0].op in ops) else None

    # ---- order of axes -------------------------------------------------------------------------------------------

    def materialized(self, x: TensorView) -> TensorView:
        """Return the view without pending reshape, in any axis order."""
        if not x.reshaped:
            return x
        tensor = x.tensor if x.is_plain else self.plain(TensorView(x.tensor, x.base, x.base, x.order)).tensor
        return TensorView.of(self.builder.reshape(tensor, x.shape, name=f"{tensor.name}/reshaped"), _plain(x.shape))

    def reordered(self, x: TensorView, order: Order) -> TensorView:
        """Return the view without pending reshape, with its axes in `order`."""
        x = self.materialized(x)
        if x.order == order:
            return x
        shape = permuted(x.shape, order)
        if [a for a in x.order if x.shape[a] != 1] == [a for a in order if x.shape[a] != 1]:
            return TensorView.of(self.builder.reshape(x.tensor, shape, name=f"{x.tensor.name}/laid"), order)
        permutation = [x.order.index(axis) for axis in order]
        return TensorView.of(self.builder.transpose(x.tensor, permutation, name=f"{x.tensor.name}/transposed"), order)

    def plain(self, x: TensorView) -> TensorView:
        """Return the view in ONNX' axis order."""
        return self.reordered(x, _plain(x.shape))

    def aligned(self, parts: Sequence[TensorView]) -> list[TensorView]:
        """Return views of equal rank in one axis order: the first that is not ONNX' order."""
        materialized = [self.materialized(part) for part in parts]
        order = next((part.order for part in materialized if not part.is_plain), materialized[0].order)
        return [self.reordered(part, order) for part in materialized]

    # ---- results -------------------------------------------------------------------------------------------------

    def rule(self, **facts: Any) -> None:
        """Record the arithmetic of the operator that was appended last."""
        self.rules[self.builder.operators - 1] = facts

    def parameters(self, node: Node, scale_at: int, zero_at: int) -> tuple[float, int]:
        """Return scale and zero point of an int8 tensor, from two constant inputs.

        Raises Refused for several values or other types.
        """
        scale = self.constant(node, scale_at, "the scale")
        if scale.size != 1:
            raise Refused(f"has {scale.size} scales for a computed tensor; one is supported")
        zero = self.constant(node, zero_at, "the zero point") if node.has(zero_at) else np.zeros((), np.uint8)
        if zero.size != 1:
            raise Refused(f"has {zero.size} zero points for a computed tensor; one is supported")
        if zero.dtype not in (np.int8, np.uint8):
            raise Refused(f"has a zero point of type {zero.dtype}; tensors are int8 or uint8")
        if not float(scale.reshape(-1)[0]) > 0:
            raise Refused(f"has the scale {float(scale.reshape(-1)[0]):g}; it must be positive")
        return float(scale.reshape(-1)[0]), int(zero.reshape(-1)[0]) - (LOWERED if zero.dtype == np.uint8 else 0)

    def destination(self, node: Node, *, integers: bool) -> Out | None:
        """Return where the first result goes, after an activation that is its only reader.

        integers: as int8, through the QuantizeLinear that follows; None if there is no such operator.
        """
        name, activation, fused_nodes = node.outputs[0], "none", []
        following = self.only_reader(name)
        if following is not None and (fused_activation := self._activation(following)):
            name, activation = following.outputs[0], fused_activation
            fused_nodes.append(following)
        if integers:
            out = self.quantized(name)
            if out is None or out.quant is None:
                return None
            halves = [bound / np.float32(out.quant[0]) % 1 for bound in BOUNDS[activation] if np.isfinite(bound)]
            if 0.5 in halves:  # TFLite rounds such a bound away from zero
                return None
            return Out(out.name, activation, out.quant, (*(fused.index for fused in fused_nodes), *out.passed))
        return Out(name, activation, None, tuple(fused.index for fused in fused_nodes))

    def quantized(self, name: str) -> Out | None:
        """Return the int8 destination if the only reader is a QuantizeLinear, else None."""
        following = self.only_reader(name, "QuantizeLinear")
        if following is None or following.inputs[0] != name:
            return None
        return Out(following.outputs[0], "none", self.parameters(following, 1, 2), (following.index,))

    def finish(self, out: Out, value: TensorView) -> None:
        """Bind an operator's result, and mark the fused operators as done."""
        self.done |= {*out.passed}
        self.bind(out.name, value)

    def _activation(self, node: Node) -> str:
        """Return TFLite's name of an activation that can be fused; '' for other operators."""
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
    """Return the bounds of a Clip; infinite if absent."""
    if t.opset < 11:
        return float(node.attributes.get("min", -np.inf)), float(node.attributes.get("max", np.inf))
    low = float(t.constant(node, 1, "its bound").reshape(())) if node.has(1) else -np.inf
    high = float(t.constant(node, 2, "its bound").reshape(())) if node.has(2) else np.inf
    # Exporters write the largest float32 for "no bound".
    largest = float(np.finfo(np.float32).max)
    return (-np.inf if low <= -largest else low), (np.inf if high >= largest else high)


def as_text(value: bytes) -> str | bytes:
    """Return UTF-8 bytes as text, other bytes unchanged."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value


def _needed(graph: onnx.GraphProto) -> list[Node]:
    """Return the nodes that an output depends on, with their numbers in the file."""
    needed, nodes = {output.name for output in graph.output}, []
    for index, proto in reversed(list(enumerate(graph.node))):
        node = Node(index, proto)
        if needed & set(node.outputs):
            needed |= set(node.read)
            nodes.append(node)
    return nodes[::-1]


def axis_in(axis: int, rank: int) -> int:
    """Return the axis as a non-negative number. Raises Refused if it is out of range."""
    if not -rank <= axis < rank:
        raise Refused(f"has the axis {axis}, but its tensor has {rank} axes")
    return axis % rank


def check_rank(x: TensorView, ranks: Sequence[int]) -> None:
    """Raise Refused unless the tensor has one of the supported numbers of axes."""
    if len(x.shape) not in ranks:
        raise Refused(f"reads a tensor of shape {listed(x.shape)}; {' or '.join(map(str, ranks))} axes are supported")


def _plain(shape: Shape) -> Order:
    return plain_order(len(shape))


# Appends the TFLite form of an ONNX operator.
Translator = Callable[[Translation, Node], None]
