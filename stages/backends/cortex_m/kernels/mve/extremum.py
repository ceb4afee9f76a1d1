"""MAXIMUM and MINIMUM, with broadcasting."""

from typing import ClassVar

from stages.backends.cortex_m.kernels.arm_dsp import extremum


class Extremum(extremum.Extremum):
    """The larger or smaller of two bytes, 16 at a time."""

    name = "mve.extremum_s8"
    family: ClassVar[str] = "mve"
    register_bytes: ClassVar[int] = 16
    prices: ClassVar[tuple[float, float, float]] = (5.0, 0.3, 15.0)


class Extremum16(Extremum):
    """MAXIMUM and MINIMUM of int16, eight elements at a time."""

    name = "mve.extremum_s16"
    bits = 16
