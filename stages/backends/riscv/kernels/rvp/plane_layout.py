"""Layout of rvp.depthwise_planes_s8: axis of the outputs and position of pixels in scratch."""

from __future__ import annotations

from dataclasses import dataclass, replace

from stages.backends.kernels.eight_bit import INT8_OFFSET
from stages.backends.kernels.structure import Structure
from stages.backends.riscv.kernels.rvp.base import clip_word
from stages.backends.riscv.kernels.rvp.plane_cost import layer_cost
from stages.backends.riscv.kernels.rvp.plane_taps import Taps
from stages.backends.riscv.kernels.rvp.strips import extents, group_channels, is_split
from stages.ir.graph import LayerView, Tensor

PLANES = Structure.of_header("rvp_depthwise_planes", __file__, "depthwise_planes.h")
# Of a plane, by lanes: larger ones read fewer rows twice.
PLANE_BYTES = {1: 3072, 2: 6144}


@dataclass(frozen=True)
class Plane:
    """A layer with outputs along its rows or, `exchanged`, along its columns.

    `direct`: taps are read from the image in place; `steps` are the bytes between its rows and its columns. Pairs are
    (rows, columns) as the outputs see them. The columns of the plane fall into phases (depthwise_planes.c).
    """

    exchanged: bool
    direct: bool
    kernel: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    padding: tuple[int, int]
    size: tuple[int, int]
    out: tuple[int, int]
    steps: tuple[int, int]
    lanes: int

    @classmethod
    def of(cls, view: LayerView, lanes: int) -> Plane:
        """Return the cheapest plane of a layer."""
        planes = [_plane(view, lanes, exchanged=exchanged) for exchanged in (False, True)]
        if _is_readable(view, lanes) and not planes[0].padded:
            planes += [replace(plane, direct=True) for plane in planes]
        return min(planes, key=lambda plane: plane.cost(view))

    @property
    def reach(self) -> tuple[int, int]:
        """Rows and columns of the image that a window spans."""
        rows, columns = (1 + (k - 1) * d for k, d in zip(self.kernel, self.dilation, strict=True))
        return rows, columns

    @property
    def phases(self) -> int:
        """Column phases: lines of every stride-th column."""
        return min(self.stride[1], self.reach[1])

    @property
    def phase_columns(self) -> int:
        """Columns of a phase that a line of outputs reads."""
        return self.out[1] + (self.reach[1] - 1) // self.stride[1]

    @property
    def padded(self) -> bool:
        """Whether a window crosses the border of the image."""
        return any(
            before or (out - 1) * stride + reach > size
            for before, out, stride, reach, size in zip(
                self.padding, self.out, self.stride, self.reach, self.size, strict=True
            )
        )

    def lines(self, band: int) -> int:
        """Rows of the plane that `band` output rows read."""
        return (band - 1) * self.stride[0] + self.reach[0]

    @property
    def line_registers(self) -> int:
        """Registers that hold a line."""
        return self.phases * self.phase_columns

    @property
    def band(self) -> int:
        """Output rows computed at a time; all bands have about the same height."""
        lines = PLANE_BYTES[self.lanes] // (4 * self.lanes * self.line_registers)
        fitting = max((lines - self.reach[0]) // self.stride[0] + 1, 1)
        return -(-self.out[0] // -(-self.out[0] // fitting))

    def taps(self, view: LayerView) -> Taps:
        """Return how the taps are joined.

        Joined taps use the same pixel for neighbouring outputs.
        """
        rows, columns = self.kernel
        stride, dilation = self.stride[1], self.dilation[1]
        apart = stride // dilation if stride % dilation == 0 else columns
        return Taps(rows * (1 + is_split(view)), columns, min(apart, columns))

    def offsets(self, view: LayerView) -> list[int]:
        """Return the bytes from the first register or pixel of an output (`Taps.joined`)."""
        return [self._offset(row % self.kernel[0], column) for row, column in self.taps(view).joined]

    def _offset(self, row: int, column: int) -> int:
        row, column = row * self.dilation[0], column * self.dilation[1]
        if self.direct:
            return row * self.steps[0] + column * self.steps[1]
        line = row * self.phases + column % self.stride[1]
        return (line * self.phase_columns + column // self.stride[1]) * 4 * self.lanes

    def scratch_bytes(self) -> int:
        """Return the scratch of depthwise_planes.c: masks, a result row, the plane of a band.

        An in-place image needs no plane.
        """
        if self.direct:
            return 0
        registers = 4 * self.lanes + self.out[1] + self.lines(self.band) * self.line_registers
        return 4 * self.lanes * registers

    def halved(self, view: LayerView) -> bool:
        """Whether the last group's lanes (up to four channels) hold the halves of an output row."""
        return self.lanes == 2 and not self.direct and 1 <= view.op.out_channels % 8 <= 4 and self.out[1] > 1

    def by_lanes(self, view: LayerView) -> bool:
        """Whether the channels of a group are read and written as lanes instead of registers."""
        return self.direct and view.op.out_channels % (4 * self.lanes) != 0

    def groups(self, view: LayerView) -> list[list[int]]:
        """Return the channel of each byte of a register, per group."""
        channels = view.op.out_channels
        if not self.halved(view):
            return group_channels(channels, self.lanes)
        few = list(range(max(channels - 4, 0), channels))
        few += few[-1:] * (4 - len(few))
        return [*(list(range(first, first + 8)) for first in range(0, channels - 7, 8)), few * 2]

    def cost(self, view: LayerView) -> float:
        """Return the instructions, from counts."""
        return layer_cost(view, self)


def _plane(view: LayerView, lanes: int, *, exchanged: bool) -> Plane:
    op = view.op
    rows, columns, out_rows, out_columns = extents(view, exchanged=exchanged)
    pairs = (op.kernel, op.stride, op.dilation, op.padding[:2])
    kernel, stride, dilation, padding = ((int(b), int(a)) if exchanged else (int(a), int(b)) for a, b in pairs)
    steps = _steps(view.inputs[0], exchanged=exchanged)
    sizes = (rows, columns), (out_rows, out_columns)
    return Plane(exchanged, False, kernel, stride, dilation, padding, *sizes, steps, lanes)


def _steps(image: Tensor, *, exchanged: bool) -> tuple[int, int]:
    """Return the bytes between rows and between columns of an image."""
    row, column = image.shape[2] * image.shape[3], image.shape[3]
    return (column, row) if exchanged else (row, column)


def _is_readable(view: LayerView, lanes: int) -> bool:
    """Return whether a group's channels of a pixel are whole aligned lanes in place."""
    op = view.op
    full_groups = op.out_channels % 4 == 0 and op.out_channels >= 4 * lanes
    return full_groups and op.depth_multiplier == 1 and view.inputs[0].dtype == "int8"


def fields(view: LayerView, plane: Plane) -> dict[str, int]:
    """Return the fields of rvp_depthwise_planes."""
    op, steps, taps = view.op, plane.steps, plane.taps(view)
    out_steps = _steps(view.outputs[0], exchanged=plane.exchanged)
    return {
        "rows": plane.size[0],
        "columns": plane.size[1],
        "row_step": steps[0],
        "column_step": steps[1],
        "out_rows": plane.out[0],
        "out_columns": plane.out[1],
        "out_row_step": out_steps[0],
        "out_column_step": out_steps[1],
        "top": plane.padding[0],
        "left": plane.padding[1],
        "fill": op.input_zero_point,
        "flip": INT8_OFFSET[view.inputs[0].dtype],
        "clip": clip_word(view),
        "channels": op.out_channels,
        "multiplier": op.depth_multiplier,
        "row_stride": plane.stride[0],
        "column_stride": plane.stride[1],
        "reach": plane.reach[0],
        "phases": plane.phases,
        "phase_columns": plane.phase_columns,
        "band": plane.band,
        "padded": plane.padded,
        "halved": plane.halved(view),
        "quads": taps.quads,
        "pairs": taps.pairs,
        "has_single": taps.has_single,
        "record": 4 * (3 + taps.words),
    }
