"""BATCH_MATMUL of int8."""

from collections.abc import Mapping
from typing import Any

from stages.backends.kernels.matmul import PRODUCT, Matmul8, MatrixTile
from stages.backends.kernels.structure import Structure
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView

FIELDS = Structure.of_header("mve_matmul", __file__, "matmul.h")  # of matmul.h
PANEL = 16  # rows
_WORDS = 7 + 2 * PANEL  # of the program's fields, of a panel's offsets and of its outputs
_BLOCK_PARAMETERS = 12


class MveMatmul(Matmul8):
    """Two rows times four units with product_program.py, sixteen elements at a time."""

    name = "mve.matmul_s8"
    estimate_error = 1.25
    sources = ("matmul.c",)
    function = "mve_matmul_s8"
    prices = (2.0, 5.0, 0.8)

    def tile(self, target: Target) -> MatrixTile:
        return MatrixTile(2, 4, 16)

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        packed = super().pack(view, params)["matmul"]
        return {"matmul": FIELDS.of(dict(zip(PRODUCT.fields, packed.tolist(), strict=True)))}

    def sources_for(self, view: LayerView, params: Any, target: Target) -> tuple[str, ...]:
        return (*self.sources, *(f"mve_gemm_4_lowered_{depth}_offsets.S" for depth in ("rest", "short")))

    def scratch_bytes(self, view: LayerView, target: Target) -> int:
        """Return the scratch: unit blocks with parameters, and a row panel.

        The panel is needed where rows are columns of the first operand.
        """
        chunks, blocks = -(-view.op.depth // 16), -(-view.outputs[0].shape[-1] // 4)
        turned = PANEL * chunks * 16 if view.op.adj_x and view.outputs[0].shape[-2] > 1 else 0
        return 4 * (_WORDS + blocks * _BLOCK_PARAMETERS) + blocks * chunks * 64 + turned
