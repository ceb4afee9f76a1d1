"""CAST: numbers in another type; scales are ignored."""

from typing import ClassVar, Literal

from stages.ir.layers import Array, LayerOp, LayerView
from stages.ir.model_info import FileTensor
from stages.ir.operators.activations import same_shape
from stages.ir.operators.declaration import MOVED, Legalization, LiteRT, Operator, Quantization, Tensors
from stages.ir.operators.operation import Table
from stages.ir.operators.single_operator import SingleOperatorBuilder, SingleOperatorModel
from stages.support.lazy import np


class Cast(LayerOp):
    """CAST: integers keep their lowest bits, floats are truncated and clamped to the type.

    bool is whether a number is not 0. A NaN becomes the type's highest value.
    """

    op: Literal["cast"] = "cast"
    any_type: ClassVar[bool] = True

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        """Convert to the output's type."""
        (x,), dtype = inputs, view.outputs[0].dtype
        if x.dtype != np.float32 or dtype in ("float32", "bool"):
            return x.astype(dtype)
        limits = np.iinfo(dtype)
        low, high = np.float32(limits.min), np.float32(limits.max)  # the highest of int32 and int64 round up
        inside = (x > low) & (x < high)
        converted = np.where(inside, x, 0).astype(dtype)
        return np.where(inside, converted, np.where(x <= low, limits.min, limits.max)).astype(dtype)


_TYPES = (*MOVED, "uint32")


def _model(model: SingleOperatorBuilder, x: FileTensor) -> FileTensor:
    out = model.builder.tensor("cast", x.shape, "int32")
    model.builder.operator("CAST", [x], [out], "CastOptions")
    return out


OPERATORS = (
    Operator(
        "CAST",
        same_shape,
        Tensors(types=_TYPES, results=_TYPES),
        table=Table("CastOptions", "in_data_type:byte out_data_type:byte", required=False),
        quantization=Quantization(scales="any"),
        legalization=Legalization((Cast,), opaque=True),
        litert=LiteRT(version=1),
        model=SingleOperatorModel(_model),
        limits="scales are ignored; floats are clamped to the output type",
    ),
)
