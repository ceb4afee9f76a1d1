"""Padded channel planes for the depthwise kernels, and checks of their weights."""

from __future__ import annotations

from dataclasses import dataclass

from stages.backends.cortex_m.kernels.arm_dsp.base import CLAMP, arithmetic
from stages.backends.kernels.eight_bit import SUFFIX
from stages.backends.kernels.structure import Structure
from stages.ir.graph import LayerView, Tensor
from stages.support.lazy import np, npt

FIELDS = Structure("arm_dsp_depthwise3x3_fields", ("rows", "pairs", "odd", "jump", "column", "row", *CLAMP))
BYTES_FIELDS = Structure("arm_dsp_depthwise3x3_bytes_fields", (*FIELDS.fields, "x_row", "pad"))
WIDEN = Structure.of_header("arm_dsp_widen", __file__, "depthwise.h")
ROW_FIELDS = Structure.of_header("arm_dsp_depthwise", __file__, "depthwise_rows.h")


def centred_taps(view: LayerView) -> npt.NDArray[np.int64]:
    """Return the weights minus their zero point, [channels, ky, kx]."""
    constants = arithmetic(view, long=True)
    return (constants.weights - constants.weight_zero_point).reshape(-1, *view.op.kernel)


def is_wide(view: LayerView) -> bool:
    """Return whether weights minus their zero point do not fit int8."""
    taps = centred_taps(view)
    return bool(taps.min() < -128 or taps.max() > 127)


def result_word_count(view: LayerView) -> int:
    """Return the number of words in `result_words`."""
    return 1 + int(arithmetic(view, long=True).scale.scale.shape[1])


@dataclass(frozen=True)
class Plane:
    """Padded plane of a channel; `swapped`: rows and columns of the image change places.

    pitch      elements between rows
    order      of the output: `near` (dense), `rows` (columns consecutive, rows apart) or `apart` (columns apart)
    """

    swapped: bool
    out_rows: int
    out_columns: int
    top: int
    left: int
    in_rows: int
    in_columns: int
    rows: int
    pitch: int
    order: str

    @property
    def elements(self) -> int:
        """Elements of the padded plane."""
        return self.rows * self.pitch


def plane_of(view: LayerView) -> Plane:
    """Return the cheaper plane, swapped or not."""
    return min((_plane(view, swapped) for swapped in (False, True)), key=lambda plane: plane_cost(view, plane))


