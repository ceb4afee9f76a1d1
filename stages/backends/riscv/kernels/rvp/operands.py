"""Kernels of two operands: rows for operands.h, from the tensors or from tiles."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from stages.backends.kernels.eight_bit import not_eight_bit
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.structure import Structure
from stages.backends.kernels.tir.strides import Axis, Broadcast, broadcast
from stages.backends.riscv.kernels.rvp.tiles import AROUND, LAYER, OTHER_ORDER, Loop, Tiles, tiled, tiles
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView

ROWS = ("rows", "count", "step0", "step1", "row0", "row1")
REGISTER = 60.0  # instructions for a register of elements, roughly
WORTH = 0.97  # of a layer's instructions: what is written out needs scratch, and code


class Operands(Kernel):
    """An operator of two broadcast 8-bit tensors, four elements per 32-bit lane; two roundings.

    Its C is in <operator>.c. The C that expands broadcast operands is in expand.c.

    structure  its C structure: ROWS, then `fields`
    loop       counted instructions
    """

    row_alignment = 8
    estimate_error = 1.25
    roundings: ClassVar[frozenset[str]] = frozenset({"double"})
    in_place = True
    structure: ClassVar[Structure]
    loop: ClassVar[Loop]

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return not_eight_bit(view) or _why_not_rows(view, target) or self.why_not_arithmetic(view)

    @abstractmethod
    def why_not_arithmetic(self, view: LayerView) -> str:
        """Return why the kernel's results could differ from the reference, '' if they cannot."""

    @abstractmethod
    def fields(self, view: LayerView) -> dict[str, int]:
        """Return the fields of the structure, without ROWS."""

    def pack_for(self, view: LayerView, params: Any, target: Target) -> Mapping[str, Array]:
        return _structures(view, target, self.structure, self.fields(view))

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        """Build the layer as calls of `function(x0, x1, y, fields)`."""
        function = f"rvp_{view.op.op}_s8"
        structure = self.structure
        calls = plan(view, target)
        if isinstance(calls, Broadcast):
            from stages.backends.kernels.tir.broadcast import elementwise

            return elementwise(view, function, structure.shape)
        return tiled(view, calls, function, structure.shape)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        calls = plan(view, target)
        return _cost(calls, target.word_bits // 8, self.loop) if isinstance(calls, Broadcast) else calls.cost(self.loop)


def _structures(view: LayerView, target: Target, structure: Structure, fields: Mapping[str, int]) -> dict[str, Array]:
    """Return the layer's constants: `structure` with ROWS for calls and a shorter last call."""
    calls = plan(view, target)
    if isinstance(calls, Broadcast):
        rows = {"fields": _fields(calls.rows, calls.run.extent, calls.run.strides[1:])}
    else:
        elements = calls.steps * calls.inner
        rows = {"fields": _fields(calls.rows, elements, (calls.operands[0].step, calls.operands[1].step))}
        if calls.left:
            single = Axis(1, (0, 0, 0))
            rows["last"] = _fields(single, calls.left * calls.inner, (calls.last[0].step, calls.last[1].step))
    return {key: structure.of({**row, **fields}) for key, row in rows.items()}


def _fields(rows: Axis, count: int, steps: tuple[int, ...]) -> dict[str, int]:
    return dict(zip(ROWS, (rows.extent, count, *steps, *rows.strides[1:]), strict=True))


def plan(view: LayerView, target: Target) -> Broadcast | Tiles:
    """Return the calls of a layer, without scratch unless that costs more.

    Raises ValueError if the kernels cannot compute the layer.
    """
    register, untiled = target.word_bits // 8, broadcast(view)
    if _why_not_as_they_are(untiled, register):
        return tiles(view, register)
    if untiled.rows.extent == 1 and not untiled.outer:
        return untiled
    tiled_calls = tiles(view, register)
    computed = REGISTER * view.outputs[0].elements / register
    most = WORTH * (computed + _cost(untiled, register, AROUND))
    return tiled_calls if computed + tiled_calls.cost(AROUND) < most else untiled


def _why_not_rows(view: LayerView, target: Target) -> str:
    """Return why the kernels cannot process rows of registers, '' if they can."""
    try:
        plan(view, target)
    except ValueError as error:
        return str(error)
    return ""


def _why_not_as_they_are(calls: Broadcast, register: int) -> str:
    if not {*calls.run.strides[1:]} <= {0, 1}:
        return OTHER_ORDER
    around = [axis for axis in (calls.rows, *calls.outer) if axis.extent > 1]
    if around and calls.run.extent % register:
        return f"rows of {calls.run.extent} elements are not a multiple of {register}"
    stepping = [number for number in (1, 2) if calls.run.strides[number]]
    if any(axis.strides[number] % register for axis in around for number in stepping):
        return f"rows of an input do not begin at a multiple of {register}"
    return ""


def _cost(rows_plan: Broadcast, register: int, loop: Loop) -> float:
    row = loop.row + loop.register * -(-rows_plan.run.extent // register)
    return LAYER + rows_plan.calls * (loop.call + rows_plan.rows.extent * row)
