"""One operator's Relax function, rewritten to read and write other layouts.

The function's meaning stays: with P the permutation NHWC -> NCHW, the new function of P(x) is P of the old one of x.
Axes in attributes are renumbered, constants next to data are transposed now, never at run time. The weights of
convolutions stay as they were imported: kernels pack them as they need them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from tvm import relax
from tvm.ir.expr import GenericConst

from stages.ir.relax_module import build_function
from stages.ir.tensor_layout import Layout
from stages.layout.assign import same_bytes
from stages.layout.rules import DataLayout

# Position of each logical axis (N, H, W, C) in NCHW, and the other way round.
TO_NCHW = (0, 3, 1, 2)
TO_NHWC = (0, 2, 3, 1)
_POSITION = {0: 0, 1: 2, 2: 3, 3: 1}

_ELEMENTWISE = frozenset({
    "relax.abs", "relax.add", "relax.astype", "relax.clip", "relax.cos", "relax.dequantize", "relax.divide",
    "relax.exp", "relax.floor", "relax.less", "relax.log", "relax.maximum", "relax.minimum", "relax.multiply",
    "relax.negative", "relax.nn.leakyrelu", "relax.nn.relu", "relax.power", "relax.quantize", "relax.round",
    "relax.rsqrt", "relax.sigmoid", "relax.sign", "relax.sin", "relax.sqrt", "relax.square", "relax.subtract",
    "relax.tanh", "relax.where",
})  # fmt: skip


_REDUCTIONS = {
    "relax.max": relax.op.max,
    "relax.mean": relax.op.mean,
    "relax.min": relax.op.min,
    "relax.sum": relax.op.sum,
}


class NotRenumberable(Exception):
    """The function cannot be rewritten for NCHW; the message says what stands against it."""


def physical(shape: Sequence[int], layout: DataLayout | str) -> tuple[int, ...]:
    """The shape in memory of a tensor of logical `shape`."""
    return Layout(layout).physical_shape(shape)


def relayout(function: relax.Function, name: str, data: DataLayout | str, out: DataLayout | str) -> relax.Function:
    """`function` (all NHWC) reading its 4-D parameters in layout `data` and writing its 4-D results in `out`.

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
    """A tensor of logical `shape` copied to layout `target` from the other one.

    A reshape instead of a transpose where the bytes are the same.
    """
    source = "NHWC" if target == "NCHW" else "NCHW"
    given = relax.Var(parameter, relax.TensorType(physical(shape, source), dtype))
    if same_bytes(shape):
        return build_function(name, [given], lambda _: relax.op.reshape(given, physical(shape, target)))
    order = TO_NCHW if target == "NCHW" else TO_NHWC
    return build_function(name, [given], lambda _: relax.op.permute_dims(given, order))


def _rank(expression: relax.Expr) -> int:
    return int(expression.ty.ndim) if isinstance(expression.ty, relax.TensorType) else -1


