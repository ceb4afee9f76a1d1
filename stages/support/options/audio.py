"""The option `audio` of sample files: how WAV files become inputs."""

import re
from typing import Annotated

from pydantic import BeforeValidator, Field

from stages.support.options.strict_model import StrictModel

SAMPLE_RATE = 16_000
"""Samples per second of a network without a front end, if the recipe states none."""

_TIME = re.compile(r"^([0-9]{1,6}(?:\.[0-9]{1,6})?) ?ms$")


def _check_step(value: object) -> object:
    is_count = type(value) is int and 1 <= value < 2**31
    if not is_count and not (isinstance(value, str) and _TIME.match(value) and float(value.removesuffix("ms"))):
        raise ValueError("a step is a number of samples, or a time such as 20ms")
    return value


Step = Annotated[int | str, BeforeValidator(_check_step)]


class AudioOptions(StrictModel):
    """How WAV files become inputs: windows of samples, as long as the network's input.

    sample_rate  samples per second of the files, by default those of the front end, or 16000
    step         distance between the beginnings of two windows: samples, or a time such as 20ms; by default a window
    seconds      length that is used of each file, from its beginning; by default all
    """

    sample_rate: Annotated[int, Field(ge=1_000, le=1_000_000)] | None = None
    step: Step | None = None
    seconds: Annotated[float, Field(gt=0, le=1e6)] | None = None


def samples_of(step: Step, rate: int) -> float:
    """Return a step in samples; a time may give a fraction."""
    return step if isinstance(step, int) else float(step.removesuffix("ms")) * rate / 1000
