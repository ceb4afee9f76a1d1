"""One-operator models as a recipe says them: every operator with what it needs."""

from typing import Any

from stages.ir.models.spec import OpModel

# What an operator needs beside a shape, as a recipe would say it.
NEEDS: dict[str, dict[str, Any]] = {
    "conv2d": {"out_channels": 24, "kernel": [3, 3]},
    "depthwise_conv2d": {"kernel": [3, 3], "depth_multiplier": 2},
    "fully_connected": {"shape": [96], "out_channels": 200},
    "transpose_conv": {"out_channels": 24, "kernel": [3, 3], "stride": [2, 2]},
    "batch_matmul": {"shape": [12, 16]},
    "svdf": {"shape": [96], "out_channels": 200},
    "lstm": {"shape": [10, 16], "out_channels": 20},
    "avg_pool2d": {"kernel": [2, 2], "stride": [2, 2]},
    "max_pool2d": {"kernel": [2, 2], "stride": [2, 2]},
    "mean": {"axes": [1, 2]},
    "reduce_max": {"shape": [2, 12, 16], "axes": [1]},
    "reduce_min": {"shape": [2, 12, 16], "axes": [1]},
    "reduce_prod": {"shape": [2, 12, 16], "axes": [1]},
    "sum": {"axes": [1, 2]},
    "pad": {"pads": [[0, 0], [1, 2], [1, 0], [0, 0]]},
    "reshape": {"new_shape": [1, -1]},
    "squeeze": {"axes": [0]},
    "transpose": {"permutation": [0, 3, 1, 2]},
    "slice": {"begin": [0, 1, 1, 1], "size": [1, 3, 3, -1]},
    "strided_slice": {"begin": [0, 1, 1, 1], "end": [1, 9, 9, 9], "strides": [1, 2, 2, 1]},
    "resize_bilinear": {"size": [20, 24]},
    "resize_nearest_neighbor": {"size": [20, 24]},
    "batch_to_space_nd": {"batch": 4},
    "broadcast_to": {"shape": [1, 1, 16], "new_shape": [1, 12, 12, 16]},
    "gather": {"axis": 1, "indices": [3, 0, 3]},
    "mirror_pad": {"pads": [[0, 0], [1, 2], [1, 0], [0, 0]]},
    "reverse_v2": {"axes": [1, 2]},
    "tile": {"multiples": [1, 2, 1, 2]},
    "unpack": {"shape": [3, 40], "axis": 1},
    "signal_irfft": {"shape": [66]},
}


def spec(op: str, **options: Any) -> OpModel:
    """The operator on [12, 12, 16] where it does not need another shape; `options` go before what it needs."""
    return OpModel(**{"op": op, "shape": [12, 12, 16], **NEEDS.get(op, {}), **options})
