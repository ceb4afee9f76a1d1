"""A target as declared in `pipeline.yaml`: an ISA, a toolchain, a memory map and a simulator."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

_SIZE = re.compile(r"^(\d+)\s*([KMG]?)B?$", re.IGNORECASE)
_UNIT = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def parse_size(value: object) -> object:
    """Bytes from an integer, a hexadecimal string or a string such as `64K`, `4M`, `1G`."""
    if isinstance(value, str):
        if value.lower().startswith("0x"):
            return int(value, 16)
        match = _SIZE.match(value.strip())
        if match is None:
            raise ValueError("a size is a number of bytes, or a number with K, M or G, such as 512K")
        return int(match[1]) * _UNIT[match[2].upper()]
    return value


Size = Annotated[int, BeforeValidator(parse_size), Field(ge=0)]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Compiler(_Model):
    """A GCC: its command, the lowest version, the flags every file gets and the Debian packages that bring it."""

    command: str
    minimum: str = "12"
    flags: tuple[str, ...] = Field(default=(), strict=False)
    packages: tuple[str, ...] = Field(default=(), strict=False)


class Region(_Model):
    """A memory region of the linker script, in bytes."""

    origin: Size
    length: Size


class Memory(_Model):
    """`rom` holds code and weights, `ram` the arena, data and stack. `stack` is the stack's size in bytes."""

    rom: Region
    ram: Region
    stack: Size = 16384


class Simulator(_Model):
    """Which simulator runs the firmware, and as what.

    Spike: `isa` is its ISA string, `plugins` its plug-ins. QEMU: `command` is the emulator; `machine` names a whole
    machine of it, and without one it runs a Linux program in user mode on `cpu`. `packages` are the Debian packages
    that bring `command`.
    """

    kind: Literal["spike", "native", "qemu"]
    isa: str = ""
    command: str = ""
    machine: str = ""
    cpu: str = ""
    plugins: tuple[str, ...] = Field(default=(), strict=False)
    packages: tuple[str, ...] = Field(default=(), strict=False)


class Target(_Model):
    """One entry under `targets:`.

    `extensions` names each instruction-set extension with the exact draft or version, such as `{rvp: 0.9.11}`.
    `kernels` are the folders of `stages/kernels` whose kernels may be chosen. `word_bits` is XLEN / the register
    width. `memory` is absent on the host, where the operating system provides it.
    """

    name: str
    family: str
    isa: str
    abi: str = ""
    word_bits: Literal[32, 64]
    fpu: bool = False
    extensions: dict[str, str] = Field(default_factory=dict)
    kernels: tuple[str, ...] = Field(default=("generic",), strict=False)
    compiler: Compiler
    memory: Memory | None = None
    simulator: Simulator
    counter: Literal["minstret", "qemu-plugin", "none"]
