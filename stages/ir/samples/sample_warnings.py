"""Warnings about samples: labels that do not match, numbers with another scale."""

from collections.abc import Sequence
from math import sqrt

from stages.ir.samples.files import Inference
from stages.support.messages.wording import several

_LEAST_SAMPLES = 20
_MOST_OUTSIDE = 0.1  # ranges from calibration leave some tenths of a percent outside


def chance_warning(hits: float, samples: int, classes: int) -> str:
    """Return a warning if the hits are no better than chance, else ''.

    Guessing one of `classes` gives a binomial number of hits, p = 1 / classes. The limit is its mean plus two standard
    deviations.
    """
    if samples < _LEAST_SAMPLES or classes < 2:
        return ""
    guessed = samples / classes
    if hits > guessed + 2 * sqrt(guessed * (1 - 1 / classes)):
        return ""
    share, chance = 100 * hits / samples, 100 / classes
    return f"an accuracy of {share:.2f} % is what guessing gives ({chance:.2f} %): are these labels those of the files?"


def clipping_warning(inferences: Sequence[Inference]) -> str:
    """Return a warning if many numbers from files are outside of the input's range, else ''."""
    files = [inference for inference in inferences if inference.reals]
    numbers = sum(inference.reals for inference in files)
    wrong = sum(inference.outside for inference in files)
    if not numbers or wrong <= _MOST_OUTSIDE * numbers:
        return ""
    names = several(list(dict.fromkeys(sample.name.partition("[")[0] for sample in files if sample.outside)))
    return (
        f"{100 * wrong / numbers:.1f} % of the numbers in {names} lie outside of what the network's input can hold and "
        "are clipped: are they scaled as the network was trained?"
    )
