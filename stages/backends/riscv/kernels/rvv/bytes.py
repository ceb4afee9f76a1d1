"""Functions of one byte by table; MAXIMUM and MINIMUM."""

from typing import Any, ClassVar

from stages.backends.kernels.byte_table import ByteTable
from stages.backends.kernels.eight_bit import SUFFIX, not_eight_bit
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.tir.extremum import extremum
from stages.backends.kernels.tir.strides import broadcast
from stages.backends.riscv.kernels.rvv.turns import turns
from stages.backends.targets.spec import Target
from stages.ir.graph import LayerView


class Table(ByteTable):
    """Table look-ups by indexed loads."""

    name = "rvv.table"
    row_alignment = 1
    estimate_error = 1.25
    sources = ("bytes.S",)
    function = "rvv_table"

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return the instructions: 8 per iteration."""
        return 8.0 * turns(target, view.outputs[0].elements) + 12


class Extremum(Kernel):
    """MAXIMUM and MINIMUM."""

    name = "rvv.extremum"
    row_alignment = 1
    estimate_error = 1.25
    ops: ClassVar[frozenset[str]] = frozenset({"maximum", "minimum"})
    sources = ("bytes.S",)
    in_place = True

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return not_eight_bit(view)

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        return extremum(view, f"rvv_{view.op.op}_{SUFFIX[view.inputs[0].dtype]}")

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return the instructions: 10 per iteration, 25 per call."""
        axes = broadcast(view)
        run = axes.run.extent
        turn = 10 if axes.run.strides[1:] == (1, 1) else 12
        return axes.calls * axes.rows.extent * (turns(target, run) * turn + 25.0)
