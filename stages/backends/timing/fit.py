"""Fit the open parameters of a timing model to measured cycles.

Cycles are linear in the executions of each instruction, which a simulator counts once (`interval_counts` in log.py). So
other figures need no further run. Waits for flash are taken as measured with the model's own figures.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import log

from stages.backends.targets.timing import Cycles, Timing, parameters_of
from stages.backends.timing.instruction import Instruction
from stages.backends.timing.log import Counts
from stages.backends.timing.table import estimated, kinds_of

# Instructions that did not run are left out where more than this many are in a row.
_GAP = 64
_BETTER = 1e-9


@dataclass(frozen=True)
class CountedRun:
    """A measured program: how often which instruction ran, and the measured cycles.

    instructions  of the program by address, at least those that ran
    counts        of each instruction that ran, by its number in `instructions`
    waits         cycles for which the core waited for memory
    """

    instructions: Sequence[Instruction]
    counts: Mapping[int, Counts]
    waits: float
    measured: float

    def reduced(self) -> CountedRun:
        """Return the run without long stretches of instructions that did not run."""
        kept: list[int] = []
        for number in sorted(self.counts):
            begin = kept[-1] + 1 if kept and number - kept[-1] <= _GAP else number
            kept.extend(range(begin, number + 1))
        places = {number: place for place, number in enumerate(kept)}
        counts = {places[number]: ways for number, ways in self.counts.items()}
        return CountedRun([self.instructions[number] for number in kept], counts, self.waits, self.measured)

    def cycles(self, model: Timing) -> float:
        """Return the cycles by a model."""
        kinds = kinds_of(self.instructions, model)
        return self.waits + estimated(self.instructions, kinds, self.counts, model.resolved())

    def error(self, model: Timing) -> float:
        """Return estimated / measured - 1."""
        return self.cycles(model) / self.measured - 1


class _Fit:
    """Distances of rows for figures of parameters.

    A row is computed once for figures of the parameters it uses.
    """

    def __init__(self, model: Timing, rows: Sequence[CountedRun]) -> None:
        self.model = model
        self.rows = [(row, kinds_of(row.instructions, model)) for row in rows]
        uses = {name: parameters_of(rule) for name, rule in model.classes.items()}
        common = parameters_of(model).union(*(parameters_of(pair) for pair in model.pairs))
        self.used = [sorted(common.union(*(uses[kind] for kind in set(kinds) if kind))) for _, kinds in self.rows]
        self.known: dict[tuple[object, ...], float] = {}

    def distance(self, values: Mapping[str, float]) -> float:
        """Return the mean of |log(estimated / measured)|."""
        model: Timing | None = None
        total = 0.0
        for number, (row, kinds) in enumerate(self.rows):
            key = (number, *(values.get(name) for name in self.used[number]))
            if key not in self.known:
                model = model or with_values(self.model, values)
                cycles = row.waits + estimated(row.instructions, kinds, row.counts, model)
                self.known[key] = abs(log(cycles / row.measured))
            total += self.known[key]
        return total / len(self.rows)


def fit(model: Timing, rows: Sequence[CountedRun]) -> dict[str, float]:
    """Return the best figure of each parameter with `try`.

    It begins with the least figures of all, the middle ones, and the most. Each parameter in turn gets the one with
    the least mean of |log(estimated / measured)|, until none changes; the best of the three results is returned. It
    depends only on model and rows.
    """
    distance = _Fit(model, [row.reduced() for row in rows]).distance
    tried = {name: parameter.candidates for name, parameter in model.parameters.items() if parameter.candidates}
    begins = [
        {name: sorted(candidates)[(len(candidates) - 1) * part // 2] for name, candidates in tried.items()}
        for part in range(3)
    ]
    return min((_descended(begin, tried, distance) for begin in begins), key=distance)


def _descended(
    best: dict[str, float], tried: Mapping[str, Sequence[float]], distance: Callable[[Mapping[str, float]], float]
) -> dict[str, float]:
    least = distance(best)
    has_changed = True
    while has_changed:
        has_changed = False
        for name, candidates in tried.items():
            for candidate in candidates:
                other = {**best, name: candidate}
                if candidate != best[name] and (error := distance(other)) < least - _BETTER:
                    best, least, has_changed = other, error, True
    return best


def with_values(model: Timing, values: Mapping[str, float]) -> Timing:
    """Return the model with other figures of parameters."""
    figures: dict[str, Cycles] = {name: (value, value, value) for name, value in values.items()}
    return model.resolved(figures)


def written(text: str, name: str, values: Mapping[str, float]) -> str:
    """Return the text of a timing.yaml with other figures of the parameters of model `name`."""
    begin = re.search(rf"^  {re.escape(name)}:", text, re.MULTILINE)
    assert begin is not None, name
    following = re.search(r"^  \S", text[begin.end() :], re.MULTILINE)
    end = begin.end() + following.start() if following else len(text)
    block = text[begin.start() : end]
    for parameter, value in values.items():
        pattern = rf"^(      {re.escape(parameter)}: \{{cycles: )[-0-9.]+"
        block, count = re.subn(pattern, rf"\g<1>{value:g}", block, flags=re.MULTILINE)
        assert count == 1, parameter
    return text[: begin.start()] + block + text[end:]