class _Relayout:
    """Walks the bindings in order. values maps the old variables to new expressions; planar has those now in NCHW;
    static has the bindings computed from constants alone, which are only emitted in the form their reader needs."""

    def __init__(self, function: relax.Function, *, planar: bool) -> None:
        self.function, self.reads_planar = function, planar
        self.builder = relax.BlockBuilder()
        self.values: dict[relax.Var, relax.Expr] = {}
        self.planar: set[relax.Var] = set()
        self.static: dict[relax.Var, relax.Expr] = {}

    def build(self, name: str, out: DataLayout | str) -> relax.Function:
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

        made = build_function(name, [self.values[parameter] for parameter in self.function.params], body)
        return made.with_attrs(self.function.attrs) if self.function.attrs else made

    def _result(self, variable: relax.Var, out: DataLayout | str) -> relax.Expr:
        """The value in layout `out`; transposed as it is written where the operator computes in the other one."""
        value, planar = self._use(variable), variable in self.planar
        if _rank(variable) != 4 or planar == (out == "NCHW"):
            return value
        return relax.op.permute_dims(value, TO_NHWC if planar else TO_NCHW)

    def _bind(self, variable: relax.Var, value: relax.Expr) -> None:
        if isinstance(value, relax.Call):
            operands = _operands(value)
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
        """An operand as it is."""
        if isinstance(expression, relax.Tuple):
            return relax.Tuple([self._use(field) for field in expression.fields])
        if expression in self.static:
            call = self.static[expression]
            return self.builder.emit(relax.Call(call.op, [self._use(a) for a in call.args], call.attrs))
        return self.values.get(expression, expression) if isinstance(expression, relax.Var) else expression

    def _use_planar(self, expression: relax.Expr) -> relax.Expr:
        """An operand next to one in NCHW: in NCHW too, a constant by transposing it now; scalars need nothing."""
        if isinstance(expression, relax.Tuple):
            return relax.Tuple([self._use_planar(field) for field in expression.fields])
        if expression in self.planar or not isinstance(expression.ty, relax.TensorType) or _rank(expression) == 0:
            return self._use(expression)
        if not self._is_static(expression):
            raise NotRenumberable(f"it reads a tensor with {_rank(expression)} axes next to one in NCHW")
        rank = _rank(expression)

        def arrange(value: np.ndarray) -> np.ndarray:
            return value.reshape((1,) * (4 - rank) + value.shape).transpose(TO_NCHW)

        return self._rearranged(expression, arrange, lambda axis: _POSITION[axis + 4 - rank])

    def _rearranged(
        self, expression: relax.Expr, arrange: Callable[[np.ndarray], np.ndarray], moved: Callable[[int], int]
    ) -> relax.Expr:
        """A constant, or the dequantize of one, with its elements rearranged; `moved` maps the old axes to the new."""
        if isinstance(expression, GenericConst):
            return relax.const(np.ascontiguousarray(arrange(expression.value.numpy())))
        call = self.static[expression]
        if call.op.name != "relax.dequantize":
            raise NotRenumberable(f"it computes {call.op.name} of a constant")
        data, scale, zero_point = call.args
        axis = moved(int(call.attrs.axis) % _rank(data)) if _rank(scale) else 0
        made = self._rearranged(data, arrange, moved)
        return self.builder.emit(relax.op.dequantize(made, scale, zero_point, axis, call.attrs.out_dtype))

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
        """Any other operator with an operand in NCHW."""
        name, attrs = call.op.name, call.attrs
        data = call.args[0]
        planar = True
        if name in _ELEMENTWISE:
            made = relax.Call(call.op, [self._use_planar(argument) for argument in call.args], attrs)
        elif name == "relax.concat":
            made = relax.op.concat(self._use_planar(data), _axis(attrs.axis))
        elif name == "relax.split":
            parts = attrs.indices_or_sections
            parts = int(parts) if hasattr(parts, "value") else [int(part) for part in parts]
            made = relax.op.split(self._use(data), parts, _axis(attrs.axis))
        elif name == "relax.nn.pad":
            width = [int(value) for value in attrs.pad_width]
            width = [value for axis in TO_NCHW for value in width[2 * axis : 2 * axis + 2]]
            made = relax.op.nn.pad(self._use(data), width, attrs.pad_mode, attrs.pad_value)
        elif name == "relax.strided_slice":
            axes, *rest = ([int(value) for value in part.fields] for part in call.args[1:])
            made = relax.op.strided_slice(self._use(data), [_axis(axis) for axis in axes], *rest)
        elif name in _REDUCTIONS:
            made, planar = self._reduction(call)
        elif name == "relax.image.resize2d":
            size = call.args[1]
            made = relax.op.image.resize2d(
                self._use(data), size, None, "NCHW", attrs.method, attrs.coordinate_transformation_mode,
                attrs.rounding_method,
            )  # fmt: skip
        elif name in ("relax.nn.avg_pool2d", "relax.nn.max_pool2d"):
            made = self._pool(call)
        else:
            raise NotRenumberable(f"{name} has no NCHW form here")
        self._set(variable, made, planar=planar)

    def _reduction(self, call: relax.Call) -> tuple[relax.Expr, bool]:
        axes = [int(axis) % 4 for axis in call.attrs.axis]
        keep = bool(call.attrs.keepdims)
        left = [axis for axis in TO_NCHW if axis not in axes]
        if not keep and left != sorted(left):
            raise NotRenumberable("the axes that are left would change their order")
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
    """The NCHW position of a logical axis."""
    return _POSITION[int(axis) % 4]


def _operands(call: relax.Call) -> list[relax.Expr]:
    """The tensor operands of a call, those inside tuples too; sizes, bounds and shapes are none."""
    found = []
    for argument in call.args:
        for operand in argument.fields if isinstance(argument, relax.Tuple) else [argument]:
            if isinstance(operand, relax.Var | GenericConst | relax.Call):
                found.append(operand)
    return found
