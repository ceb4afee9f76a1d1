"""Layout of a convolution as pixel panels for the GEMM kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stages.backends.cortex_m.kernels.arm_dsp import packing
from stages.backends.cortex_m.kernels.arm_dsp.base import CLAMP, arithmetic, clamps
from stages.backends.kernels.matrix import WINDOWS, depth_of, run_elements, windows_of
from stages.backends.kernels.structure import Structure
from stages.ir.graph import LayerView, Tensor
from stages.support.lazy import np, npt

if TYPE_CHECKING:
    from stages.backends.cortex_m.kernels.arm_dsp.packing import Packing


GEOMETRY = Structure("arm_dsp_geometry", (*WINDOWS, "fill"))  # of panel.h
FIELDS = Structure("arm_dsp_gemm_fields", ("steps", "step", *CLAMP))  # of gemm.S


def is_planar(tensor: Tensor) -> bool:
    """Return whether a row of the tensor consists of channels: NCHW or NHCW."""
    return tensor.layout in ("NCHW", "NHCW")


def channel_step(tensor: Tensor) -> int:
    """Return the elements between the channels of a planar tensor's pixel."""
    _, height, width, _ = tensor.shape
    return width if tensor.layout == "NHCW" else height * width


def pixel_runs(view: LayerView) -> tuple[int, int]:
    """Return the runs of output pixels that tiles divide, and the pixels of a run.

    A run is a row if a tensor is NHCW, otherwise the image.
    """
    _, height, width, _ = view.outputs[0].shape
    by_rows = "NHCW" in (view.inputs[0].layout, view.outputs[0].layout)
    return (height, width) if by_rows else (1, height * width)


def layer_form(view: LayerView) -> Packing:
    """Return the form of the layer's packed weights."""
    return packing.form(arithmetic(view, long=True), packing.channel_pairs(view.op.out_channels))


def step_elements(view: LayerView, mr: int) -> npt.NDArray[np.int64]:
    """Return [steps, 2]: the depth elements of each panel step, -1 for none.

    Panels of three pixels in the form ab have an even number of steps, as gemm.S takes two at a time.
    """
    op = view.op
    if is_planar(view.inputs[0]):
        steps = packing.plane_steps(op.in_channels)
    else:
        steps = packing.depth_steps(depth_of(view), run_elements(view))
    threes = 3 in (mr, pixel_runs(view)[1] % mr)
    odd = len(steps) % 2 and threes and layer_form(view) == "ab"
    return np.concatenate([steps, np.full((1, 2), -1)]) if odd else steps


def geometry(view: LayerView) -> dict[str, int]:
    """Return the fields of arm_dsp_geometry."""
    return windows_of(view) | {"fill": view.op.input_zero_point}


def fields(view: LayerView, mr: int) -> dict[str, int]:
    """Return the fields of gemm.S."""
    op, out = view.op, view.outputs[0]
    step = channel_step(out) if is_planar(out) else op.out_channels
    return {"steps": len(step_elements(view, mr)), "step": step, **clamps(view)}
