"""Which taps of a window rvp.depthwise_planes_s8 meets at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Expr = Any  # a TIR expression or a Python int


def _choose(condition: bool, then: int, otherwise: int) -> int:
    return then if condition else otherwise


@dataclass(frozen=True)
class Taps:
    """The taps of a window of so many rows and columns, as its outputs run along a row; of both addends where
    weights are sums of two, the second one's rows behind the first's.

    Of a couple of taps the second, `apart` columns from the first, is what the next output meets with the first. Two
    couples, in order, are a quad; the second taps of both are its second pair. What is left makes pairs: the two of a
    couple, then the taps of no couple; of these, one may be single. Drawn for five columns, `apart` 1 and 2:

      apart 1   a0 a1 b0 b1 s           apart 2   a0 b0 a1 b1 s
    """

    rows: int
    columns: int
    apart: int

    @property
    def _couples(self) -> int:
        """Of a row."""
        whole, left = divmod(self.columns, 2 * self.apart)
        return whole * self.apart + max(left - self.apart, 0)

    @property
    def _alone(self) -> int:
        """Taps of a row that are in no couple."""
        return self.columns - 2 * self._couples

    @property
    def quads(self) -> int:
        return self.rows * self._couples // 2

    @property
    def pairs(self) -> int:
        return self.rows * self._couples % 2 + self.rows * self._alone // 2

    @property
    def has_single(self) -> bool:
        return bool(self.rows * self._alone % 2)

    @property
    def words(self) -> int:
        """Words of weights for each channel: two for a quad, one for a pair or a single tap."""
        return 2 * self.quads + self.pairs + self.has_single

    @property
    def joined(self) -> list[tuple[int, int]]:
        """Row and column of the first taps of both couples of each quad, of both taps of each pair, of a single tap."""
        found: dict[tuple[int, int], tuple[int, int]] = {}
        for row in range(self.rows):
            for column in range(self.columns):
                word, half = self.place(row, column)
                found[word, half] = row, column
        words = [*range(0, 2 * self.quads, 2), *range(2 * self.quads, self.words)]
        return [found[word, half] for word in words for half in (0, 1) if (word, half) in found]

    def place(self, row: Expr, column: Expr, choose: Callable[[Expr, Expr, Expr], Expr] = _choose) -> tuple[Expr, Expr]:
        """The word of weights that has this tap and which half; `choose`: condition ? first : second, of integers."""
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
        """Instructions for so many outputs, as counted; `direct`: with addresses that no instruction holds; `load`:
        those that bring a pixel.
        """
        step, both = 2 if direct else 0, 2 * load + 2
        quad = 19 + both * (outputs + 1) + 8 * outputs + step * (outputs + 1)
        pair = 15 + (both + 4) * outputs + step * outputs
        single = 7 + (load + 4) * outputs + (outputs + 1 if direct else 0)
        return self.quads * quad + self.pairs * pair + self.has_single * single

    @property
    def are_few(self) -> bool:
        """Whether all weights stay in registers, those of a quad, of two pairs, or of a pair and a single tap."""
        return self.words == 2

    def cost_of_few(self, *, direct: bool, load: int) -> float:
        """Instructions for the sums of one output of such a window, as counted; see `cost`."""
        pointers = 2 if self.quads else 4 - self.has_single
        brought = pointers * load + (2 if self.quads else 4 - 2 * self.has_single)
        return 12 + brought + (pointers + 1 if direct else pointers / 2)
