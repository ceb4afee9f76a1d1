"""Identify the chip: compare its identification numbers with the target's."""

from collections.abc import Sequence

from stages.backends.hardware.gdb import Gdb, GdbError
from stages.backends.targets.chip import ChipNumber
from stages.support.messages.stage_error import StageError


def check_chip(gdb: Gdb, numbers: Sequence[ChipNumber], target: str, place: str) -> list[str]:
    """Return the number for the report: `CPUID 0xc240`.

    Raises StageError for another chip, before any write.

    numbers  those that the target declares
    """
    values = []
    for number in numbers:
        where = number.register_name if number.address is None else f"{number.address:#010x}"
        try:
            if number.address is None:
                value = gdb.value(f"${number.register_name}")
            else:
                value = int.from_bytes(gdb.memory(number.address, 4), "little")
        except GdbError as error:
            message = f"{number.name} of the chip at {place} cannot be read ({where}): {error}"
            raise StageError(message, hint=f"{target} has this number: another board may be connected") from None
        if value & number.mask != number.value:
            raise StageError(
                f"the chip at {place} is not that of {target}: {number.name} ({where}) is {value & number.mask:#x}, "
                f"expected {number.value:#x}",
                hint="nothing was written to it; name the board that is connected with board=NAME",
            )
        values.append(f"{number.name} {value & number.mask:#x}")
    return values
