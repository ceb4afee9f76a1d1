"""The memory map of a target: named regions, their contents, and sections of a firmware.

Contents of a firmware, by kind of section:

    code       vectors and instructions          weights   the model's constants
    constants  other constants, and the first    stack     the only one
               values of variables               arena     activations and scratch of the model
    data       other variables

A part goes to the fastest region that may hold it, or to the first of equally fast ones. Weights and arena are divided
among all regions that may hold them (stages.lower.arena.regions). Weights in a writable region are copied there at
start, from a read-only one (`Memory.loaded_from`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, model_validator

from stages.support.options.names import IDENTIFIER_PATTERN, invalid_name
from stages.support.options.strict_model import StrictModel, mistake

Section = Literal["code", "constants", "weights", "data", "stack", "arena"]
CONSTANT: tuple[Section, ...] = ("code", "constants", "weights")
VARIABLE: tuple[Section, ...] = ("data", "stack", "arena")
USUAL: dict[str, tuple[Section, ...]] = {"rom": CONSTANT, "ram": VARIABLE}
# What a stack pointer and the linker scripts' sections are aligned to, in bytes.
_ALIGNMENT = 16
_SIZE = re.compile(r"^([0-9]{1,20})\s*([KMG]?)B?$", re.IGNORECASE)
_HEXADECIMAL = re.compile(r"^0x[0-9a-f]{1,20}$", re.IGNORECASE)
# What GNU ld takes for ORIGIN and LENGTH.
_LINKERS = frozenset({"org", "o", "len", "l"})
_UNIT = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def parse_size(value: object) -> object:
    """Return bytes for an integer, a hexadecimal string or a string such as `64K`, `4M`, `1G`."""
    if isinstance(value, str):
        if _HEXADECIMAL.match(value.strip()):
            return int(value, 16)
        match = _SIZE.match(value.strip())
        if match is None:
            raise ValueError(f"a size is a number of bytes, or one with K, M or G, such as 512K, not {value[:40]!r}")
        return int(match[1]) * _UNIT[match[2].upper()]
    return value


def _parse_address(value: object) -> object:
    """Return an address; the formats of `parse_size`."""
    try:
        return parse_size(value)
    except ValueError:
        raise ValueError("an address is a number, such as 0x80000000") from None


def _addressable(size: int) -> int:
    if size >= 1 << 64:
        raise ValueError(f"{size:,} has more than 64 bits")
    return size


Size = Annotated[int, BeforeValidator(parse_size), Field(ge=0), AfterValidator(_addressable)]
Address = Annotated[int, BeforeValidator(_parse_address), Field(ge=0), AfterValidator(_addressable)]


class Region(StrictModel):
    """A memory region: address, length in bytes, contents, and speed (0 is the fastest).

    By default `rom` holds code, constants and weights, and `ram` holds data, stack and arena. `same_as` names a region
    that is the same memory at other addresses. Both share one capacity.
    """

    origin: Address
    length: Size
    holds: tuple[Section, ...] = ()
    speed: int = Field(default=0, ge=0, le=100)
    same_as: str = ""

    @property
    def end(self) -> int:
        """First address after the region."""
        return self.origin + self.length

    @property
    def addresses(self) -> str:
        """Addresses as text: `0x80000000 to 0x8fffffff`."""
        return f"{self.origin:#x} to {self.end - 1:#x}"

    @property
    def is_written(self) -> bool:
        """True if a program writes to the region."""
        return any(part in VARIABLE for part in self.holds)

    @property
    def is_run(self) -> bool:
        """True if instructions are fetched from the region."""
        return "code" in self.holds

    def contains(self, address: int) -> bool:
        """Return whether the address lies in the region."""
        return self.origin <= address < self.end

    @model_validator(mode="after")
    def _check(self) -> Region:
        if not self.length:
            raise mistake("a region needs at least one byte", "length")
        for name in ("origin", "length"):
            if getattr(self, name) % _ALIGNMENT:
                raise mistake(f"is {getattr(self, name):#x}, no multiple of {_ALIGNMENT} bytes", name)
        return self


class Reserve(StrictModel):
    """Bytes that weights and arena leave free for other sections, if they can go elsewhere.

    `code` is for the regions of code and other constants, `data` for the region of other variables. Only the linker
    knows their actual sizes.
    """

    code: Size = 64 << 10
    data: Size = 4 << 10


class Capacity(StrictModel):
    """Capacity of a region for weights or arena.

    bytes     capacity without the stack
    reserved  bytes of them that are used last

    `loaded_from` is the region that weights are copied from at start (they take space in both), or ''.
    """

    region: str
    bytes: int
    reserved: int
    loaded_from: str = ""


class Memory(StrictModel):
    """Regions by name, and the size of the stack in bytes.

    Every section has a region; regions do not overlap.
    """

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Region]
    stack: Size = 16384
    reserve: Reserve = Reserve()

    @model_validator(mode="before")
    @classmethod
    def _with_usual_parts(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        return {
            name: {**region, "holds": USUAL[name]}
            if name in USUAL and isinstance(region, dict) and "holds" not in region
            else region
            for name, region in given.items()
        }

    @model_validator(mode="after")
    def _check(self) -> Memory:
        for name, region in self.regions.items():
            if wrong := invalid_name(name, IDENTIFIER_PATTERN):
                raise mistake(wrong, name, key=True)
            if name in _LINKERS:
                raise mistake(f"{name} cannot name a region: the linker uses this word", name, key=True)
            if not region.holds:
                raise mistake(f"needs `holds`, a list of: [{', '.join((*CONSTANT, *VARIABLE))}]", name)
        for name, region in self.regions.items():
            self._check_same(name, region)
        for (one, first), (other, second) in combinations(self.regions.items(), 2):
            if first.origin < second.end and second.origin < first.end:
                raise mistake(f"{second.addresses}, overlaps {one}, {first.addresses}", other, beside=(one,))
        for part in (*CONSTANT, *VARIABLE):
            if not any(part in region.holds for region in self.regions.values()):
                raise mistake(f"no region holds {part}")
        if not self.stack or self.stack % _ALIGNMENT:
            raise mistake(f"the stack must be a multiple of {_ALIGNMENT} bytes, not {self.stack:,}", "stack")
        where = self.home("stack")
        if self.stack >= self.regions[where].length:
            message = f"a stack of {self.stack:,} bytes leaves nothing of the {where}'s {self.regions[where].length:,}"
            raise mistake(message, "stack", beside=(where, "length"))
        self._check_reserve()
        return self

    def _check_same(self, name: str, region: Region) -> None:
        """Check that regions with the same memory are read-only."""
        if not region.same_as:
            return
        other = self.regions.get(region.same_as)
        if other is None or other is region or other.same_as:
            known = ", ".join(one for one, each in self.regions.items() if each is not region and not each.same_as)
            raise mistake(f"no region {region.same_as!r} has its own memory; there are {known}", name, "same_as")
        if region.is_written or other.is_written:
            raise mistake("only read-only memory can have two addresses", name, "same_as")
        if region.length > other.length:
            message = f"is {region.length:,} bytes, more than the {other.length:,} of {region.same_as}"
            raise mistake(message, name, "length", beside=(region.same_as, "length"))

    def _check_reserve(self) -> None:
        """Check that a stated reserve fits its region; the default reserve may be larger."""
        places: dict[str, Section] = {"code": "code", "data": "data"}
        for name in sorted(self.reserve.model_fields_set):
            where = self.home(places[name])
            bytes_, length = getattr(self.reserve, name), self.regions[where].length
            if bytes_ > length:
                message = f"{bytes_:,} bytes reserved for {name} are more than the {where}'s {length:,}"
                raise mistake(message, "reserve", name, beside=(where, "length"))

    @property
    def regions(self) -> dict[str, Region]:
        """All regions by name, in the declared order."""
        return self.__pydantic_extra__

    def bytes_of(self, *, written: bool) -> int:
        """Return the bytes of all memory that is written, or only read.

        Memory with two addresses counts once.
        """
        regions = (region for region in self.regions.values() if region.is_written == written and not region.same_as)
        return sum(region.length for region in regions)

    def same(self, name: str) -> tuple[str, ...]:
        """Return the regions that are the same memory as this one, itself first."""
        return (name, *(other for other, region in self.regions.items() if region.same_as == name))

    def homes(self, part: Section) -> list[str]:
        """Return the names of the regions that may hold a section, the fastest first."""
        able = [name for name, region in self.regions.items() if part in region.holds]
        return sorted(able, key=lambda name: self.regions[name].speed)

    def home(self, part: Section) -> str:
        """Return the region that holds a section; for weights and arena the first choice."""
        return self.homes(part)[0]

    def capacities(self, part: Section) -> tuple[Capacity, ...]:
        """Return the capacity for weights or arena of each region with them, the fastest first."""
        return tuple(self._capacity(name, part) for name in self.homes(part))

    def loaded_from(self, region: str) -> str:
        """Return the region from which weights in `region` are copied at start; '' if none.

        The region of other constants if it may hold weights, else the fastest read-only region that may.
        """
        constants = self.home("constants")
        if region == constants or not self.regions[region].is_written:
            return ""
        kept = [name for name in self.homes("weights") if not self.regions[name].is_written]
        return constants if constants in kept or not kept else kept[0]

    def _capacity(self, name: str, part: Section) -> Capacity:
        stack = self.stack if self.home("stack") == name else 0
        code = self.reserve.code if name in (self.home("code"), self.home("constants")) else 0
        data = self.reserve.data if self.home("data") == name else 0
        loaded = self.loaded_from(name) if part == "weights" else ""
        return Capacity(region=name, bytes=self.regions[name].length - stack, reserved=code + data, loaded_from=loaded)

    def region_of(self, part: Section) -> Region:
        """Return the region that holds a section."""
        return self.regions[self.home(part)]

    def name_of(self, address: int) -> str | None:
        """Return the name of the region at an address; None if there is none."""
        return next((name for name, region in self.regions.items() if region.contains(address)), None)

    def beyond(self, bits: int) -> Iterator[tuple[str, str]]:
        """Return the regions that end above an address of `bits` bits, each with the reason."""
        for name, region in self.regions.items():
            if region.end > 1 << bits:
                yield name, f"{region.addresses}, goes beyond what {bits} bits can address"
