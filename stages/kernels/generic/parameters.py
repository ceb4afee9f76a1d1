"""The constant structures of `generic.h`: names of their int32 fields, in order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

_EPILOGUE = ("zero_point", "low", "high", "single_rounding")
_TAPS = ("kernel_height", "kernel_width", "stride_y", "stride_x", "dilation_y", "dilation_x", "top", "left")

FIELDS: dict[str, tuple[str, ...]] = {
    "fl_gemm": ("x_row", "y_row", "y_column", "weight_zero_point", *_EPILOGUE),
    "fl_im2col": ("height", "width", "channels", "pixel", *_TAPS, "out_width", "fill", "flip"),
    "fl_depthwise": (
        *("height", "width", "out_height", "out_width", "channels", "multiplier"),
        *_TAPS,
        *("y_pixel", "y_channel", "input_zero_point", "weight_zero_point"),
        *_EPILOGUE,
    ),
    "fl_pool": (
        *("height", "width", "out_height", "out_width", "channels"),
        *_TAPS,
        *("x_pixel", "x_channel", "y_pixel", "y_channel", "low", "high"),
    ),
    "fl_add": (
        *("zero_point0", "zero_point1", "left_shift", "multiplier0", "shift0", "multiplier1", "shift1", "sign"),
        *("multiplier", "shift"),
        *_EPILOGUE,
    ),
    "fl_mul": ("zero_point0", "zero_point1", "multiplier", "shift", *_EPILOGUE),
    "fl_requantize": ("input_zero_point", "multiplier", "shift", *_EPILOGUE),
    "fl_mean": (
        *("x_step", "extent0", "step0", "extent1", "step1", "offset", "multiplier", "shift"),
        *_EPILOGUE,
    ),
}


def parameters(structure: str, values: dict[str, int]) -> np.ndarray:
    """The structure as int32 values. Every field must be given, and no other."""
    import numpy as np

    fields = FIELDS[structure]
    if set(values) != set(fields):
        raise KeyError(f"{structure}: {sorted(set(values) ^ set(fields))}")
    return np.array([values[field] for field in fields], np.int32)


def taps(op: Any) -> dict[str, int]:
    """The fields that tell which elements a window meets, from an operator with one."""
    dilation = getattr(op, "dilation", (1, 1))
    values = (*op.kernel, *op.stride, *dilation, op.padding[0], op.padding[1])
    return dict(zip(_TAPS, values, strict=True))


def epilogue(op: Any, rounding: str) -> dict[str, int]:
    """The fields that end most structures, from an operator with an output zero point and a clamp."""
    return {
        "zero_point": op.output_zero_point,
        "low": op.act_min,
        "high": op.act_max,
        "single_rounding": int(rounding == "single"),
    }
