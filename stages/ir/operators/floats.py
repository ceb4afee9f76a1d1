"""Float operators, which TVM computes."""

from typing import ClassVar, Literal

from pydantic import BaseModel, ConfigDict

from stages.ir.layers import LayerOp, Tensor


class FloatRows(BaseModel):
    """Output row `i` needs `size` rows of the inputs, from `i * stride - padding` on.

    Rows of padding above and below the image are 0.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)
    size: int = 1
    stride: int = 1
    padding: int = 0


class Float(LayerOp):
    """A float operator, lowered by TVM.

    function  the name of its Relax function in `float.json`
    kind      the operator's name in reports and rules
    macs      its multiply-accumulates, which the graph cannot derive
    rows      the rows that it needs for a row of its output; None if it needs whole tensors
    """

    op: Literal["float"] = "float"
    named_by: ClassVar[str] = "kind"
    kind: str
    function: str
    macs: int = 0
    rows: FloatRows | None = None

    @classmethod
    def names(cls) -> frozenset[str]:
        """Return no kernel names: TVM generates the code of float layers."""
        return frozenset()

    def macs_of(self, out: Tensor) -> int:
        """Multiply-accumulates of the layer."""
        return self.macs
