"""PRELU with broadcast slopes: code that the kernels of Cortex-M share."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from stages.backends.kernels.eight_bit import SUFFIX, Range, not_eight_bit
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.structure import Structure
from stages.backends.kernels.tir.block import Operand
from stages.backends.kernels.tir.elementwise import elementwise_layer
from stages.backends.kernels.tir.fixed_point import output
from stages.backends.kernels.tir.rectified import rectified
from stages.backends.kernels.tir.strides import broadcast, broadcast_strides, logical_strides, walk
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.support.lazy import np


class TablePrelu(Kernel):
    """PRELU: a table for values from zero on, a product with the slope below.

    Two multiplications requantize the products.

    function   name of the C function without the type
    structure  C structure: the inputs' zero points, two factors, the output's zero point and bounds
    """

    ops: ClassVar[frozenset[str]] = frozenset({"prelu"})
    roundings: ClassVar[frozenset[str]] = frozenset({"double"})
    headers: ClassVar[tuple[str, ...]] = ("prelu.h",)
    in_place = True
    function: ClassVar[str]
    structure: ClassVar[Structure]
    elements: ClassVar[int]  # computed at a time
    instructions: ClassVar[float]  # for as many
    left: ClassVar[float] = 0.0  # besides, for those behind a run's last ones
    call: ClassVar[float]  # for a run of elements that meet one slope, or as many slopes

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        if bad := not_eight_bit(view) or why_not_steps(view):
            return bad
        try:
            self.factors(view, _products(view))
        except ValueError as error:
            return str(error)
        return ""

    @abstractmethod
    def factors(self, view: LayerView, products: Range) -> tuple[int, int]:
        """Return the two factors of products. Raise ValueError if there are none."""

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        op, (x, y) = view.op, (view.inputs[0], view.outputs[0])
        known = (*op.zero_points, *self.factors(view, _products(view)), op.output_zero_point, op.act_min, op.act_max)
        values = np.arange(256) + op.zero_points[0]
        inside = np.minimum(values, np.iinfo(x.dtype).max)  # no element is further above zero
        table = op.compute(view, inside, np.full(256, op.zero_points[1])).astype(y.dtype)
        fields = dict(zip(self.structure.fields, known, strict=True))
        return {"prelu": self.structure.of(fields), "table": np.ascontiguousarray(table)}

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        """Return the layer as `function(x0, x1, y, count, step0, step1, constants...)`.

        A step of 0 repeats one value.
        """
        constants = {
            "prelu": Operand("prelu", self.structure.shape, "int32"),
            "table": Operand("table", (256,), view.outputs[0].dtype),
        }
        function = f"{self.function}_{SUFFIX[view.inputs[0].dtype]}"

        def value(x: Sequence[Any], b: Any) -> Any:
            return output(view, rectified(view.op, x))

        return elementwise_layer(view, function, value, dict(constants))

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return the counted instructions. Each run is a call."""
        broadcasting = broadcast(view)
        blocks, rest = divmod(broadcasting.run.extent, self.elements)
        run = self.call + blocks * self.instructions + (self.instructions + self.left if rest else 0)
        return broadcasting.calls * broadcasting.rows.extent * run


def _products(view: LayerView) -> Range:
    """Return the range of the products of negative values and slopes."""
    op, bounds = view.op, np.iinfo(view.inputs[0].dtype)
    lowest = min(int(bounds.min) - op.zero_points[0], 0)
    ends = [0, *(lowest * (int(end) - op.zero_points[1]) for end in (bounds.min, bounds.max))]
    return Range(np.array([min(ends)]), np.array([max(ends)]))


def why_not_steps(view: LayerView) -> str:
    """Return why an input is neither dense nor constant along an output run, '' if all are."""
    y = view.outputs[0]
    run = walk(y.shape, logical_strides(y), *(broadcast_strides(x, y.shape) for x in view.inputs))[-1]
    return "" if set(run.strides[1:]) <= {0, 1} else f"steps of {max(run.strides[1:])} elements"