def _plane(view: LayerView, swapped: bool) -> Plane:
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    stride = op.stride[0]
    sizes, outs, before = x.shape[1:3], y.shape[1:3], op.padding[:2]
    if swapped:
        sizes, outs, before = sizes[::-1], outs[::-1], before[::-1]
    rows, pitch = (outs[0] - 1) * stride + 3, -(-outs[1] // 2) * 2 * stride + 2
    return Plane(
        swapped=swapped,
        out_rows=outs[0],
        out_columns=outs[1],
        top=before[0],
        left=before[1],
        in_rows=max(min(sizes[0], rows - before[0]), 0),
        in_columns=max(min(sizes[1], pitch - before[1]), 0),
        rows=rows,
        pitch=pitch,
        order=_order(y, swapped),
    )


def _order(y: Tensor, swapped: bool) -> str:
    """Return `Plane.order` for an output channel."""
    row, column = channel_steps(y, swapped)
    if swapped or column != 1:
        return "apart"
    return "near" if row == y.shape[2] or y.shape[1] == 1 else "rows"


def plane_cost(view: LayerView, plane: Plane) -> float:
    """Return the instructions of one channel.

    28 per pair of outputs (31 with stride 2, 2 more where columns are apart), 1.9 or 2.6 per element.
    """
    long = 7 if arithmetic(view, long=True).scale.long else 0
    pair = (28 if view.op.stride[0] == 1 else 31) + (2 if plane.order == "apart" else 0) + long
    single = 26 + long if plane.out_columns % 2 else 0
    near = channel_steps(view.inputs[0], plane.swapped)[1] == 1
    widened = plane.in_rows * (plane.in_columns * (1.9 if near else 2.6) + 14)
    return plane.out_rows * (plane.out_columns // 2 * pair + single + 22) + widened + 90


def reads_bytes(view: LayerView) -> bool:
    """Return whether depthwise3x3.S reads a band of rows without a widened copy.

    That takes less time for up to three rows of outputs, and with stride 2 for any number.
    """
    op, x = view.op, view.inputs[0]
    columns = x.shape[2]
    is_padded = op.padding == (0, 1, 0, 1) if op.stride == (1, 1) else op.padding == (0, 0, 0, 1) and columns % 2 == 0
    is_able = (
        (x.layout, x.dtype, op.kernel, op.dilation, op.depth_multiplier) == ("NHCW", "int8", (3, 3), (1, 1), 1)
        and op.stride in ((1, 1), (2, 2))
        and is_padded
        and columns >= 4
        and not is_wide(view)
    )
    return is_able and bytes_cost(view) < plane_cost(view, plane_of(view))


def bytes_cost(view: LayerView) -> float:
    """Return the instructions of one channel without a plane.

    34 per pair of outputs (40 with stride 2), 2 more if outputs of a row are not adjacent.
    """
    _, rows, columns, _ = view.outputs[0].shape
    pair = (34 if view.op.stride == (1, 1) else 40) + (0 if channel_steps(view.outputs[0], False)[1] == 1 else 2)
    pair += 7 if arithmetic(view, long=True).scale.long else 0
    return float(rows * (-(-columns // 2) * pair + 44) + 60)


def widen_fields(view: LayerView, plane: Plane) -> dict[str, int]:
    """Return the fields of arm_dsp_widen."""
    row_step, column_step = channel_steps(view.inputs[0], plane.swapped)
    return {
        "rows": plane.in_rows,
        "columns": plane.in_columns,
        "row_step": row_step,
        "column_step": column_step,
        "first": plane.top * plane.pitch + plane.left,
        "pitch": plane.pitch,
    }


def widen_function(view: LayerView, plane: Plane) -> str:
    """Return the function of widen.S for the image."""
    x = view.inputs[0]
    near = channel_steps(x, plane.swapped)[1] == 1
    return f"arm_dsp_widen_{SUFFIX[x.dtype]}_{'near' if near else 'apart'}"


def clamped(view: LayerView) -> bool:
    """Return whether the output bounds are narrower than int8."""
    return (view.op.act_min, view.op.act_max) != (-128, 127)


def channel_steps(tensor: Tensor, swapped: bool) -> tuple[int, int]:
    """Return the bytes between rows and between columns of a channel."""
    _, _, width, channels = tensor.shape
    steps = {"NCHW": (width, 1), "NHCW": (width * channels, 1)}.get(tensor.layout, (width * channels, channels))
    return steps[::-1] if swapped else steps


def tap_pairs(view: LayerView) -> int:
    """Tap pairs in a window row."""
    return -(-int(view.op.kernel[1]) // 2)


def row_plane(view: LayerView) -> Plane:
    """Return the plane for five or seven columns.

    Row lengths are even, with room for one extra pair of outputs.
    """
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    rows = (y.shape[1] - 1) * op.stride[0] + (op.kernel[0] - 1) * op.dilation[0] + 1
    columns = (y.shape[2] + y.shape[2] % 2 - 1) * op.stride[1] + 2 * tap_pairs(view)
    pitch = columns + columns % 2
    top, left = op.padding[:2]
    return Plane(
        swapped=False,
        out_rows=y.shape[1],
        out_columns=y.shape[2],
        top=top,
        left=left,
        in_rows=max(min(x.shape[1], rows - top), 0),
        in_columns=max(min(x.shape[2], pitch - left), 0),
        rows=rows,
        pitch=pitch,
        order="apart",
    )
