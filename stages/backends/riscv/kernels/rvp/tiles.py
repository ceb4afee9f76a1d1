"""Layers of two operands in tiles: scratch holds broadcast operands in whole registers.

An operand that repeats every C elements is expanded once, to as many periods as fill whole registers. Rows of the
output have that length and read the expansion from its beginning. An operand with one value per pixel is expanded for
some pixels at a time.

    [20, 20, 4] + [1, 1, 4]     once: c0 c1 c2 c3 c0 c1 c2 c3 … for 80 pixels;   5 rows of 320 elements in one call
    [20, 20, 4] + [20, 20, 1]   for each 100 pixels: p0 p0 p0 p0 p1 p1 p1 p1 …   4 calls for 400 elements each
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import gcd, lcm, prod
from typing import Any

from stages.backends.kernels.kernel import Lowering
from stages.backends.kernels.tir.block import Block, Function, Operand, loop, store
from stages.backends.kernels.tir.broadcast import rows_block
from stages.backends.kernels.tir.strides import Axis, broadcast_strides, logical_strides, offset, row_major, walk
from stages.ir.graph import LayerView

LONGEST = 512  # elements of a tile, where it need not be longer
MOST_SCRATCH = 1 << 14  # bytes for an operand
OTHER_ORDER = "an input has another element order than the output"
LAYER = 27.0  # instructions around a layer


@dataclass(frozen=True)
class Loop:
    """Instructions of a kernel's C function per register of elements, per row and per call."""

    register: float
    row: float
    call: float


AROUND = Loop(0, 38, 95)  # what kernels take beside their elements, roughly


