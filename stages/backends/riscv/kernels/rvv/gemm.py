"""CONV_2D and FULLY_CONNECTED as matrix products with RVV."""

from typing import Literal

from pydantic import Field

from stages.backends.kernels.eight_bit import INT8_OFFSET, weight_zero_point
from stages.backends.kernels.kernel import KernelParams
from stages.backends.kernels.matrix import columns_of
from stages.backends.riscv.kernels.rvv.gemm_program import Variant
from stages.backends.targets.spec import Target
from stages.backends.tiles.product_kernel import TileProduct, is_clamped
from stages.backends.tiles.product_sizes import Blocks, images, rounding_of
from stages.ir.graph import LayerView

Registers = Literal[0, 1, 2, 4, 8]

_HEIGHTS: dict[Registers, int] = {8: 3, 4: 7, 2: 7, 1: 7}  # rows that registers hold, by registers of an accumulator
_HEIGHTS_OF_ANY: dict[Registers, int] = {8: 2, 4: 6, 2: 7, 1: 7}  # with two groups of constants at a time


class GemmParams(KernelParams):
    """`height` rows share a load of weights; an accumulator has `lmul` registers.

    0: the best known.
    """

    height: int = Field(default=0, ge=0, le=7)
    lmul: Registers = 0


class Gemm(TileProduct):
    """Convolution and fully connected layers; lanes are output channels."""

    name = "rvv.gemm"
    params = GemmParams
    sources = ("windows.c",)
    gather = "rvv_windows"

    def candidates(self, view: LayerView, target: Target) -> tuple[GemmParams, ...]:
        """Accumulators of 8, 4, 2 and 1 registers; heights that divide the rows best."""
        columns, rows = columns_of(view), images(view, _step(view, target))[1]
        candidates: list[GemmParams] = []
        for lmul, most in _heights(view).items():
            if lmul > 1 and columns <= _width(lmul // 2, target):
                continue
            even = -(-rows // -(-rows // most))
            candidates += [GemmParams(height=height, lmul=lmul) for height in {min(most, rows), even}]
        return tuple(sorted(candidates, key=lambda params: self.cost(view, params, target)))

    def blocks(self, view: LayerView, params: GemmParams, target: Target) -> Blocks:
        params, step = self._whole(view, params, target), _step(view, target)
        return Blocks(params.height, _width(params.lmul, target), step, narrows=True)

    def program(self, view: LayerView, params: GemmParams, target: Target) -> str:
        params, step, rounding = self._whole(view, params, target), _step(view, target), rounding_of(view)
        flags = weight_zero_point(view) != 0, is_clamped(view), bool(INT8_OFFSET[view.outputs[0].dtype])
        return Variant(params.height, params.lmul, step == 4, rounding, *flags).name

    def _whole(self, view: LayerView, params: GemmParams, target: Target) -> GemmParams:
        """Return `params` with all fields set.

        Rows are limited by the layer and the registers.
        """
        if not params.lmul:
            return self.candidates(view, target)[0]
        most = min(_heights(view)[params.lmul], images(view, _step(view, target))[1])
        return GemmParams(height=min(params.height or most, most), lmul=params.lmul)

    def cost(self, view: LayerView, params: GemmParams, target: Target) -> float:
        """Return the instructions, estimated from the program's lines."""
        blocks = self.blocks(view, params, target)
        load = 2 if blocks.step == 4 else 3 + (weight_zero_point(view) != 0)
        return self.estimate(view, blocks, load + 2 * blocks.height + (blocks.height + 1) / 4, 12)


def _step(view: LayerView, target: Target) -> int:
    """Return the elements of a multiply-accumulate.

    Four with the dot product, which supports no zero point of weights.
    """
    return 4 if "zvdot4a8i 0.1" in target.features and weight_zero_point(view) == 0 else 1


def _width(lmul: int, target: Target) -> int:
    """Return the columns of a block."""
    return int(target.vlen or 0) // 32 * lmul


def _heights(view: LayerView) -> dict[Registers, int]:
    return _HEIGHTS_OF_ANY if rounding_of(view) == "any" else _HEIGHTS
