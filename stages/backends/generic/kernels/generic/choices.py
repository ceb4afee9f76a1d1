"""Comparisons, logic, selections and casts, and operators along an axis: any element type."""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, ClassVar

from stages.backends.generic.kernels.generic.loops import Loops
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.tir.block import Block, Function, Operand, accumulator, loop, store
from stages.backends.kernels.tir.fixed_point import requantize, select, widen
from stages.backends.kernels.tir.strides import broadcast_strides, logical_strides, walk
from stages.backends.targets.spec import Target
from stages.ir.graph import LayerView
from stages.ir.operators.choices import LEFT_SHIFT, is_scaled
from stages.support.lazy import T, tirx


class _Plain(Loops):
    """`element` is instructions per element of the largest tensor."""

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        return self.element * max(tensor.elements for tensor in (*view.inputs, *view.outputs))


class Compare(_Plain):
    """Comparison with broadcasting.

    Operands of 8 bits, and some of 16, are scaled as they are compared.
    """

    name = "generic.compare"
    ops: ClassVar[frozenset[str]] = frozenset({"equal", "not_equal", "greater", "greater_equal", "less", "less_equal"})
    element = 8.0

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        """Lower a comparison of two tensors, whose output is bool."""
        op, scaled_first = view.op, is_scaled(view.op.op, view.inputs[0].dtype)

        def operand(x: Any, number: int) -> Any:
            if view.inputs[number].dtype == "bool":
                return widen(x)
            if not scaled_first:
                return x
            scaled = (widen(x) - op.zero_points[number]) * (1 << LEFT_SHIFT)
            return requantize(scaled, op.multipliers[number], op.shifts[number], "double")

        return _mapped(view, lambda x: _COMPARED[op.op](operand(x[0], 0), operand(x[1], 1)))

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return 42 instructions more per element if operands are scaled."""
        scaled = is_scaled(view.op.op, view.inputs[0].dtype)
        return super().cost(view, params, target) + (42.0 * view.outputs[0].elements if scaled else 0)


class Logic(_Plain):
    """Logical operators on booleans."""

    name = "generic.logic"
    ops: ClassVar[frozenset[str]] = frozenset({"logical_and", "logical_or", "logical_not"})
    element = 6.0

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        """Lower an operator on bool."""

        def value(x: Sequence[Any]) -> Any:
            return getattr(tirx, _LOGIC[view.op.op])(*x)

        return _mapped(view, value)


class IntegerDivision(_Plain):
    """Quotients, remainders and negatives of integers."""

    name = "generic.whole"
    ops: ClassVar[frozenset[str]] = frozenset({"floor_div", "floor_mod", "negative"})
    element = 14.0

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        """Return integer arithmetic in int32, which holds all 16-bit quotients.

        C division truncates towards zero.
        """
        op, dtype = view.op.op, view.outputs[0].dtype

        def value(x: Sequence[Any]) -> Any:
            a = widen(x[0])
            if op == "negative":
                return T.Cast(dtype, -a)
            divisor = widen(x[1])
            b = tirx.Select(divisor == 0, T.int32(1), divisor)  # evaluated on both sides, so never 0
            quotient = tirx.truncdiv(a, b)
            rest = a - quotient * b
            below = tirx.And(rest != 0, (rest < 0) != (b < 0))
            result = quotient - T.Cast("int32", below) if op == "floor_div" else rest + b * T.Cast("int32", below)
            return T.Cast(dtype, tirx.Select(divisor == 0, T.int32(0), result))

        return _mapped(view, value)


class Int32(_Plain):
    """Sums, products, quotients and extremes of int32."""

    name = "generic.int32"
    ops: ClassVar[frozenset[str]] = frozenset(
        {"int32_add", "int32_sub", "int32_mul", "int32_div", "int32_maximum", "int32_minimum", "int32_steps"}
    )
    element = 7.0
    in_place = True

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        """Return arithmetic of int32 modulo 2^32."""
        op = view.op
        if op.op == "int32_steps":
            first = [lambda x: T.Cast("int32", x)]
            return _mapped(view, lambda x: T.Cast(view.outputs[0].dtype, x[0]), [*first, *map(_step, op.steps)])
        return _mapped(view, lambda x: _int32(op.named, x[0], x[1] if op.value is None else op.value))


class Select(_Plain):
    """Choose each element from one of two tensors."""

    name = "generic.select"
    ops: ClassVar[frozenset[str]] = frozenset({"select"})
    element = 9.0

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        """Lower SELECT: the second input where the first is true, else the third."""
        return _mapped(view, lambda x: select(x[0], x[1], x[2]))


class Cast(_Plain):
    """Convert from any type to any."""

    name = "generic.cast"
    ops: ClassVar[frozenset[str]] = frozenset({"cast"})
    element = 6.0

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        """Return a conversion; of a float only if it fits the type, as C leaves the rest undefined."""
        source, dtype = view.inputs[0].dtype, view.outputs[0].dtype

        def value(x: Sequence[Any]) -> Any:
            if dtype == "bool":
                return x[0] if source == "bool" else x[0] != tirx.const(0, source)
            if source != "float32" or dtype == "float32":
                return T.Cast(dtype, x[0])
            low, high = tirx.min_value(dtype), tirx.max_value(dtype)
            converted = select(x[0] > T.Cast("float32", low), T.Cast(dtype, x[0]), low)
            return select(x[0] < T.Cast("float32", high), converted, high)

        return _mapped(view, value)


class ArgExtreme(_Plain):
    """Index of the first largest or smallest element."""

    name = "generic.arg_extreme"
    ops: ClassVar[frozenset[str]] = frozenset({"arg_max", "arg_min"})
    element = 7.0

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        """Return the running best value and its index for each position outside of the axis."""
        x, y, axis = view.inputs[0], view.outputs[0], view.op.axis
        into, out_of = logical_strides(y), logical_strides(x)
        beside = [n for n in range(len(x.shape)) if n != axis]
        around = walk([x.shape[n] for n in beside], [out_of[n] for n in beside], into)
        better = _COMPARED["greater" if view.op.is_max else "less"]

        def meaning(b: Any) -> None:
            with loop(*((f"i{depth}", entry.extent) for depth, entry in enumerate(around))) as variables:
                at = variables if isinstance(variables, tuple) else (variables,)
                first = _place(at, [entry.strides[0] for entry in around])
                store(b.best, b.x[first], 0)
                store(b.where, T.int32(0), 0)
                with loop(("k", x.shape[axis])) as k:
                    element = b.x[first + k * out_of[axis]]
                    is_better = better(_ordered(element, x.dtype), _ordered(b.best[0], x.dtype))
                    store(b.where, select(is_better, k, b.where[0]), 0)
                    store(b.best, select(is_better, element, b.best[0]), 0)
                store(b.y, T.Cast(y.dtype, b.where[0]), _place(at, [entry.strides[1] for entry in around]))

        operands = (
            Operand("x", (prod(x.physical_shape),), x.dtype),
            Operand("best", (1,), x.dtype, "rw"),
            Operand("where", (1,), "int32", "rw"),
            Operand("y", (prod(y.physical_shape),), y.dtype, "w"),
        )
        with Function(view.layer.kind) as f:
            placed = {
                "x": f.input(0, (prod(x.physical_shape),), x.dtype),
                "y": f.output(0, (prod(y.physical_shape),), y.dtype),
                "best": f.scratch("best", (1,), x.dtype),
                "where": f.scratch("where", (1,), "int32"),
            }
            f.place(Block("arg_extreme", operands, meaning), **placed)
        return f.lowering()


class Cumsum(_Plain):
    """Running sums."""

    name = "generic.cumsum"
    ops: ClassVar[frozenset[str]] = frozenset({"cumsum"})
    element = 7.0

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        """Return running sums. Integers are added as unsigned ones, which wrap."""
        op, x, y = view.op, view.inputs[0], view.outputs[0]
        into, out_of = logical_strides(y), logical_strides(x)
        beside = [n for n in range(len(x.shape)) if n != op.axis]
        around = walk([x.shape[n] for n in beside], [out_of[n] for n in beside], [into[n] for n in beside])
        dtype, count = _UNSIGNED.get(x.dtype, x.dtype), x.shape[op.axis]

        def meaning(b: Any) -> None:
            with loop(*((f"i{depth}", entry.extent) for depth, entry in enumerate(around))) as variables:
                at = variables if isinstance(variables, tuple) else (variables,)
                store(b.total, tirx.const(0, dtype), 0)
                with loop(("k", count)) as k:
                    along = count - 1 - k if op.reverse else k
                    source = _place(at, [entry.strides[0] for entry in around]) + along * out_of[op.axis]
                    place = _place(at, [entry.strides[1] for entry in around]) + along * into[op.axis]
                    if op.exclusive:
                        store(b.y, T.Cast(y.dtype, b.total[0]), place)
                    store(b.total, b.total[0] + T.Cast(dtype, b.x[source]), 0)
                    if not op.exclusive:
                        store(b.y, T.Cast(y.dtype, b.total[0]), place)

        operands = (
            Operand("x", (prod(x.physical_shape),), x.dtype),
            Operand("total", (1,), dtype, "rw"),
            Operand("y", (prod(y.physical_shape),), y.dtype, "w"),
        )
        with Function(view.layer.kind) as f:
            placed = {
                "x": f.input(0, (prod(x.physical_shape),), x.dtype),
                "y": f.output(0, (prod(y.physical_shape),), y.dtype),
                "total": f.scratch("total", (1,), dtype),
            }
            f.place(Block("cumsum", operands, meaning), **placed)
        return f.lowering()


KERNELS: tuple[type[Kernel], ...] = (ArgExtreme, Cast, Compare, Cumsum, Int32, Logic, Select, IntegerDivision)


_UNSIGNED = {"int32": "uint32", "int64": "uint64"}
_COMPARED: dict[str, Callable[[Any, Any], Any]] = {
    "equal": lambda a, b: a == b,
    "not_equal": lambda a, b: a != b,
    "greater": lambda a, b: a > b,
    "greater_equal": lambda a, b: a >= b,
    "less": lambda a, b: a < b,
    "less_equal": lambda a, b: a <= b,
}
_LOGIC = {"logical_not": "Not", "logical_and": "And", "logical_or": "Or"}  # classes of tirx


def _step(step: tuple[str, int]) -> Callable[[Any], Any]:
    return lambda x: _int32(step[0], x, step[1])


def _int32(name: str, a: Any, operand: Any) -> Any:
    """Return one operation.

    Sums and products are of unsigned numbers: C leaves signed overflows undefined.
    """
    b = T.int32(operand) if isinstance(operand, int) else operand
    if name in ("maximum", "minimum"):
        return (T.max if name == "maximum" else T.min)(a, b)
    if name == "div":
        if isinstance(operand, int) and operand not in (0, -1):
            return tirx.truncdiv(a, b)
        is_special = tirx.And(b >= -1, b <= 0)  # neither 0 nor -1 divides: the least integer has no negative
        negative = T.Cast("int32", tirx.const(0, "uint32") - T.Cast("uint32", a))
        quotient = tirx.truncdiv(a, tirx.Select(is_special, T.int32(1), b))
        return tirx.Select(is_special, tirx.Select(b == 0, T.int32(0), negative), quotient)
    first = T.Cast("uint32", a)
    second = tirx.const(operand % (1 << 32), "uint32") if isinstance(operand, int) else T.Cast("uint32", b)
    results = {"add": first + second, "sub": first - second, "mul": first * second}
    return T.Cast("int32", results[name])


def _mapped(
    view: LayerView, value: Callable[[Sequence[Any]], Any], steps: Sequence[Callable[[Any], Any]] = ()
) -> Lowering:
    """Return y[i] = value(elements) over the broadcast inputs' elements.

    steps  of one element, before `value`. Each result is in an int32 cell, so that TVM does not simplify across them:
           it refuses unsigned numbers of negative constants
    """
    out = view.outputs[0]
    axes = walk(out.shape, logical_strides(out), *(broadcast_strides(x, out.shape) for x in view.inputs))
    names = [f"x{number}" for number in range(len(view.inputs))]

    def meaning(b: Any) -> None:
        with loop(*((f"i{depth}", axis.extent) for depth, axis in enumerate(axes))) as variables:
            at = variables if isinstance(variables, tuple) else (variables,)
            places = [_place(at, [axis.strides[buffer] for axis in axes]) for buffer in range(len(names) + 1)]
            elements = [getattr(b, name)[place] for name, place in zip(names, places[1:], strict=True)]
            for number, step in enumerate(steps):
                store(b.acc, step(b.acc[0] if number else elements[0]), 0)
            store(b.y, value([b.acc[0]] if steps else elements), places[0])

    operands = (
        *(Operand(n, (prod(x.physical_shape),), x.dtype) for n, x in zip(names, view.inputs, strict=True)),
        Operand("y", (prod(out.physical_shape),), out.dtype, "w"),
        *([accumulator()] if steps else []),
    )
    with Function(view.layer.kind) as f:
        placed = {
            n: f.input(i, (prod(view.inputs[i].physical_shape),), view.inputs[i].dtype) for i, n in enumerate(names)
        }
        placed["y"] = f.output(0, (prod(out.physical_shape),), out.dtype)
        placed |= {"acc": f.scratch("acc", (1,), "int32")} if steps else {}
        f.place(Block("elements", operands, meaning), **placed)
    return f.lowering()


def _ordered(value: Any, dtype: str) -> Any:
    return widen(value) if dtype == "bool" else value


def _place(variables: Sequence[Any], strides: Sequence[int]) -> Any:
    return sum((v * stride for v, stride in zip(variables, strides, strict=True)), start=0)
