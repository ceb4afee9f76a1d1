"""Identification numbers of a chip, which a debugger reads before it writes anything."""

from __future__ import annotations

from pydantic import Field, model_validator

from stages.backends.targets.memory import Address
from stages.support.options.strict_model import StrictModel, mistake


class ChipNumber(StrictModel):
    """An identification number, in a word of memory or in a register that a debugger reads.

    name      what its manual calls it, such as DBGMCU_IDCODE
    address   of the word, of 32 bits; or
    register  the name that GDB has for it, such as marchid
    mask      the bits that count, all where it is not given
    value     what they are
    """

    name: str
    address: Address | None = None
    register_name: str = Field(default="", alias="register", pattern=r"^[A-Za-z0-9_]*$")
    mask: Address = 0xFFFF_FFFF_FFFF_FFFF
    value: Address

    @model_validator(mode="after")
    def _check(self) -> ChipNumber:
        if (self.address is None) == (not self.register_name):
            raise mistake("needs an address or a register, one of the two", "address")
        if self.value & ~self.mask:
            raise mistake(f"has bits beside the mask {self.mask:#x}", "value", beside=("mask",))
        return self
