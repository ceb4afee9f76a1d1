"""TIR of convolutions with few window bytes: one-row panels for pointwise_s8.S.

Tiles, remaining rows and the staging of incomplete registers are as in the GEMM kernels.
"""

from typing import Any

from stages.backends.kernels.kernel import Lowering
from stages.backends.kernels.tir.block import Block
from stages.backends.kernels.tir.words import byte
from stages.backends.riscv.kernels.rvp.convolution_tir import Call, Gemm, gemm
from stages.backends.riscv.kernels.rvp.pointwise_tir import Sizes, params_shape, product
from stages.ir.graph import LayerView


class _FewInputs(Gemm):
    """Blocks of one layer; panels have one row."""

    def windows_call(self, rows: int, panels: int) -> Call:
        return "rvp_few_inputs_windows", lambda b: [b.panel, b.x, b.first[0], panels, b.geometry]

    def rows_call(self, rows: int, panels: int) -> Call:
        return "rvp_few_inputs_rows", lambda b: [b.panel, b.x, panels, self.depth]

    def constants(self) -> dict[str, tuple[tuple[int, ...], str]]:
        return {"params": (params_shape(self._sizes(1)), "int32")}

    def _sizes(self, rows: int) -> Sizes:
        width = self.blocks * 4 * self.lanes if self.staged else self.columns
        return Sizes(rows, self.chunks, self.blocks, self.lanes, width)

    def multiply(self, name: str, rows: int, panels: int) -> Block:
        def activation(b: Any, row: Any, chunk: Any, lane: Any, k: Any) -> Any:
            return byte(b.panel[self.word_of(1, row, chunk, 0, lane)], k)

        return product(
            name, self.view, self.panel(1, panels), self._sizes(panels), activation, f"rvp_pointwise_s8_p{self.chunks}"
        )


def few_inputs(view: LayerView, lanes: int) -> Lowering:
    """Return the convolution: a matrix product with one-row panels."""
    return gemm(_FewInputs(view, lanes), 1)
