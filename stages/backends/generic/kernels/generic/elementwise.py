"""ADD, SUB, MUL, PRELU with broadcasting; tables (activations), QUANTIZE and DEQUANTIZE."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from stages.backends.generic.kernels.generic import elementwise_tir
from stages.backends.generic.kernels.generic.elementwise_tir import (
    add,
    dequantize,
    even,
    flip,
    mul,
    prelu,
    quantize,
    requantize_layer,
    table,
)
from stages.backends.generic.kernels.generic.loops import Loops8
from stages.backends.generic.kernels.generic.parameters import ADD, MUL, REQUANTIZE, epilogue
from stages.backends.kernels.eight_bit import not_eight_bit, same_bytes
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.structure import Structure
from stages.backends.kernels.tir.extremum import extremum
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.support.lazy import np


class _Elementwise(Kernel):
    """Runs of elements of the output. An input is dense along a run, or repeats one value.

    One structure of constants.
    """

    in_place = True
    constant: ClassVar[tuple[str, Structure]]
    instructions: ClassVar[float]  # for an element
    one_type: ClassVar[bool] = True  # of inputs and output

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return not_eight_bit(view, same=self.one_type)

    @abstractmethod
    def fields(self, op: Any) -> dict[str, int]:
        """Return the fields of the structure before its epilogue."""

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        (key, structure), op = self.constant, view.op
        return {key: structure.of(self.fields(op) | epilogue(op, op.rounding))}

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        return self.instructions * view.outputs[0].elements


class Add(_Elementwise):
    """Sums and differences: three requantizations per element."""

    name = "generic.add"
    row_alignment = 1
    estimate_error = 1.5
    ops: ClassVar[frozenset[str]] = frozenset({"add", "sub"})
    sources = ("add.c",)
    constant = ("add", ADD)
    instructions = 36.0

    def fields(self, op: Any) -> dict[str, int]:
        return {
            **input_fields(op),
            "left_shift": op.left_shift,
            "sign": op.sign,
            "multiplier": op.output_multiplier,
            "shift": op.output_shift,
        }

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        return add(view)


class Mul(_Elementwise):
    """MUL."""

    name = "generic.mul"
    row_alignment = 1
    estimate_error = 1.25
    ops: ClassVar[frozenset[str]] = frozenset({"mul"})
    sources = ("mul.c",)
    constant = ("mul", MUL)
    instructions = 25.0

    def fields(self, op: Any) -> dict[str, int]:
        return {**zero_points(op), "multiplier": op.output_multiplier, "shift": op.output_shift}

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        return mul(view)


PRELU = Structure.of_header("fl_prelu", __file__, "prelu.h")


class Prelu(_Elementwise):
    """Values from zero on, and products with slopes below."""

    name = "generic.prelu"
    row_alignment = 1
    estimate_error = 1.25
    ops: ClassVar[frozenset[str]] = frozenset({"prelu"})
    sources = ("prelu.c",)
    constant = ("prelu", PRELU)
    instructions = 31.0

    def fields(self, op: Any) -> dict[str, int]:
        return input_fields(op)

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        return prelu(view, PRELU.shape)


class Binary(Loops8):
    """MINIMUM, MAXIMUM, squared differences and quotients."""

    name = "generic.binary"
    row_alignment = 1
    ops: ClassVar[frozenset[str]] = frozenset({"div", "maximum", "minimum", "squared_difference"})
    in_place = True

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        lowerings = {"div": elementwise_tir.div, "squared_difference": elementwise_tir.squared_difference}
        return lowerings[view.op.op](view) if view.op.op in lowerings else extremum(view, "")

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return instructions per element: 8 (comparison), 55 (squared difference), 60 (quotient)."""
        instructions = {"div": 60.0, "squared_difference": 55.0}.get(view.op.op, 8.0)
        return instructions * view.outputs[0].elements


class EvenPairs(Loops8):
    """ADD, SUB and MUL that round halves to even."""

    name = "generic.even"
    row_alignment = 1
    ops: ClassVar[frozenset[str]] = frozenset({"even_add", "even_sub", "even_mul"})
    in_place = True
    element = 20.0

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        return even(view)


def zero_points(op: Any) -> dict[str, int]:
    """Return the zero point fields of two inputs."""
    return {f"zero_point{i}": op.zero_points[i] for i in range(2)}


def input_fields(op: Any) -> dict[str, int]:
    """Return the fields of two inputs that are both scaled."""
    scales = {f"multiplier{i}": op.multipliers[i] for i in range(2)} | {f"shift{i}": op.shifts[i] for i in range(2)}
    return zero_points(op) | scales


