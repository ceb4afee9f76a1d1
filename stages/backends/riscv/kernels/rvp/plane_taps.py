"""Grouping of window taps that rvp.depthwise_planes_s8 processes at once."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Expr = Any  # a TIR expression or a Python int


def _choose(condition: bool, then: int, otherwise: int) -> int:
    return then if condition else otherwise


@dataclass(frozen=True)
class Taps:
    """Taps of a window of `rows` x `columns`, for outputs along a row.

    Where weights are sums of two addends, the rows of the second follow the first's.

    A couple is two taps `apart` columns from each other: the next output multiplies the second tap's pixel by the first
    tap. Two couples form a quad, with the second taps as its second pair. A remaining couple and taps without a couple
    form pairs; one tap may stay single. Example for five columns, `apart` 1 and 2:

      apart 1   a0 a1 b0 b1 s           apart 2   a0 b0 a1 b1 s
    """

    rows: int
    columns: int
    apart: int

    @property
    def _couples(self) -> int:
        """Couples per row."""
        whole, left = divmod(self.columns, 2 * self.apart)
        return whole * self.apart + max(left - self.apart, 0)

    @property
    def _alone(self) -> int:
        """Taps of a row without a couple."""
        return self.columns - 2 * self._couples

    @property
    def quads(self) -> int:
        """Instructions that multiply four taps."""
        return self.rows * self._couples // 2

    @property
    def pairs(self) -> int:
        """Instructions that multiply two taps."""
        return self.rows * self._couples % 2 + self.rows * self._alone // 2

    @property
    def has_single(self) -> bool:
        """Whether one tap is multiplied alone."""
        return bool(self.rows * self._alone % 2)

    @property
    def words(self) -> int:
        """Words of weights per channel: two per quad, one per pair or single tap."""
        return 2 * self.quads + self.pairs + self.has_single

    @property
    def joined(self) -> list[tuple[int, int]]:
        """Row and column of the joined taps.

        The first taps of both couples of each quad, both taps of each pair, the single tap.
        """
        found: dict[tuple[int, int], tuple[int, int]] = {}
        for row in range(self.rows):
            for column in range(self.columns):
                word, half = self.place(row, column)
                found[word, half] = row, column
        words = [*range(0, 2 * self.quads, 2), *range(2 * self.quads, self.words)]
        return [found[word, half] for word in words for half in (0, 1) if (word, half) in found]

    def place(self, row: Expr, column: Expr, choose: Callable[[Expr, Expr, Expr], Expr] = _choose) -> tuple[Expr, Expr]:
        """Return the number of a tap's weight word, and its half of that word (0 or 1).

        `choose`: condition ? first : second, of integers.
        """
        block, within = column // (2 * self.apart), column % (2 * self.apart)
        number, second = block * self.apart + within % self.apart, within // self.apart
        couple = row * self._couples + number
        in_quad = couple // 2 * 2 + second, couple % 2
        in_pair = 2 * self.quads, second
        alone = row * self._alone + number - self._couples
        none = 2 * self.quads + self.rows * self._couples % 2 + alone // 2, alone % 2
        is_quad, is_couple = couple < 2 * self.quads, number < self._couples
        word, half = (
            choose(is_couple, choose(is_quad, quad, pair), other)
            for quad, pair, other in zip(in_quad, in_pair, none, strict=True)
        )
        return word, half

    def cost(self, outputs: int, *, direct: bool, load: int) -> int:
        """Return the instructions of some outputs, from counts.

        `direct`: addresses need extra instructions. `load`: instructions that load a pixel.
        """
        step, both = 2 if direct else 0, 2 * load + 2
        quad = 19 + both * (outputs + 1) + 8 * outputs + step * (outputs + 1)
        pair = 15 + (both + 4) * outputs + step * outputs
        single = 7 + (load + 4) * outputs + (outputs + 1 if direct else 0)
        return self.quads * quad + self.pairs * pair + self.has_single * single

    @property
    def are_few(self) -> bool:
        """Whether all weights fit in registers: a quad, two pairs, or a pair and a single tap."""
        return self.words == 2

    def cost_of_few(self, *, direct: bool, load: int) -> float:
        """Return the instructions for one output's sums of such a window, from counts (`cost`)."""
        pointers = 2 if self.quads else 4 - self.has_single
        brought = pointers * load + (2 if self.quads else 4 - 2 * self.has_single)
        return 12 + brought + (pointers + 1 if direct else pointers / 2)