@dataclass(frozen=True)
class Repeat:
    """Expansion y[(block * times + time) * length + i] = x[block * length + i]."""

    blocks: int
    length: int
    times: int

    @property
    def read(self) -> int:
        """Elements read."""
        return self.blocks * self.length

    @property
    def written(self) -> int:
        """Elements written."""
        return self.read * self.times

    def written_bytes(self, register: int) -> int:
        """Bytes written, in whole registers."""
        return -(-self.written // register) * register

    def cycle(self, register: int) -> int:
        """Bytes after which registers repeat."""
        return lcm(self.length, register)

    def cost(self, register: int) -> float:
        """Return the instructions, as measured."""
        if self.length == 1:
            return 22 + self.blocks * self._spread(register)
        return 50 + self.blocks * self._repeated(register)

    def _spread(self, register: int) -> float:
        """Cost of repeating a single value."""
        registers = self.times / register
        if self.times % register == 0:
            return 6.5 + 3 * registers
        if registers == 0.5:
            return 6
        if registers < 1:
            return (8 if registers > 0.5 else 5.5) + 6.3 * registers
        return 21 + 2.8 * (registers - 1)

    def _repeated(self, register: int) -> float:
        """Cost of repeating a block: element by element for a cycle, then by registers."""
        singly = min(self.times, self.cycle(register) // self.length)
        rest = (self.times - singly) * self.length / register
        return 28 + singly * (20.6 + 15.7 * ((self.length - 1) // register)) + (26 + 5 * rest if rest else 0)


@dataclass(frozen=True)
class Expanded:
    """One input as tiles read it; `repeats` expand it in scratch, innermost first.

    stride  elements of the input per step of a tile's axis
    step    elements along a tile, 0 for a single value
    """

    stride: int
    step: int
    repeats: tuple[Repeat, ...]

    @property
    def is_once(self) -> bool:
        """Whether all tiles read the same elements."""
        return self.stride == 0


@dataclass(frozen=True)
class Tiles:
    """A layer in tiles of `steps` steps along `axis`; the last tile has the remaining steps.

    Strides are (output, first input, second input).

    outer      axes around the tiles
    axis       axis that the tiles divide
    inside     axes of a step
    register   bytes of a register
    """

    outer: tuple[Axis, ...]
    axis: Axis
    inside: tuple[Axis, ...]
    steps: int
    register: int

    @cached_property
    def inner(self) -> int:
        """Output elements per step."""
        return prod(axis.extent for axis in self.inside)

    @property
    def count(self) -> int:
        """Number of complete tiles."""
        return self.axis.extent // self.steps

    @property
    def left(self) -> int:
        """Number of steps after the complete tiles."""
        return self.axis.extent % self.steps

    @cached_property
    def operands(self) -> tuple[Expanded, Expanded]:
        """Return the operands of complete tiles.

        Raises ValueError if an input has another order than the output.
        """
        return self._operand(0, self.steps), self._operand(1, self.steps)

    @cached_property
    def last(self) -> tuple[Expanded, Expanded]:
        """Return the operands of the remaining steps; operands expanded once stay valid."""
        numbered = enumerate(self.operands)
        first, second = (x if x.is_once else self._operand(number, self.left) for number, x in numbered)
        return first, second

    def _operand(self, number: int, steps: int) -> Expanded:
        axes = (Axis(steps, self.axis.strides), *self.inside)
        strides = [axis.strides[1 + number] for axis in axes]
        return Expanded(strides[0], *_repeats([axis.extent for axis in axes], strides))

    @property
    def one_call(self) -> bool:
        """Whether one call computes all complete tiles, without an expansion per tile."""
        return all(x.is_once or (x.step == 1 and not x.repeats) for x in self.operands)

    @property
    def rows(self) -> Axis:
        """Return the row elements of a call for complete tiles, of the output and both inputs."""
        if not self.one_call:
            return Axis(1, (0, 0, 0))
        size = self.steps * self.inner
        return Axis(self.count, (size, *(0 if x.is_once else size for x in self.operands)))

    @property
    def is_readable(self) -> bool:
        """Return whether inputs can be expanded and unexpanded inputs are aligned in each call."""
        try:
            read = [1 + number for number, x in enumerate(self.operands) if x.step and not x.repeats]
        except ValueError:
            return False
        return not any(axis.strides[number] % self.register for number in read for axis in self.outer)

    @property
    def scratch(self) -> int:
        """Return the largest scratch bytes of an operand."""
        return max((repeat.written for x in self.operands for repeat in x.repeats), default=0)

    def cost(self, loop: Loop) -> float:
        """Return the instructions of the layer."""

        def written(operands: Sequence[Expanded], once: bool) -> float:
            chosen = (x for x in operands if x.is_once == once)
            return sum(repeat.cost(self.register) for x in chosen for repeat in x.repeats)

        def computed(steps: int) -> float:
            return loop.row + loop.register * -(-steps * self.inner // self.register)

        calls = 1 if self.one_call else self.count
        total = written(self.operands, True) + calls * (loop.call + written(self.operands, False))
        total += self.count * computed(self.steps)
        if self.left:
            total += loop.call + written(self.last, False) + computed(self.left)
        return LAYER + prod(axis.extent for axis in self.outer) * total


def tiles(view: LayerView, register: int) -> Tiles:
    """Return the tiles with the fewest instructions.

    Raises ValueError with the reason if there are no usable tiles.
    """
    out = view.outputs[0]
    strides = (logical_strides(out), *(broadcast_strides(x, out.shape) for x in view.inputs))
    candidates = list(_possible(walk(out.shape, *strides), register))
    if not candidates:
        raise ValueError(OTHER_ORDER)
    if (least := min(candidate.scratch for candidate in candidates)) > MOST_SCRATCH:
        raise ValueError(f"expanding an input takes {least:,} bytes")
    return min(
        (candidate for candidate in candidates if candidate.scratch <= MOST_SCRATCH),
        key=lambda candidate: candidate.cost(AROUND),
    )


def _possible(axes: list[Axis], register: int) -> Iterator[Tiles]:
    for depth, axis in enumerate(axes):
        around, inside = tuple(axes[:depth]), tuple(axes[depth + 1 :])
        inner = prod(inner_axis.extent for inner_axis in inside)
        if around and (axis.extent * inner) % register:
            return  # calls would begin within registers, also those for fewer axes
        least = register // gcd(inner, register)
        sizes = range(least, min(max(least, LONGEST // inner), axis.extent - 1) + 1, least)
        complete = (axis.extent,) if axis.extent <= max(least, LONGEST // inner) else ()
        for steps in (*sizes, *complete):
            candidate = Tiles(around, axis, inside, steps, register)
            if candidate.is_readable:
                yield candidate


def _repeats(extents: Sequence[int], strides: Sequence[int]) -> tuple[int, tuple[Repeat, ...]]:
    """Return the element step and the repeats of an operand over axes, outermost first.

    Raises ValueError if the repeated elements are not a dense run.
    """
    axes = walk(extents, row_major(extents), strides)
    steps = [axis.strides[1] for axis in axes]
    length = dense = 1
    repeats = []
    for number in reversed(range(len(axes))):
        extent = axes[number].extent
        if steps[number] == 0:
            repeats.append(Repeat(prod(axis.extent for axis in axes[:number] if axis.strides[1]), length, extent))
        elif steps[number] != dense:
            raise ValueError(OTHER_ORDER)
        else:
            dense *= extent
        length *= extent
    return (0, ()) if steps == [0] else (1, tuple(repeats))


def tiled(view: LayerView, tiles: Tiles, function: str, fields: tuple[int, ...]) -> Lowering:
    """Build the layer as calls of `function(x0, x1, y, fields)`."""
    out, register = view.outputs[0], tiles.register
    dtype, size = out.dtype, tiles.steps * tiles.inner
    with Function(view.op.op) as f:
        inputs = [f.input(number, (x.elements,), dtype) for number, x in enumerate(view.inputs)]
        whole = f.constant("fields", fields, "int32")
        last = f.constant("last", fields, "int32") if tiles.left else None
        y = f.output(0, (out.elements,), dtype)
        written = [
            [
                f.scratch(f"x{number}_{depth}", (repeat.written_bytes(register),), dtype)
                for depth, repeat in enumerate(x.repeats)
            ]
            for number, x in enumerate(tiles.operands)
        ]

        def write_out(number: int, x: Expanded, name: str, first: Any) -> None:
            source: Any = (inputs[number], first)
            for depth, repeat in enumerate(x.repeats):
                block = _repeat(f"{name}{number}_{depth}", repeat, dtype, register)
                f.place(block, x=source, y=(written[number][depth], 0))
                source = (written[number][depth], 0)

        def read(number: int, x: Expanded, first: Any) -> Any:
            return (written[number][-1], 0) if x.repeats else (inputs[number], first)

        with f.loop(*((f"i{depth}", axis.extent) for depth, axis in enumerate(tiles.outer))) as variables:
            start = [offset(variables, tiles.outer, number) for number in range(3)]

            def compute(
                name: str, operands: tuple[Expanded, Expanded], rows: Axis, count: int, at: Any, given: Any
            ) -> None:
                """Build the call for tiles from step `at` on."""
                firsts = [start[1 + number] + at * x.stride for number, x in enumerate(operands)]
                for number, x in enumerate(operands):
                    if not x.is_once:
                        write_out(number, x, name, firsts[number])
                run = Axis(count, (1, operands[0].step, operands[1].step))
                block = rows_block(view, name, function, fields, rows, run)
                x0, x1 = (read(number, x, firsts[number]) for number, x in enumerate(operands))
                f.place(block, x0=x0, x1=x1, fields=given, y=(y, start[0] + at * tiles.inner))

            for number, x in enumerate(tiles.operands):
                if x.is_once:
                    write_out(number, x, "once", start[1 + number])
            if tiles.one_call:
                compute("tiles", tiles.operands, tiles.rows, size, 0, whole)
            else:
                with f.loop(("tile", tiles.count)) as (tile,):
                    compute("tiles", tiles.operands, tiles.rows, size, tile * tiles.steps, whole)
            if tiles.left:
                done = tiles.count * tiles.steps
                compute("last", tiles.last, Axis(1, (0, 0, 0)), tiles.left * tiles.inner, done, last)
    return f.lowering()


def _repeat(name: str, repeat: Repeat, dtype: str, register: int) -> Block:
    """Build an expansion; the C functions write whole registers, so y includes the last one."""

    def meaning(b: Any) -> None:
        with loop(("block", repeat.blocks), ("time", repeat.times), ("i", repeat.length)) as (block, time, i):
            store(b.y, b.x[block * repeat.length + i], (block * repeat.times + time) * repeat.length + i)

    operands = (Operand("x", (repeat.read,), dtype), Operand("y", (repeat.written_bytes(register),), dtype, "w"))
    if repeat.length == 1:
        return Block(name, operands, meaning, "rvp_spread", lambda b: [b.x, b.y, repeat.blocks, repeat.times])
    sizes = (repeat.blocks, repeat.length, repeat.times, repeat.cycle(register))
    return Block(name, operands, meaning, "rvp_repeat", lambda b: [b.x, b.y, *sizes])
