"""One imported operator for legalization patterns: its Relax body, tensors and constants."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from tvm import relax
from tvm.ir.expr import GenericConst
from tvm.relax.dpl import DFPattern, is_const, is_op, wildcard

from stages.ir.arithmetic.fixed_point import quantized_bound
from stages.ir.arrays import Array
from stages.ir.graph import Quant, Tensor
from stages.ir.operators.operation import flexbuffer
from stages.ir.relax_module import OperatorCall
from stages.quantize.arithmetic import LIMITS
from stages.quantize.tables import Quantized
from stages.support.messages import escape
from stages.support.messages.operator_error import OperatorError

_SUPPORTED = (
    "Integer operators take int8, uint8 or int16 tensors with one scale; constant weights may have one per channel."
)

Match = dict[DFPattern, relax.Expr]


def dequantized(x: DFPattern) -> DFPattern:
    """relax.dequantize(x) with constant scale and zero point."""
    return is_op("relax.dequantize")(x, is_const(), is_const())


def quantized(x: DFPattern) -> DFPattern:
    """relax.quantize(x) with constant scale and zero point."""
    return is_op("relax.quantize")(x, is_const(), is_const())


def clipped(x: DFPattern) -> DFPattern:
    """Return the clip of a fused activation around x, or x without one."""
    return is_op("relax.clip")(x, wildcard(), wildcard()) | x


def activated(x: DFPattern) -> DFPattern:
    """quantize(x), with an optional fused activation before or after it (`Operator.clamp`)."""
    return clipped(quantized(is_op("relax.nn.relu")(x) | clipped(x)))


def transposed(x: DFPattern) -> DFPattern:
    """x, or a transpose of it that writes another layout."""
    return is_op("relax.permute_dims")(x) | x


def reshaped(x: DFPattern) -> DFPattern:
    """x, or a reshape of it."""
    return is_op("relax.reshape")(x, wildcard()) | x


@dataclass(frozen=True)
class Parameters:
    """A constant or weights: integers, with the scale and zero point of each element.

    scale and zero_point have the shape of `values` (they are read-only broadcast views), or are None for constants that
    are not quantized.
    """

    values: Array
    scale: Array | None = None
    zero_point: Array | None = None

    def map(self, function: Any) -> Parameters:
        """Apply a change of shape to all three."""
        scale, zero_point = (None if part is None else function(part) for part in (self.scale, self.zero_point))
        return Parameters(function(self.values), scale, zero_point)


class Operator:
    """An operator with its tensors and options.

    call           the Relax function and its attributes
    inputs         graph tensors of the parameters, in order
    outputs        graph tensors to write, in order
    options        the operator's options in the imported file, by the schema's field names
    file_inputs    all inputs in the file, constants too, as in tensors.json; None for absent ones
    intermediates  the file's intermediate tensors, as in tensors.json
    onnx           whether the arithmetic is ONNX Runtime's, not LiteRT's; `rule` has details (import's tensors.json)
    """

    def __init__(
        self,
        call: OperatorCall,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        options: dict[str, Any],
        file_inputs: Sequence[dict[str, Any] | None] = (),
        intermediates: Sequence[dict[str, Any]] = (),
        *,
        onnx: bool = False,
        rule: Mapping[str, Any] | None = None,
    ) -> None:
        self.onnx, self.rule = onnx, dict(rule or {})
        self.call, self.inputs, self.outputs, self.options = call, tuple(inputs), tuple(outputs), options
        self.file_inputs, self.intermediates = tuple(file_inputs), tuple(intermediates)
        self.bindings = relax.analysis.get_var2val(call.function)
        self.result: relax.Expr = call.function.body.body
        self._tensors = dict(zip(call.function.params, self.inputs, strict=True))

    # ---- errors ------------------------------------------------------------------------------------------------

    def error(self, why: str, hint: str = "") -> OperatorError:
        """Error "operator 3 (ADD) 'sum' `why`", with the tensors' names and types on a second line."""
        sides = (", ".join(_described(tensor) for tensor in part) for part in (self.inputs, self.outputs))
        call = self.call
        return OperatorError(call.index, call.op, call.name, why, " -> ".join(sides), hint=hint, named=True)

    # ---- the body ----------------------------------------------------------------------------------------------

    def match(self, pattern: DFPattern) -> Match | None:
        """Expression of each part of `pattern` if the whole body matches it, else None."""
        matches = pattern.extract_matched_expr(self.result, self.bindings)
        return None if matches is None else dict(matches.items())

    def expect(self, pattern: DFPattern, form: str) -> Match:
        """As `match`; StageError if the body does not match. `form` describes the supported form."""
        matches = self.match(pattern)
        if matches is None:
            raise self.error(f"has no integer form for this body; supported: {form}", _SUPPORTED)
        return matches

    def resolve(self, expr: relax.Expr) -> relax.Expr:
        """Follow bindings of variables; parameters and other expressions are returned unchanged."""
        while isinstance(expr, relax.Var) and expr in self.bindings:
            expr = self.bindings[expr]
        return expr

    def tensor(self, expr: relax.Expr) -> Tensor | None:
        """Graph tensor of `expr`, None if it is not a parameter of the function."""
        expr = self.resolve(expr)
        return self._tensors.get(expr) if isinstance(expr, relax.Var) else None

    def data(self, expr: relax.Expr) -> Tensor:
        """As `tensor`; StageError if `expr` is not a parameter."""
        tensor = self.tensor(expr)
        if tensor is None:
            raise self.error("computes a value before it reads its input")
        return tensor

    # ---- axes: physical order in bodies, logical order in the graph ----------------------------------------------

    def logical_axes(self, axes: Sequence[int], tensor: Tensor) -> list[int]:
        """Logical numbers of physical axes of `tensor`."""
        return [tensor.permutation[axis] for axis in axes]

    def in_logical_order(self, values: Sequence[int], tensor: Tensor) -> list[int]:
        """One value for each physical axis of `tensor`, sorted by logical axis."""
        ordered = [0] * len(values)
        for axis, value in zip(tensor.permutation, values, strict=True):
            ordered[axis] = value
        return ordered

    def in_physical_order(self, values: Sequence[int], tensor: Tensor) -> list[int]:
        """One value for each logical axis of `tensor`, sorted by physical axis."""
        return [values[axis] for axis in tensor.permutation]

    # ---- operators that TVM does not know ----------------------------------------------------------------------

    @property
    def operands(self) -> list[Tensor | Array]:
        """Operands of an operator that TVM does not know, in the file's order.

        Graph tensors, and constants as arrays. Absent inputs are left out.
        """
        call = self.resolve(self.result)
        if not _is_call(call, "relax.call_pure_packed"):
            raise self.error("is imported by TVM: its operands are in the body")
        operands: list[Tensor | Array] = []
        for expr in call.args[1:]:
            tensor = self.tensor(expr)
            operands.append(tensor if tensor is not None else self.parameters(expr).values)
        return operands

    def operand(self, position: int) -> Tensor | Array | None:
        """Operand of such an operator by its position in the file; None if it is absent."""
        if position >= len(self.file_inputs) or self.file_inputs[position] is None:
            return None
        return self.operands[sum(entry is not None for entry in self.file_inputs[:position])]

    def tensor_at(self, position: int) -> Tensor:
        """Operand that is a tensor: computed, or state."""
        tensor = self.operand(position)
        assert isinstance(tensor, Tensor), f"{self.call.op} has no tensor as its input {position}"
        return tensor

    def constant_at(self, position: int) -> Array | None:
        """Constant operand, None if it is absent. Raises OperatorError if it is computed."""
        constant = self.operand(position)
        if isinstance(constant, Tensor):
            raise self.error(f"reads {constant.name!r}, which is computed; it must be a constant")
        return constant

    def scale_at(self, position: int) -> float:
        """Scale of a quantized operand."""
        entry = self.file_inputs[position]
        assert entry is not None
        return float(entry["scales"][0])

    def known(self, position: int) -> Array:
        """Constant operand that must be present."""
        constant = self.constant_at(position)
        assert constant is not None, f"{self.call.op} lacks its input {position}"
        return constant

    def shape_at(self, position: int) -> tuple[int, ...]:
        """Shape of an input, constant or not."""
        entry = self.file_inputs[position]
        assert entry is not None
        return tuple(entry["shape"])

    @property
    def custom(self) -> bytes:
        """Options of a custom operator, as bytes."""
        return bytes.fromhex(self.options.get("custom_options", ""))

    @property
    def flexbuffer(self) -> Any:
        """Options of a custom operator that are a flexbuffer, decoded."""
        return flexbuffer(self.custom)

    @cached_property
    def clamp(self) -> tuple[int, int]:
        """Bounds of the fused activation in the output's integers; without one, the type's bounds.

        The activation is a clip of the integers after `quantize`, or a relu or clip of the real numbers before it.
        """
        low, high = LIMITS[self.outputs[0].dtype]
        expr = self._inside("relax.reshape", "relax.permute_dims")(self.result)
        if _is_call(expr, "relax.clip"):
            bounds = [int(bound) for bound in self._bounds(expr)]
            low, high = max(low, bounds[0]), min(high, bounds[1])
        expr = self._inside("relax.clip")(expr)
        if not _is_call(expr, "relax.quantize"):
            return low, high
        real, out = self.resolve(expr.args[0]), self.quantized(self.outputs[0])
        if _is_call(real, "relax.nn.relu"):
            return max(low, quantized_bound(0.0, out.scale, out.zero_point)), high
        if _is_call(real, "relax.clip"):
            bounds = [quantized_bound(bound, out.scale, out.zero_point) for bound in self._bounds(real)]
            return max(low, bounds[0]), min(high, bounds[1])
        return low, high

    def _inside(self, *names: str) -> Callable[[relax.Expr], relax.Expr]:
        """Function that strips calls of these operators from an expression."""

        def peel(expr: relax.Expr) -> relax.Expr:
            expr = self.resolve(expr)
            while _is_call(expr, *names):
                expr = self.resolve(expr.args[0])
            return expr

        return peel

    @staticmethod
    def _bounds(clip: relax.Call) -> list[float]:
        return [float(getattr(bound, "value", bound)) for bound in clip.args[1:]]

    @staticmethod
    def quantized(tensor: Tensor) -> Quantized:
        """Type, scale and zero point of a tensor."""
        return Quantized(tensor.dtype, tensor.scale, tensor.zero_point)

    # ---- constants ---------------------------------------------------------------------------------------------

    def parameters(self, expr: relax.Expr) -> Parameters:
        """Value of an expression over constants; integers and scales stay separate."""
        expr = self.resolve(expr)
        if isinstance(expr, GenericConst):
            return Parameters(expr.value.numpy())
        if not isinstance(expr, relax.Call):
            raise self.error("has weights that are computed at run time")
        inner, name = self.parameters(expr.args[0]), expr.op.name
        if name == "relax.dequantize":
            scale, zero_point = (self.parameters(arg).values for arg in expr.args[1:3])
            axis = int(expr.attrs.axis) % max(inner.values.ndim, 1)
            return Parameters(inner.values, *(_along(part, axis, inner.values.shape) for part in (scale, zero_point)))
        if name == "relax.astype":  # of a bias of 64 bits
            return inner
        if name == "relax.permute_dims":
            axes = expr.attrs.axes
            return inner.map(lambda part: part.transpose(None if axes is None else [int(axis) for axis in axes]))
        if name in ("relax.reshape", "relax.expand_dims", "relax.squeeze"):
            shape = [int(size) for size in expr.ty.shape]
            return inner.map(lambda part: part.reshape(shape))
        raise self.error(f"computes its constants with {name}")

    def scalar(self, expr: relax.Expr) -> float:
        """Value of a constant with one element."""
        return float(self.parameters(expr).values.reshape(-1)[0])


def quant_of(entry: dict[str, Any]) -> Quant | None:
    """Quantization of a tensor in tensors.json; None without one (a scale of 0)."""
    if not entry["scales"] or not all(entry["scales"]) or entry["dtype"] == "float32":
        return None
    points = entry["zero_points"] or [0] * len(entry["scales"])
    return Quant(scale=tuple(entry["scales"]), zero_point=tuple(points), axis=entry["axis"])


def _is_call(expr: relax.Expr, *names: str) -> bool:
    return isinstance(expr, relax.Call) and expr.op.name in names


def _described(tensor: Tensor) -> str:
    return f"{escape.quoted(tensor.name)} {tensor.dtype}{list(tensor.shape)}"


def _along(values: Array, axis: int, shape: tuple[int, ...]) -> Array:
    """Expand a scalar, or one value for each index along `axis`, to `shape`."""
    if values.size == 1:
        return np.broadcast_to(values.reshape(()), shape)
    return np.broadcast_to(values.reshape([-1 if i == axis else 1 for i in range(len(shape))]), shape)
