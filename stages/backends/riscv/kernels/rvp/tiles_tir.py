"""TIR of layers of two operands in tiles: expansions, and calls for rows."""

from typing import Any

from stages.backends.kernels.kernel import Lowering
from stages.backends.kernels.tir.block import Block, Function, Operand, loop, store
from stages.backends.kernels.tir.broadcast import rows_block
from stages.backends.kernels.tir.strides import Axis, offset
from stages.backends.riscv.kernels.rvp.tiles import Operand as Expanded
from stages.backends.riscv.kernels.rvp.tiles import Repeat, Tiles
from stages.ir.graph import LayerView


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
