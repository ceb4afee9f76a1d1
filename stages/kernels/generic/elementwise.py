"""ADD, SUB, MUL, PRELU with broadcasting; tables (activations), QUANTIZE and DEQUANTIZE."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from stages.kernels.eight_bit import not_eight_bit
from stages.kernels.generic.parameters import ADD, EPILOGUE, MUL, REQUANTIZE, epilogue
from stages.kernels.kernel import Kernel, Lowering
from stages.kernels.structure import Structure

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np

    from stages.graph import LayerView
    from stages.targets.spec import Target


class Add(Kernel):
    """Runs of elements of the output; an input steps along, or repeats one value."""

    name = "generic.add"
    ops: ClassVar[frozenset[str]] = frozenset({"add", "sub"})
    sources = ("add.c",)
    headers: ClassVar[tuple[str, ...]] = ("add.h",)
    in_place = True

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return not_eight_bit(view)

    def pack(self, view: LayerView, params: Any) -> Mapping[str, np.ndarray]:
        op = view.op
        fields = {
            "zero_point0": op.zero_points[0],
            "zero_point1": op.zero_points[1],
            "left_shift": op.left_shift,
            "multiplier0": op.multipliers[0],
            "shift0": op.shifts[0],
            "multiplier1": op.multipliers[1],
            "shift1": op.shifts[1],
            "sign": 1 if op.op == "add" else -1,
            "multiplier": op.output_multiplier,
            "shift": op.output_shift,
        }
        return {"add": ADD.of(fields | epilogue(op, op.rounding))}

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.kernels.generic.elementwise_tir import add

        return add(view)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """55 instructions for an element: three requantizations."""
        return 55.0 * view.outputs[0].elements


class Mul(Kernel):
    """Runs of elements of the output; an input steps along, or repeats one value."""

    name = "generic.mul"
    ops: ClassVar[frozenset[str]] = frozenset({"mul"})
    sources = ("mul.c",)
    headers: ClassVar[tuple[str, ...]] = ("mul.h",)
    in_place = True

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return not_eight_bit(view)

    def pack(self, view: LayerView, params: Any) -> Mapping[str, np.ndarray]:
        op = view.op
        fields = {
            "zero_point0": op.zero_points[0],
            "zero_point1": op.zero_points[1],
            "multiplier": op.output_multiplier,
            "shift": op.output_shift,
        }
        return {"mul": MUL.of(fields | epilogue(op, op.rounding))}

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.kernels.generic.elementwise_tir import mul

        return mul(view)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """27 instructions for an element."""
        return 27.0 * view.outputs[0].elements


PRELU = Structure(
    "fl_prelu", ("zero_point0", "zero_point1", "multiplier0", "shift0", "multiplier1", "shift1", *EPILOGUE)
)


class Prelu(Kernel):
    """Runs of elements of the output; an input steps along, or repeats one value."""

    name = "generic.prelu"
    ops: ClassVar[frozenset[str]] = frozenset({"prelu"})
    sources = ("prelu.c",)
    headers: ClassVar[tuple[str, ...]] = ("prelu.h",)
    in_place = True

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return not_eight_bit(view)

    def pack(self, view: LayerView, params: Any) -> Mapping[str, np.ndarray]:
        op = view.op
        fields = {
            "zero_point0": op.zero_points[0],
            "zero_point1": op.zero_points[1],
            "multiplier0": op.multipliers[0],
            "shift0": op.shifts[0],
            "multiplier1": op.multipliers[1],
            "shift1": op.shifts[1],
        }
        return {"prelu": PRELU.of(fields | epilogue(op, op.rounding))}

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.kernels.generic.elementwise_tir import prelu

        return prelu(view, PRELU.shape)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """31 instructions for an element."""
        return 31.0 * view.outputs[0].elements


class Table(Kernel):
    """One table look-up for each element; the input and the output may be of either 8-bit type."""

    name = "generic.table"
    ops: ClassVar[frozenset[str]] = frozenset({"activation"})
    sources = ()
    in_place = True

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return not_eight_bit(view, same=False)

    def pack(self, view: LayerView, params: Any) -> Mapping[str, np.ndarray]:
        """The table by the bits of the input: int8's entry -1 is entry 255."""
        import numpy as np

        table = view.constant("table")
        return {"table": np.roll(table, 128) if view.inputs[0].dtype == "int8" else table}

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.kernels.generic.elementwise_tir import table

        return table(view)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """7 instructions for an element."""
        return 7.0 * view.outputs[0].elements


class Requantize(Kernel):
    """QUANTIZE between 8-bit types."""

    name = "generic.requantize"
    ops: ClassVar[frozenset[str]] = frozenset({"requantize"})
    sources = ("requantize_elements.c",)
    headers: ClassVar[tuple[str, ...]] = ("requantize_elements.h",)
    in_place = True

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return not_eight_bit(view, same=False)

    def pack(self, view: LayerView, params: Any) -> Mapping[str, np.ndarray]:
        op = view.op
        fields = {"input_zero_point": op.input_zero_point, "multiplier": op.multiplier, "shift": op.shift}
        return {"requantize": REQUANTIZE.of(fields | epilogue(op, op.rounding))}

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.kernels.generic.elementwise_tir import requantize_layer

        return requantize_layer(view)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """25 instructions for an element."""
        return 25.0 * view.outputs[0].elements


class Quantize(Kernel):
    """float32 to an 8-bit type, at a model's edge."""

    name = "generic.quantize"
    ops: ClassVar[frozenset[str]] = frozenset({"quantize"})
    sources = ("quantize.c",)
    headers: ClassVar[tuple[str, ...]] = ("quantize.h",)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        x, y = view.inputs[0], view.outputs[0]
        types = x.dtype == "float32" and y.dtype in ("int8", "uint8")
        return "" if types else f"{x.dtype} to {y.dtype}; this kernel is for float32 to 8 bits"

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.kernels.generic.elementwise_tir import quantize

        return quantize(view)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """20 instructions for an element with an FPU, 300 without."""
        return (20.0 if target.fpu else 300.0) * view.outputs[0].elements


class Dequantize(Kernel):
    """An 8-bit type to float32, at a model's edge."""

    name = "generic.dequantize"
    ops: ClassVar[frozenset[str]] = frozenset({"dequantize"})
    sources = ("dequantize.c",)
    headers: ClassVar[tuple[str, ...]] = ("dequantize.h",)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        x, y = view.inputs[0], view.outputs[0]
        types = x.dtype in ("int8", "uint8") and y.dtype == "float32"
        return "" if types else f"{x.dtype} to {y.dtype}; this kernel is for 8 bits to float32"

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.kernels.generic.elementwise_tir import dequantize

        return dequantize(view)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """8 instructions for an element with an FPU, 120 without."""
        return (8.0 if target.fpu else 120.0) * view.outputs[0].elements


KERNELS: tuple[type[Kernel], ...] = (
    Add,
    Dequantize,
    Mul,
    Prelu,
    Quantize,
    Requantize,
    Table,
)
