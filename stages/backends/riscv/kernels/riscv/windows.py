"""Window access of `gemm.c`."""

from stages.backends.kernels.eight_bit import INT8_OFFSET
from stages.backends.kernels.matrix import has_windows, windows_of
from stages.backends.kernels.structure import Structure
from stages.ir.graph import LayerView

FIELDS = Structure.of_header("riscv_windows", __file__, "gemm.h")


def reads_in_place(view: LayerView) -> bool:
    """Return whether windows are single pixels laid out as the matrix product needs them."""
    x = view.inputs[0]
    return not has_windows(view) and x.dtype == "int8" and x.layout != "NCHW"


def fields_of(view: LayerView) -> dict[str, int]:
    """Return the riscv_windows fields of a channel group."""
    op, x = view.op, view.inputs[0]
    planar, depth = x.layout == "NCHW", op.in_channels // op.groups
    fill = op.input_zero_point  # as the image has it: as a signed byte
    return windows_of(view) | {
        "channels": 1 if planar else depth,
        "pixel": 1 if planar else op.in_channels,
        "planes": depth if planar else 1,
        "fill": fill - 256 if fill > 127 else fill,
        "is_unsigned": int(INT8_OFFSET[x.dtype] != 0),
    }


def outside_bytes(view: LayerView) -> int:
    """Return the bytes of a window row in one plane, which replaces rows outside the image."""
    return int(view.op.kernel[1] * fields_of(view)["channels"])
