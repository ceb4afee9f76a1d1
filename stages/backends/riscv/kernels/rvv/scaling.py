"""Fields of `rvv_asm.h`: a real multiplier as two shifts, multiplier and limit."""

_LOWEST = -(1 << 31)


def scale_fields(multiplier: int, shift: int, suffix: str = "") -> dict[str, int]:
    """Return the fields of a scale with two roundings, in the order of the assembly."""
    right = max(-shift, 0)
    values = {"left": max(shift, 0), "multiplier": multiplier, "limit": 0 if right else _LOWEST, "right": right}
    return {name + suffix: value for name, value in values.items()}


def twice(multiplier: int) -> int:
    """Return the unsigned double of a multiplier, as int32."""
    return 2 * multiplier - (1 << 32 if multiplier >= 1 << 30 else 0)


SCALE = tuple(scale_fields(0, 0))


def why_not_shift(shift: int) -> str:
    """Return why the assembly cannot shift results to the right by -`shift`, '' if it can."""
    return f"a shift of {shift} is not supported" if shift < -31 else ""


def why_not_scale(size: int, multiplier: int, shift: int) -> str:
    """Return why scaled values up to `size` leave 32 bits, '' if they do not.

    Includes the zero point.
    """
    shifted = size << max(shift, 0)
    if shifted >= 1 << 31 or shifted * multiplier >> 31 >= (1 << 31) - 256:
        return f"a multiplier of {multiplier} with a shift of {shift} leaves 32 bits"
    return why_not_shift(shift)
