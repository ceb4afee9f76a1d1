"""Layout of a convolution as pixel panels for the GEMM kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stages.backends.cortex_m.kernels.arm_dsp.base import CLAMP, arithmetic, clamps
from stages.backends.kernels.matrix import WINDOWS, depth_of, run_elements, windows_of
from stages.backends.kernels.structure import Structure

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from stages.backends.cortex_m.kernels.arm_dsp.packing import Packing
    from stages.ir.graph import LayerView


GEOMETRY = Structure("arm_dsp_geometry", (*WINDOWS, "fill"))  # of panel.h
FIELDS = Structure("arm_dsp_gemm_fields", ("steps", "step", *CLAMP))  # of gemm.S


def layer_form(view: LayerView) -> Packing:
    """Return the form of the layer's packed weights."""
    from stages.backends.cortex_m.kernels.arm_dsp import packing

    return packing.form(arithmetic(view, long=True), packing.channel_pairs(view.op.out_channels))


def step_elements(view: LayerView, mr: int) -> NDArray[np.int64]:
    """Return [steps, 2]: the depth elements of each panel step, -1 for none.

    Panels of three pixels in the form ab have an even number of steps, as gemm.S takes two at a time.
    """
    import numpy as np

    from stages.backends.cortex_m.kernels.arm_dsp import packing

    op, out = view.op, view.outputs[0]
    if view.inputs[0].layout == "NCHW":
        steps = packing.plane_steps(op.in_channels)
    else:
        steps = packing.depth_steps(depth_of(view), run_elements(view))
    threes = 3 in (mr, out.shape[1] * out.shape[2] % mr)
    odd = len(steps) % 2 and threes and layer_form(view) == "ab"
    return np.concatenate([steps, np.full((1, 2), -1)]) if odd else steps


def geometry(view: LayerView) -> dict[str, int]:
    """Return the fields of arm_dsp_geometry."""
    return windows_of(view) | {"fill": view.op.input_zero_point}


def fields(view: LayerView, mr: int) -> dict[str, int]:
    """Return the fields of gemm.S."""
    op, out = view.op, view.outputs[0]
    step = out.shape[1] * out.shape[2] if out.layout == "NCHW" else op.out_channels
    return {"steps": len(step_elements(view, mr)), "step": step, **clamps(view)}
