"""SVDF in integers and in float32."""

from typing import Any

import numpy as np

from stages.ir.arithmetic.activation_bounds import BOUNDS
from stages.ir.arrays import Array
from stages.ir.operators.svdf import FloatSvdf, NarrowSvdf, Svdf, multipliers
from stages.quantize.operator import Operator
from stages.quantize.writer import GraphWriter


def svdf(operator: Operator, writer: GraphWriter) -> None:
    """SVDF. The real multipliers are float32 expressions (svdf.cc)."""
    x, state, out = operator.tensor_at(0), operator.tensor_at(4), operator.outputs[0]
    feature, time, bias = (operator.constant_at(position) for position in (1, 2, 3))
    assert feature is not None and time is not None
    constants: dict[str, Array] = {"feature": feature, "time": time}
    if bias is not None:
        constants["bias"] = bias
    sizes = {"rank": int(operator.options["rank"]), "depth": feature.shape[1], "memory": time.shape[1]}
    if x.dtype == "float32":
        low, high = BOUNDS[operator.options["fusedActivationFunction"]]
        writer.layer(FloatSvdf(**sizes, low=low, high=high), [x], out, constants, state=[state])
        return
    feature_scale, time_scale = operator.scale_at(1), operator.scale_at(2)
    first, second = multipliers(x.scale, feature_scale, time_scale, state.scale, out.scale)
    limits = np.iinfo(out.dtype)
    fields: dict[str, Any] = dict(
        **sizes,
        input_zero_point=x.zero_point,
        feature_multiplier=first[0],
        feature_shift=first[1],
        multiplier=second[0],
        shift=second[1],
        output_zero_point=out.zero_point,
        act_min=int(limits.min),
        act_max=int(limits.max),
    )
    narrow = state.dtype == "int8"
    op = NarrowSvdf(**fields, state_zero_point=state.zero_point) if narrow else Svdf(**fields)
    writer.layer(op, [x], out, constants, state=[state])


PATTERNS = {"SVDF": svdf}
