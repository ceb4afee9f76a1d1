"""Float operators, which TVM computes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from stages.ir.layers import LayerOp

if TYPE_CHECKING:
    from stages.ir.layers import Tensor


class Float(LayerOp):
    """A float operator, lowered by TVM.

    function  the name of its Relax function in `float.json`
    kind      the operator's name in reports and rules
    macs      its multiply-accumulates, which the graph cannot derive
    """

    op: Literal["float"] = "float"
    kind: str
    function: str
    macs: int = 0

    @property
    def named(self) -> str:
        """Name in rules and reports."""
        return self.kind

    @classmethod
    def names(cls) -> frozenset[str]:
        """None: no kernel computes it."""
        return frozenset()

    def products(self, out: Tensor) -> int:
        """Multiply-accumulates of the layer."""
        return self.macs
