"""MEAN with neighbouring results, such as over the pixels of an image."""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING, Any, ClassVar

from stages.backends.kernels.eight_bit import SUFFIX, not_eight_bit
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.structure import Structure
from stages.backends.kernels.tir.strides import reduced_axes, two_axes
from stages.backends.riscv.kernels.rvp.base import clip_word

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np

    from stages.backends.targets.spec import Target
    from stages.ir.graph import LayerView

MEAN = Structure("rvp_mean", ("rows", "row_step", "columns", "column_step", "offset", "multiplier", "rounder", "clip"))

MOST_SUMS = 4096  # in scratch, 16 KB


class Mean(Kernel):
    """Mean of two registers of channels at a time.

    Bytes of two pixels are combined and added by a product. Pixels that are not whole registers are grouped until they
    are.
    """

    name = "rvp.mean_s8"
    estimate_error = 1.25
    ops: ClassVar[frozenset[str]] = frozenset({"mean"})
    roundings: ClassVar[frozenset[str]] = frozenset({"double"})
    sources = ("mean.c", "mean_groups.c")
    headers: ClassVar[tuple[str, ...]] = ("mean.h",)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return not_eight_bit(view) or _why_not_axes(view, target.word_bits // 8) or _why_not_arithmetic(view)

    def pack(self, view: LayerView, params: Any) -> Mapping[str, np.ndarray]:
        op, (rows, columns) = view.op, two_axes(reduced_axes(view)[1])
        fields = {
            "rows": rows.extent,
            "row_step": rows.strides[0],
            "columns": columns.extent,
            "column_step": columns.strides[0],
            "offset": op.input_zero_point * op.count,
            "multiplier": op.multiplier,
            "rounder": 1 << (31 + op.shift),
            "clip": clip_word(view),
        }
        return {"fields": MEAN.of(fields)}

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.backends.kernels.tir.means import means

        (kept, summed), form = reduced_axes(view), _form(view, target.word_bits // 8)
        function = f"rvp_mean_{form}{SUFFIX[view.inputs[0].dtype]}"
        sums = _sums(view, target.word_bits // 8) if form == "groups_" else 0
        return means(view, kept, two_axes(summed), function, MEAN.shape, sums)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return the instructions: 5 per input register, 50 per output register.

        For four bytes of two pixels: 8 and 115.
        """
        register, form = target.word_bits // 8, _form(view, target.word_bits // 8)
        run, outputs = reduced_axes(view)[0][-1].extent, view.outputs[0].elements
        if form == "groups_":
            return _cost_of_groups(view, register)
        if form == "quads_":
            return (8 * view.inputs[0].elements + 115 * outputs) / register + 150 * outputs / run
        return (5 * view.inputs[0].elements + 50 * outputs) / register + 80


def _form(view: LayerView, register: int) -> str:
    """Return how a run of means is computed: in registers, half registers or pixel groups."""
    kept, summed = reduced_axes(view)
    steps = [kept[-1].extent, *(axis.strides[-1] for axis in (*kept[:-1], *summed))]
    if all(step % register == 0 for step in steps):
        return ""
    return "quads_" if all(step % 4 == 0 for step in steps) else "groups_"


def _group(view: LayerView) -> int:
    """Return the number of pixels that make whole units of four bytes."""
    return 4 // gcd(reduced_axes(view)[0][-1].extent, 4)


def _sums(view: LayerView, register: int) -> int:
    """Sums in scratch: one per byte of a group and per register of a pixel."""
    run = reduced_axes(view)[0][-1].extent
    return max(run * _group(view), -(-run // register) * register)


def _cost_of_groups(view: LayerView, register: int) -> float:
    """Return the instructions of pixel groups: 8 per input register, 55 per row (RV32: 4.75, 15).

    A pixel outside a group takes 5 per byte, and 8 if it is before or behind groups. The sums of a channel take 3.5
    each, a register of results 50.
    """
    kept, summed = reduced_axes(view)
    run, (rows, columns), group = kept[-1].extent, two_axes(summed), _group(view)
    starts = {axis.strides[-1] * n % 4 for axis in (*kept[:-1], rows) for n in range(min(axis.extent, 4))}
    before = (group - 1) / 2 if len(starts) > 1 else 0
    groups = (columns.extent - before) // group
    left = columns.extent - groups * group
    row_cost = 8 * groups + 55 if register == 8 else 4.75 * groups + 15
    row = run * group / register * row_cost + run * (5 * left + 8 * bool(left))
    registers = -(-run // register)
    return view.outputs[0].elements / run * (rows.extent * row + 3.5 * run * group + 50 * registers + 170)


def _why_not_axes(view: LayerView, register: int) -> str:
    kept, summed = reduced_axes(view)
    *around, run = kept
    if len(summed) > 2:
        return f"the summed axes are {len(summed)} runs in memory; the limit is 2"
    if run.strides != (1, 1):
        return "the means are not neighbours in memory"
    if _form(view, register) != "groups_":
        return ""
    sums = _sums(view, register)
    if sums > MOST_SUMS:
        return f"a pixel group needs {sums} sums; the limit is {MOST_SUMS}"
    columns = summed[-1]
    if columns.strides[0] != run.extent or any(axis.strides[-1] % run.extent for axis in (*around, *summed)):
        return "the summed elements are not neighbours in memory"
    if columns.extent < _group(view):
        return f"rows of {columns.extent} pixels are shorter than a unit of four bytes"
    return ""


def _why_not_arithmetic(view: LayerView) -> str:
    """Return why the kernel's means could differ from the reference, '' if they cannot."""
    op = view.op
    if not -31 <= op.shift <= -1:
        return f"a shift of {op.shift} is not supported"
    largest = 255 * op.count
    if largest >= 1 << 31:
        return f"the sum of {op.count} elements does not fit 32 bits"
    if largest * op.multiplier >> (31 - op.shift) > 32000:
        return "means do not fit 16 bits"
    return ""
