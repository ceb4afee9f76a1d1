"""Rewrite the Relax function of one operator for other layouts.

With P the permutation NHWC -> NCHW, the new function of P(x) is P of the old function of x. Axes in attributes are
renumbered, and constants next to data are transposed at build time. Weights of convolutions keep their order, since
kernels pack them.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from tvm import relax
from tvm.ir.expr import GenericConst

from stages.ir.relax_module import ELEMENTWISE, build_function, operands_of
from stages.ir.tensor_layout import Layout
from stages.layout.assign import same_bytes
from stages.layout.rules import DataLayout

# Position of each logical axis (N, H, W, C) in NCHW, and the inverse.
TO_NCHW = (0, 3, 1, 2)
TO_NHWC = (0, 2, 3, 1)
_POSITION = {0: 0, 1: 2, 2: 3, 3: 1}

_REDUCTIONS = {
    "relax.max": relax.op.max,
    "relax.mean": relax.op.mean,
    "relax.min": relax.op.min,
    "relax.sum": relax.op.sum,
}


class NotRenumberable(Exception):
    """The function cannot be rewritten for NCHW; the message gives the reason."""


def physical(shape: Sequence[int], layout: DataLayout | str) -> tuple[int, ...]:
    """Shape in memory of a tensor of logical `shape`."""
    return Layout(layout).physical_shape(shape)


def relayout(function: relax.Function, name: str, data: DataLayout | str, out: DataLayout | str) -> relax.Function:
    """Rewrite `function` (all NHWC): 4-D parameters get the layout `data`, results `out`.

    Attributes are kept. Raises NotRenumberable.
    """
    if data != "NCHW" and out != "NCHW":
        return function
    return _Relayout(function, planar=data == "NCHW").build(name, out)


def renumberable(function: relax.Function) -> bool:
    """Whether a function without big constants can be rewritten to read NCHW."""
    if not any(_rank(parameter) == 4 for parameter in function.params):
        return False
    try:
        _Relayout(function, planar=True).build("trial", "NCHW")
    except NotRenumberable:
        return False
    return True


def transform_function(
    name: str, parameter: str, shape: Sequence[int], dtype: str, target: DataLayout
) -> relax.Function:
    """Function that copies a tensor of logical `shape` from the other layout to `target`.

    A reshape instead of a transpose if the bytes are the same.
    """
    source = "NHWC" if target == "NCHW" else "NCHW"
    variable = relax.Var(parameter, relax.TensorType(physical(shape, source), dtype))
    if same_bytes(shape):
        return build_function(name, [variable], lambda _: relax.op.reshape(variable, physical(shape, target)))
    order = TO_NCHW if target == "NCHW" else TO_NHWC
    return build_function(name, [variable], lambda _: relax.op.permute_dims(variable, order))


def _rank(expression: relax.Expr) -> int:
    return int(expression.ty.ndim) if isinstance(expression.ty, relax.TensorType) else -1


class _Relayout:
    """Walk over a function's bindings that emits them for the new layout.

    values  new expression of each old variable
    planar  old variables that are in NCHW now
    static  bindings computed from constants only; they are emitted in the form that their reader needs
    """

    def __init__(self, function: relax.Function, *, planar: bool) -> None:
        self.function, self.reads_planar = function, planar
        self.builder = relax.BlockBuilder()
        self.values: dict[relax.Var, relax.Expr] = {}
        self.planar: set[relax.Var] = set()
        self.static: dict[relax.Var, relax.Expr] = {}

    def build(self, name: str, out: DataLayout | str) -> relax.Function:
        """Return the new function; its 4-D results have layout `out`."""
        for parameter in self.function.params:
            shape, layout = [int(size) for size in parameter.ty.shape], ""
            if self.reads_planar and len(shape) == 4:
                layout = "NCHW"
                self.planar.add(parameter)
            dtype = parameter.ty.dtype
            self.values[parameter] = relax.Var(parameter.name, relax.TensorType(physical(shape, layout), dtype))

        def body(builder: relax.BlockBuilder) -> relax.Expr:
            self.builder = builder
            for block in self.function.body.blocks:
                for binding in block.bindings:
                    self._bind(binding.var, binding.value)
            return self._result(self.function.body.body, out)

        function = build_function(name, [self.values[parameter] for parameter in self.function.params], body)
        return function.with_attrs(self.function.attrs) if self.function.attrs else function

    def _result(self, variable: relax.Var, out: DataLayout | str) -> relax.Expr:
        """Return the result in layout `out`, transposed if the operator computes in the other one."""
        value, planar = self._use(variable), variable in self.planar
        if _rank(variable) != 4 or planar == (out == "NCHW"):
            return value
        return relax.op.permute_dims(value, TO_NHWC if planar else TO_NCHW)

    def _bind(self, variable: relax.Var, value: relax.Expr) -> None:
        if isinstance(value, relax.Call):
            operands = operands_of(value)
            if operands and all(self._is_static(operand) for operand in operands):
                self.static[variable] = value
            elif value.op.name == "relax.nn.conv2d":
                self._set(variable, self._convolution(value), planar=self.reads_planar)
            elif any(operand in self.planar for operand in operands):
                self._planar_call(variable, value)
            else:
                self._set(variable, relax.Call(value.op, [self._use(a) for a in value.args], value.attrs), planar=False)
        elif isinstance(value, relax.TupleGetItem):
            tuple_value = relax.TupleGetItem(self._use(value.tuple_value), value.index)
            self._set(variable, tuple_value, planar=value.tuple_value in self.planar)
        elif isinstance(value, relax.Var):
            self._set(variable, self._use(value), planar=value in self.planar)
        else:
            raise NotRenumberable(f"it binds a {type(value).__name__}")

    def _set(self, variable: relax.Var, value: relax.Expr, *, planar: bool) -> None:
        self.values[variable] = self.builder.emit(value)
        if planar:
            self.planar.add(variable)

    def _is_static(self, expression: relax.Expr) -> bool:
        return isinstance(expression, GenericConst) or expression in self.static

    def _use(self, expression: relax.Expr) -> relax.Expr:
        """Return an operand in its present layout."""
        if isinstance(expression, relax.Tuple):
            return relax.Tuple([self._use(field) for field in expression.fields])
        if expression in self.static:
            call = self.static[expression]
            return self.builder.emit(relax.Call(call.op, [self._use(a) for a in call.args], call.attrs))
        return self.values.get(expression, expression) if isinstance(expression, relax.Var) else expression

    def _use_planar(self, expression: relax.Expr) -> relax.Expr:
        """Return an operand in NCHW, for use next to one in NCHW.

        Constants are transposed at build time; scalars stay.
        """
        if isinstance(expression, relax.Tuple):
            return relax.Tuple([self._use_planar(field) for field in expression.fields])
        if expression in self.planar or not isinstance(expression.ty, relax.TensorType) or _rank(expression) == 0:
            return self._use(expression)
        if not self._is_static(expression):
            raise NotRenumberable(f"it reads a tensor with {_rank(expression)} axes next to an NCHW tensor")
        rank = _rank(expression)

        def arrange(value: np.ndarray) -> np.ndarray:
            return value.reshape((1,) * (4 - rank) + value.shape).transpose(TO_NCHW)

        return self._rearranged(expression, arrange, lambda axis: _POSITION[axis + 4 - rank])

    def _rearranged(
        self, expression: relax.Expr, arrange: Callable[[np.ndarray], np.ndarray], moved: Callable[[int], int]
    ) -> relax.Expr:
        """Rearrange the elements of a constant, or of a dequantized one.

        `moved` maps old axes to new ones.
        """
        if isinstance(expression, GenericConst):
            return relax.const(np.ascontiguousarray(arrange(expression.value.numpy())))
        call = self.static[expression]
        if call.op.name != "relax.dequantize":
            raise NotRenumberable(f"it computes {call.op.name} of a constant")
        data, scale, zero_point = call.args
        axis = moved(int(call.attrs.axis) % _rank(data)) if _rank(scale) else 0
        rearranged = self._rearranged(data, arrange, moved)
        return self.builder.emit(relax.op.dequantize(rearranged, scale, zero_point, axis, call.attrs.out_dtype))

    def _convolution(self, call: relax.Call) -> relax.Expr:
        """conv2d in the data layout."""
        attrs, layout = call.attrs, "NCHW" if self.reads_planar else "NHWC"
        return relax.op.nn.conv2d(
            self._use(call.args[0]),
            self._use(call.args[1]),
            strides=list(attrs.strides),
            padding=list(attrs.padding),
            dilation=list(attrs.dilation),
            groups=int(attrs.groups),
            data_layout=layout,
            kernel_layout=attrs.kernel_layout,
            out_layout=layout,
            out_dtype=attrs.out_dtype,
        )

    def _planar_call(self, variable: relax.Var, call: relax.Call) -> None:
        """Emit any other operator with an operand in NCHW."""
        name, attrs = call.op.name, call.attrs
        data = call.args[0]
        planar = True
        if name in ELEMENTWISE:
            result = relax.Call(call.op, [self._use_planar(argument) for argument in call.args], attrs)
        elif name == "relax.concat":
            result = relax.op.concat(self._use_planar(data), _axis(attrs.axis))
        elif name == "relax.split":
            parts = attrs.indices_or_sections
            parts = int(parts) if hasattr(parts, "value") else [int(part) for part in parts]
            result = relax.op.split(self._use(data), parts, _axis(attrs.axis))
        elif name == "relax.nn.pad":
            width = [int(value) for value in attrs.pad_width]
            width = [value for axis in TO_NCHW for value in width[2 * axis : 2 * axis + 2]]
            result = relax.op.nn.pad(self._use(data), width, attrs.pad_mode, attrs.pad_value)
        elif name == "relax.strided_slice":
            axes, *rest = ([int(value) for value in part.fields] for part in call.args[1:])
            result = relax.op.strided_slice(self._use(data), [_axis(axis) for axis in axes], *rest)
        elif name in _REDUCTIONS:
            result, planar = self._reduction(call)
        elif name == "relax.image.resize2d":
            size = call.args[1]
            result = relax.op.image.resize2d(
                self._use(data), size, None, "NCHW", attrs.method, attrs.coordinate_transformation_mode,
                attrs.rounding_method,
            )  # fmt: skip
        elif name in ("relax.nn.avg_pool2d", "relax.nn.max_pool2d"):
            result = self._pool(call)
        else:
            raise NotRenumberable(f"{name} has no NCHW form")
        self._set(variable, result, planar=planar)

    def _reduction(self, call: relax.Call) -> tuple[relax.Expr, bool]:
        axes = [int(axis) % 4 for axis in call.attrs.axis]
        keep = bool(call.attrs.keepdims)
        remaining = [axis for axis in TO_NCHW if axis not in axes]
        if not keep and remaining != sorted(remaining):
            raise NotRenumberable("the remaining axes would change their order")
        return _REDUCTIONS[call.op.name](self._use(call.args[0]), sorted(_axis(axis) for axis in axes), keep), keep

    def _pool(self, call: relax.Call) -> relax.Expr:
        attrs: Any = call.attrs
        function = relax.op.nn.avg_pool2d if call.op.name == "relax.nn.avg_pool2d" else relax.op.nn.max_pool2d
        return function(
            self._use(call.args[0]),
            pool_size=list(attrs.pool_size),
            strides=list(attrs.strides),
            padding=list(attrs.padding),
            dilation=list(attrs.dilation),
            ceil_mode=bool(attrs.ceil_mode),
            count_include_pad=bool(attrs.count_include_pad),
            layout="NCHW",
            out_layout="NCHW",
        )


def _axis(axis: Any) -> int:
    """NCHW position of a logical axis."""
    return _POSITION[int(axis) % 4]