class Table(Kernel):
    """One table look-up per element. Input and output may each be int8 or uint8."""

    name = "generic.table"
    row_alignment = 1
    estimate_error = 1.5
    ops: ClassVar[frozenset[str]] = frozenset({"activation"})
    sources = ("table.c",)
    in_place = True

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return not_eight_bit(view, same=False)

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        """Return the table, indexed by the bits of the input: int8's entry -1 is entry 255."""
        table = view.constant("table")
        return {"table": np.roll(table, 128) if view.inputs[0].dtype == "int8" else table}

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        return table(view)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return 4.5 instructions per element."""
        return 4.5 * view.outputs[0].elements


class Requantize(_Elementwise):
    """QUANTIZE between 8-bit types.

    If only the top bit of each byte changes, words are converted at a time.
    """

    name = "generic.requantize"
    row_alignment = 1
    estimate_error = 1.25
    ops: ClassVar[frozenset[str]] = frozenset({"requantize"})
    sources = ("requantize_elements.c", "top_bits.c")
    headers: ClassVar[tuple[str, ...]] = ("requantize_elements.h", "top_bits.h")
    constant = ("requantize", REQUANTIZE)
    instructions = 21.0
    one_type = False

    def fields(self, op: Any) -> dict[str, int]:
        return {"input_zero_point": op.input_zero_point, "multiplier": op.multiplier, "shift": op.shift}

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        return {} if is_flip(view) else super().pack(view, params)

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        return (flip if is_flip(view) else requantize_layer)(view)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return 15 instructions per four words if only top bits change."""
        return 15 * view.outputs[0].elements / 16 if is_flip(view) else super().cost(view, params, target)


def is_flip(view: LayerView) -> bool:
    """Return whether a QUANTIZE only converts between int8 and uint8, without rescaling."""
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    exact = (op.multiplier, op.shift) == (1 << 30, 1)
    moved = {("int8", "uint8"): 128, ("uint8", "int8"): -128}.get((x.dtype, y.dtype))
    lowest = {"int8": -128, "uint8": 0}.get(y.dtype, 0)
    return (
        exact
        and moved == op.output_zero_point - op.input_zero_point
        and (op.act_min, op.act_max) == (lowest, lowest + 255)
        and same_bytes(x, y)
    )


class Quantize(Kernel):
    """float32 to an 8-bit type, at a model's edge. Halves round away from zero."""

    name = "generic.quantize"
    row_alignment = 1
    halves: ClassVar[str] = "away"
    ops: ClassVar[frozenset[str]] = frozenset({"quantize"})
    sources = ("quantize.c",)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        x, y = view.inputs[0], view.outputs[0]
        if not (x.dtype == "float32" and y.dtype in ("int8", "uint8")):
            return f"{x.dtype} to {y.dtype}; this kernel is for float32 to 8 bits"
        goes = {"away": "halves go away from zero", "even": "halves go to even"}[view.op.halves]
        return "" if view.op.halves == self.halves else goes

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        return quantize(view)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return 25 instructions per element with an FPU, 28 without.

        Counted: 34 on Cortex-M4, 36 on M55.
        """
        return (25.0 if target.fpu else 28.0) * view.outputs[0].elements


class QuantizeEven(Quantize):
    """float32 to an 8-bit type, halves to even as in ONNX Runtime."""

    name = "generic.quantize_even"
    estimate_error = 1.25
    sources = ("quantize_even.c",)
    headers: ClassVar[tuple[str, ...]] = ("quantize_even.h",)
    halves: ClassVar[str] = "even"


class Dequantize(Kernel):
    """An 8-bit type to float32, at a model's edge."""

    name = "generic.dequantize"
    row_alignment = 1
    estimate_error = 1.25
    ops: ClassVar[frozenset[str]] = frozenset({"dequantize"})
    sources = ("dequantize.c",)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        x, y = view.inputs[0], view.outputs[0]
        types = x.dtype in ("int8", "uint8") and y.dtype == "float32"
        return "" if types else f"{x.dtype} to {y.dtype}; this kernel is for 8 bits to float32"

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        return dequantize(view)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return 8 instructions per element with an FPU, 34 without."""
        return (8.0 if target.fpu else 34.0) * view.outputs[0].elements


KERNELS: tuple[type[Kernel], ...] = (
    Add,
    Binary,
    Dequantize,
    EvenPairs,
    Mul,
    Prelu,
    Quantize,
    QuantizeEven,
    Requantize,
    Table,
)
