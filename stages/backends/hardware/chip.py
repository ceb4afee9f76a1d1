"""Identify the chip: compare its identification numbers with the target's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stages.backends.hardware.gdb import Gdb, GdbError
from stages.support.messages.stage_error import StageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stages.backends.targets.chip import ChipNumber


def check_chip(gdb: Gdb, numbers: Sequence[ChipNumber], target: str, place: str) -> list[str]:
    """Return the number for the report: `CPUID 0xc240`.

    Raises StageError for another chip, before any write.

    numbers  those that the target declares
    """
    found = []
    for one in numbers:
        where = one.register_name if one.address is None else f"{one.address:#010x}"
        try:
            if one.address is None:
                value = gdb.value(f"${one.register_name}")
            else:
                value = int.from_bytes(gdb.memory(one.address, 4), "little")
        except GdbError as error:
            message = f"{one.name} of the chip at {place} cannot be read ({where}): {error}"
            raise StageError(message, hint=f"{target} has this number: another board may be connected") from None
        if value & one.mask != one.value:
            raise StageError(
                f"the chip at {place} is not that of {target}: {one.name} ({where}) is {value & one.mask:#x}, "
                f"expected {one.value:#x}",
                hint="nothing was written to it; name the board that is connected with board=NAME",
            )
        found.append(f"{one.name} {value & one.mask:#x}")
    return found
