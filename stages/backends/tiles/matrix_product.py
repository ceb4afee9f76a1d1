"""The tile of matrix products: y = requantize(bias + x * weights), 8-bit.

Rows of x are output pixels or rows of the batch, columns are output channels. `height` rows are computed at a time:

              columns of a block           block      columns that one group of registers holds
            +--------------------+         height     rows that share each load of weights
    row 0   |  accumulator 0     |         step       elements of the depth per multiply-accumulate
    row 1   |  accumulator 1     |         unroll     steps per round of the loop
    ...     |  ...               |
            +--------------------+

The instruction set supplies the steps (`MatrixSteps`); this module supplies loops and addresses. The last tile begins
so that it ends with the last row: it computes some rows again.

Arguments of the function, in this order:

    x         int8 rows, `x_row` bytes apart
    weights   blocks of columns, packed as the instruction set reads them
    channels  int32 constants of each block, as the instruction set reads them
    y         int8 rows, `y_row` bytes apart
    rows      at least `height`
    fields    int32 FIELDS
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import pairwise

from stages.backends.tiles.program import Program, Register

FIELDS = ("x_row", "y_row", "depth", "columns", "zero_point", "low", "high", "weight_zero_point")
ARGUMENTS = ("input", "weights", "channels", "output", "rows", "fields")


class MatrixSteps(ABC):
    """The steps of a matrix product in one instruction set. Steps emit code into `program`.

    step     elements of the depth that a multiply-accumulate takes
    unroll   steps in a round of the depth's loop
    """

    def __init__(self, program: Program, step: int = 1, unroll: int = 4) -> None:
        self.program, self.step, self.unroll = program, step, unroll

    def field(self, name: str, register: Register) -> None:
        """Load a field of `fields`."""
        self.program("lw", register, self.program.at("fields", 4 * FIELDS.index(name)))

    @abstractmethod
    def prepare(self) -> None:
        """Load the values that all blocks use."""

    @abstractmethod
    def begin_block(self, columns: Register, width: Register) -> None:
        """Set `width` to the columns of the next block, at most `columns`."""

    @abstractmethod
    def accumulators(self, height: int) -> Sequence[Register]:
        """Return `height` accumulators that hold the biases of the block."""

    @abstractmethod
    def multiply(self, sums: Sequence[Register], rows: Sequence[Register], weights: Register, element: int) -> None:
        """Add the products of a step: elements from `element` on of each row. `end_steps` follows."""

    @abstractmethod
    def end_steps(self, weights: Register, elements: int) -> None:
        """Advance `weights` over the steps of `elements` elements."""

    @abstractmethod
    def finish(self, sums: Sequence[Register], out: Register, y_row: Register, scratch: Register) -> None:
        """Requantize and store each row's sums at `out`, rows `y_row` bytes apart."""

    @abstractmethod
    def end_block(self, width: Register) -> None:
        """Advance `channels` to the next block."""


def matrix_product(program: Program, steps: MatrixSteps, height: int) -> None:
    """Write the product of all rows with all columns into `program`."""
    p = program
    columns, width, x_row, y_row, depth = (
        p.register("x", name) for name in ("columns", "width", "x_row", "y_row", "depth")
    )
    steps.field("x_row", x_row)
    steps.field("y_row", y_row)
    steps.field("depth", depth)
    steps.field("columns", columns)
    steps.prepare()
    left, tile, out, panel, count, passed = (
        p.register("x", name) for name in ("rows_left", "tile", "out_tile", "panel", "count", "missing")
    )
    row = p.registers("x", "row", height)
    scratch = p.register("x", "scratch")
    p.note("for each block of columns")
    with p.loop("bnez", columns):
        steps.begin_block(columns, width)
        p("mv", left, p["rows"])
        p("mv", tile, p["input"])
        p("mv", out, p["output"])
        p.note(f"for each tile of {height} rows")
        with p.loop("bgtz", left):
            if height > 1:
                p("addi", passed, left, -height)
                with p.unless("bgez", passed):
                    p.note("the last tile begins earlier: `missing` is minus the rows that are computed again")
                    p("mul", scratch, passed, x_row)
                    p("add", tile, tile, scratch)
                    p("mul", scratch, passed, y_row)
                    p("add", out, out, scratch)
            sums = steps.accumulators(height)
            p("mv", row[0], tile)
            for above, below in pairwise(row):
                p("add", below, above, x_row)
            p("add", tile, row[-1], x_row)
            p("mv", panel, p["weights"])
            _depth(p, steps, sums, row, panel, depth, count)
            steps.finish(sums, out, y_row, scratch)
            p("addi", left, left, -height)
        p("mv", p["weights"], panel)
        steps.end_block(width)
        p("add", p["output"], p["output"], width)
        p("sub", columns, columns, width)


def _depth(
    p: Program,
    steps: MatrixSteps,
    sums: Sequence[Register],
    row: Sequence[Register],
    panel: Register,
    depth: Register,
    count: Register,
) -> None:
    """Emit the loop over the depth: whole rounds, then single steps."""
    whole = steps.step * steps.unroll
    end = p.register("x", "row_end")
    p("andi", count, depth, -whole)
    p("add", end, row[0], depth)
    with p.unless("beqz", count):
        p("add", count, row[0], count)
        p.note(f"{whole} elements of the depth")
        with p.loop("bne", row[0], count):
            for element in range(0, whole, steps.step):
                steps.multiply(sums, row, panel, element)
            steps.end_steps(panel, whole)
            for register in row:
                p("addi", register, register, whole)
    with p.unless("beq", row[0], end):
        p.note("the rest of the depth")
        with p.loop("bne", row[0], end):
            steps.multiply(sums, row, panel, 0)
            steps.end_steps(panel, steps.step)
            for register in row:
                p("addi", register, register, steps.step)
