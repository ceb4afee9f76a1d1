"""Source places of addresses in a firmware."""

from pathlib import Path

from stages.backends.targets.spec import Target
from stages.backends.toolchain.compiler import binutil, run_command


def place(address: int, elf: Path, target: Target) -> str:
    """Return `function, file:line` of an address, or the address if it is in no function."""
    addr2line = binutil(target, "addr2line")
    function, line = run_command([addr2line, "-f", "-e", str(elf), hex(address)], "addr2line").splitlines()[:2]
    if function == "??":
        return f"{address:#x}"
    path, _, number = line.partition(":")
    number = number.split()[0]  # "12 (discriminator 3)"
    return function if path == "??" else f"{function}, {Path(path).name}:{number}"


def in_memory(address: int, target: Target) -> bool:
    """Return whether the target's memory map has memory at an address."""
    return target.memory is not None and target.memory.name_of(address) is not None


def is_below_stack(address: int, target: Target, slack: int = 4096) -> bool:
    """Return whether an address is just below the stack's region, where an overflow writes."""
    bottom = target.memory.region_of("stack").origin if target.memory is not None else 0
    return bottom - slack <= address < bottom


def stack_remedy(target: Target) -> str:
    """Return the last line of a stack overflow's message; '' if the system has the stack."""
    if target.memory is None:
        return ""
    where = f"in the recipe or of {target.name} in pipeline.yaml"
    return f"\nthe stack has {target.memory.stack:,} bytes: raise memory.stack, {where}"
