"""CONV_2D and FULLY_CONNECTED: rows of int8 times packed weights, two rows and four channels at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from stages.kernels.eight_bit import why_not_sums, why_not_types
from stages.kernels.kernel import KernelParams
from stages.kernels.matrix import columns_of, depth_of, rows_of, run_elements
from stages.kernels.mve.base import MveKernel, arithmetic
from stages.kernels.mve.rows import (
    BLOCK,
    CHUNK,
    FIELDS,
    GATHERED,
    block_starts,
    fields,
    gathers,
    images,
    row_bytes,
    windows_fields,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np

    from stages.graph import LayerView
    from stages.kernels.kernel import Lowering
    from stages.targets.spec import Target

SCRATCH_BYTES = 1024  # of gathered rows, unless two are larger


class GemmParams(KernelParams):
    """`rows` windows are gathered at a time (0: as many as 1 KB holds, and at least two)."""

    rows: int = Field(default=0, ge=0, le=4096)


class _Gemm(MveKernel):
    sources = ("gemm.S", "windows.c")
    headers: ClassVar[tuple[str, ...]] = ("gemm.h",)
    params = GemmParams

    def why_not_operator(self, view: LayerView) -> str:
        if bad := why_not_types(view):
            return bad
        if view.op.op == "conv2d" and view.op.groups != 1:
            return f"{view.op.groups} groups; this kernel has one"
        if columns_of(view) < BLOCK:
            return f"{columns_of(view)} output channels; this kernel computes {BLOCK} at a time"
        return why_not_sums(depth_of(view), lambda: arithmetic(view))

    def pack(self, view: LayerView, params: Any) -> Mapping[str, np.ndarray]:
        import numpy as np

        made, starts = arithmetic(view), block_starts(columns_of(view))
        padded = np.pad(made.weights.astype(np.int8), ((0, 0), (0, -depth_of(view) % CHUNK)))
        blocks = np.stack([padded[first : first + BLOCK] for first in starts])
        values = fields(view)
        constants = {
            "weights": np.ascontiguousarray(blocks.reshape(len(starts), BLOCK, -1, CHUNK).transpose(0, 2, 1, 3)),
            "params": np.stack([made.params[:, first : first + BLOCK] for first in starts]).astype(np.int32),
            "fields": np.array([values[name] for name in FIELDS], np.int32),
        }
        if gathers(view):
            constants["windows"] = GATHERED.of(windows_fields(view))
        return constants  # type: ignore[return-value]  # the stubs of np.stack say object

    def lower(self, view: LayerView, params: GemmParams, target: Target) -> Lowering:
        from stages.kernels.mve.gemm_tir import gemm

        return gemm(view, rows_at_a_time(view, params))

    def cost(self, view: LayerView, params: GemmParams, target: Target) -> float:
        """A tile of two rows: 16 instructions for a chunk, 27 around; of a gathered row 3 for 16 bytes, 8 for each run,
        50 around; as counted.
        """
        rows, depth = rows_of(view), depth_of(view)
        blocks = len(block_starts(columns_of(view)))
        tiles = blocks * (rows // 2 * (16 * -(-depth // CHUNK) + 27) + rows % 2 * (10 * -(-depth // CHUNK) + 22))
        gathered = 0.0
        if gathers(view):
            runs = 1 if view.op.op == "fully_connected" else depth // run_elements(view)
            gathered = rows * (depth * 3 / CHUNK + runs * 8 + 50)
        return tiles + rows // 2 * 20 + gathered + 100


class Conv2d(_Gemm):
    """Pointwise layers read their rows in place; windows are gathered into scratch, about 1 KB at a time."""

    name = "mve.gemm_s8"
    ops: ClassVar[frozenset[str]] = frozenset({"conv2d"})


class FullyConnected(_Gemm):
    """Rows of x times all units; a single row streams its weights through, four units at once."""

    name = "mve.dot_s8"
    ops: ClassVar[frozenset[str]] = frozenset({"fully_connected"})


def rows_at_a_time(view: LayerView, params: GemmParams) -> int:
    """Rows of one product: all where nothing has to be copied."""
    rows = images(view)[1]
    if not gathers(view):
        return rows
    fitting = max(SCRATCH_BYTES // row_bytes(view) // 2 * 2, 2)
    return min(params.rows or fitting, rows)
