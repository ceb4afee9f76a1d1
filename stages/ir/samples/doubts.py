"""What samples make doubtful: labels that are not theirs, numbers that stand otherwise than those of the network."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import TYPE_CHECKING

from stages.support.messages.wording import several

if TYPE_CHECKING:
    from stages.ir.samples.files import Inference

_LEAST_SAMPLES = 20
_MOST_OUTSIDE = 0.1  # ranges from calibration leave some tenths of a percent outside


def at_chance(hits: float, samples: int, classes: int) -> str:
    """A sentence where so many hits are no more than guessing may give: its mean and two standard deviations; else ''.

    Guessing one of `classes` at random hits a binomial number of samples, with p = 1 / classes.
    """
    if samples < _LEAST_SAMPLES or classes < 2:
        return ""
    guessed = samples / classes
    if hits > guessed + 2 * sqrt(guessed * (1 - 1 / classes)):
        return ""
    share, chance = 100 * hits / samples, 100 / classes
    return f"an accuracy of {share:.2f} % is what guessing gives ({chance:.2f} %): are these labels those of the files?"


def outside(inferences: Sequence[Inference]) -> str:
    """A sentence where many of the numbers from files lie outside of what the network's input can hold; else ''."""
    files = [one for one in inferences if one.reals]
    numbers, wrong = sum(one.reals for one in files), sum(one.outside for one in files)
    if not numbers or wrong <= _MOST_OUTSIDE * numbers:
        return ""
    names = several(list(dict.fromkeys(one.name.partition("[")[0] for one in files if one.outside)))
    return (
        f"{100 * wrong / numbers:.1f} % of the numbers in {names} lie outside of what the network's input can hold and "
        "are clipped: are they scaled as the network was trained?"
    )
