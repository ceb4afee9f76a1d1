"""The linker script of a family, filled in with the regions of the target's memory map.

Weights and arena have separate sections (`own_section`) if they are in other regions than constants and variables. The
compile stage passes the names of these sections to the emitted sources. Weights in a writable region are loaded into a
read-only one; start-up code copies them, like .data.
"""

from collections.abc import Container
from pathlib import Path
from string import Template
from typing import Literal

from stages.backends.targets.memory import Memory, Region

_LIKE: dict[Literal["weights", "arena"], Literal["constants", "data"]] = {"weights": "constants", "arena": "data"}
_WEIGHTS = """
  .weights_{region} : ALIGN(16) {{
    *({section})
    . = ALIGN(16);
  }} > {region}
"""
_COPIED = """
  .weights_{region} : ALIGN(16) {{
    __copied_{number}_start = .;
    *({section})
    . = ALIGN(16);
    __copied_{number}_end = .;
  }} > {region} AT > {load}
  __copied_{number}_load = LOADADDR(.weights_{region});
"""
# Nothing clears the arena: a layer writes before another reads.
_ARENA = """
  .arena_{region} (NOLOAD) : ALIGN(64) {{
    *({section})
    . = ALIGN(16);
  }} > {region} AT > {region}
"""


def fill(template: Path, memory: Memory) -> str:
    """Return the script with the regions, the region of each section and the size of the stack."""
    homes = {part: memory.home(part) for part in ("code", "constants", "data", "stack")}
    return Template(template.read_text()).substitute(
        regions="\n".join(_line(name, region) for name, region in memory.regions.items()),
        others="".join(_symbols(number, name) for number, name in enumerate(_others(memory))),
        stack_bytes=hex(memory.stack),
        weights=_apart(_WEIGHTS, "weights", memory, but=_copied(memory)),
        copied="".join(
            _COPIED.format(number=number, region=region, section=own_section("weights", region, memory), load=load)
            for number, (region, load) in enumerate(_copied(memory).items())
        ),
        arena=_apart(_ARENA, "arena", memory),
        **homes,
    )


def own_section(part: Literal["weights", "arena"], region: str, memory: Memory) -> str:
    """Return the section of weights or arena in a region.

    '' in the region of the other constants or variables.
    """
    if region == memory.home(_LIKE[part]):
        return ""
    return f"{'.weights' if part == 'weights' else '.bss.arena'}.{region}"  # .bss, so that GCC keeps no zeros for it


def _copied(memory: Memory) -> dict[str, str]:
    """Return the regions with weights that are copied at start, with their load regions."""
    loads = {region: memory.loaded_from(region) for region in memory.homes("weights")}
    return {region: load for region, load in loads.items() if load}


def _apart(text: str, part: Literal["weights", "arena"], memory: Memory, but: Container[str] = ()) -> str:
    sections = {region: own_section(part, region, memory) for region in memory.homes(part) if region not in but}
    return "".join(text.format(region=region, section=section) for region, section in sections.items() if section)


def start_flags(memory: Memory | None) -> tuple[str, ...]:
    """Return macros for the start-up code, for memory maps other than one ROM and one RAM.

    `OTHER_REGIONS` has `OTHER(number, access)` for each region other than those of code and data. Symbols of the script
    give the bounds, so the same object files can be linked for the board and for the simulator's machine. `COPIED` has
    `COPY(number)` for each section of weights that is copied.
    """
    if memory is None:
        return ()
    flags = ["-DCODE_IS_WRITTEN"] if memory.region_of("code").is_written else []
    if memory.home("code") == memory.home("data"):
        flags.append("-DCODE_BESIDE_DATA")
    others = list(_others(memory).values())
    if others:
        access = ["READ_AND_WRITE" if region.is_written else "READ_AND_RUN" for region in others]
        flags.append(f"-DOTHER_REGIONS={''.join(f'OTHER({n},{what})' for n, what in enumerate(access))}")
    read_only = [number for number, region in enumerate(others) if not region.is_written]
    copied = "".join(f"COPY({number})" for number in range(len(_copied(memory))))
    if copied:
        flags.append(f"-DCOPIED={copied}")
    return (*flags, *(f"-DOTHER_ROM={number}" for number in read_only[:1]))


def _others(memory: Memory) -> dict[str, Region]:
    usual = (memory.home("code"), memory.home("data"))
    return {name: region for name, region in memory.regions.items() if name not in usual}


def _symbols(number: int, name: str) -> str:
    start = f"  __other_{number}_start = ORIGIN({name});\n"
    return f"{start}  __other_{number}_end = ORIGIN({name}) + LENGTH({name});\n"


def _line(name: str, region: Region) -> str:
    attributes = "r" + ("w" if region.is_written else "") + ("x" if region.is_run else "")
    return f"  {name} ({attributes}) : ORIGIN = {region.origin:#x}, LENGTH = {region.length:#x}"
