"""Identification numbers of a chip, which a debugger reads before it writes anything."""

from __future__ import annotations

from pydantic import Field, model_validator

from stages.backends.targets.memory import Address
from stages.support.options.strict_model import StrictModel, mistake


class ChipNumber(StrictModel):
    """An identification number, in a word of memory or in a register that a debugger reads.

    name      its name in the manual, such as DBGMCU_IDCODE
    address   address of a 32-bit word; or
    register  GDB's name of a register, such as marchid
    mask      the bits to compare; default: all
    value     their expected value
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
            raise mistake(f"has bits outside of the mask {self.mask:#x}", "value", beside=("mask",))
        return self
