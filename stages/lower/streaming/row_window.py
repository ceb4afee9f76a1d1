"""The input rows that a layer needs for an output row: an integer function of the row."""

from typing import NamedTuple


class RowWindow(NamedTuple):
    """The rows of its inputs that a layer needs for each row of its output.

    Output row `i` needs `size` rows from `(i * stride + shift) // rate - padding` on. So `rate` rows of the output
    advance the input by `stride` rows.

    fill         value of a padding row's elements, None if the layer does not use them
    accumulates  the layer adds up all rows, and has one result: a global pool
    blocks       all calls make multiples of `rate` rows
    """

    size: int = 1
    stride: int = 1
    padding: int = 0
    fill: int | None = 0
    accumulates: bool = False
    rate: int = 1
    shift: int = 0
    blocks: bool = False

    @property
    def is_rigid(self) -> bool:
        """Whether each row of the output advances the input by one, without an offset."""
        return (self.stride, self.rate, self.shift) == (1, 1, 0)

    @property
    def step(self) -> int:
        """The number that the rows of each call are a multiple of."""
        return self.rate if self.blocks else 1

    def first(self, row: int) -> int:
        """Return the first input row that an output row needs, below 0 for padding."""
        return (row * self.stride + self.shift) // self.rate - self.padding

    def end(self, row: int) -> int:
        """Return the input row after the last one that an output row needs."""
        return self.first(row) + self.size

    def span(self, rows: int) -> int:
        """Return the input rows that a call for `rows` rows of the output needs at most."""
        remainder = 0 if self.blocks else self.rate - 1
        return ((rows - 1) * self.stride + remainder) // self.rate + self.size
