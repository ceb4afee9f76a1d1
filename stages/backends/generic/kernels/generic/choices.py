"""Comparisons, logic, selections and casts, and operators along an axis: any element type."""

from typing import Any, ClassVar

from stages.backends.generic.kernels.generic.loops import Loops
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.targets.spec import Target
from stages.ir.graph import LayerView
from stages.ir.operators.choices import is_scaled


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
        from stages.backends.generic.kernels.generic.choices_tir import compare

        return compare(view)

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
        from stages.backends.generic.kernels.generic.choices_tir import logic

        return logic(view)


class IntegerDivision(_Plain):
    """Quotients, remainders and negatives of integers."""

    name = "generic.whole"
    ops: ClassVar[frozenset[str]] = frozenset({"floor_div", "floor_mod", "negative"})
    element = 14.0

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.backends.generic.kernels.generic.choices_tir import integer_division

        return integer_division(view)


class Int32(_Plain):
    """Sums, products, quotients and extremes of int32."""

    name = "generic.int32"
    ops: ClassVar[frozenset[str]] = frozenset(
        {"int32_add", "int32_sub", "int32_mul", "int32_div", "int32_maximum", "int32_minimum", "int32_steps"}
    )
    element = 7.0
    in_place = True

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.backends.generic.kernels.generic.choices_tir import int32_arithmetic

        return int32_arithmetic(view)


class Select(_Plain):
    """Choose each element from one of two tensors."""

    name = "generic.select"
    ops: ClassVar[frozenset[str]] = frozenset({"select"})
    element = 9.0

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.backends.generic.kernels.generic.choices_tir import select_layer

        return select_layer(view)


class Cast(_Plain):
    """Convert from any type to any."""

    name = "generic.cast"
    ops: ClassVar[frozenset[str]] = frozenset({"cast"})
    element = 6.0

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.backends.generic.kernels.generic.choices_tir import cast

        return cast(view)


class ArgExtreme(_Plain):
    """Index of the first largest or smallest element."""

    name = "generic.arg_extreme"
    ops: ClassVar[frozenset[str]] = frozenset({"arg_max", "arg_min"})
    element = 7.0

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.backends.generic.kernels.generic.choices_tir import arg_extreme

        return arg_extreme(view)


class Cumsum(_Plain):
    """Running sums."""

    name = "generic.cumsum"
    ops: ClassVar[frozenset[str]] = frozenset({"cumsum"})
    element = 7.0

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.backends.generic.kernels.generic.choices_tir import cumsum

        return cumsum(view)


KERNELS: tuple[type[Kernel], ...] = (ArgExtreme, Cast, Compare, Cumsum, Int32, Logic, Select, IntegerDivision)
