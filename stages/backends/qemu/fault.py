"""Turn the output of a faulting firmware, plug-in or QEMU into cause and source line."""

import re
import signal
from pathlib import Path

from stages.backends.simulators.process import Finished
from stages.backends.simulators.symbols import is_below_stack, place, stack_remedy
from stages.backends.targets.spec import Target
from stages.support.system.programs import ended_by_signal

FAULT_EXIT_CODE = 99  # of stages/backends/cortex_m/runtime/fault.c and stages/backends/aarch64/runtime/fault.c
LIMIT_EXIT_CODE = 98  # of plugin/counter.c

#: Bits of the Configurable Fault Status Register, Armv7-M and Armv8-M Architecture Reference Manuals.
_CAUSES = {
    0: "jump to an address without memory or into data",
    1: "access to an address without memory, or store to ROM",
    3: "return from an exception to an invalid address",
    4: "stack overflow",
    5: "stack overflow",
    8: "jump to an address without memory or into data",
    9: "access to an address without memory",
    10: "access to an address without memory",
    12: "stack overflow",
    13: "stack overflow",
    16: "illegal instruction",
    17: "jump to an address that is not Thumb code",
    18: "broken return address",
    19: "instruction of a coprocessor or floating-point unit that is off",
    20: "stack overflow",
    24: "misaligned access",
    25: "division by zero",
}
_ADDRESS_VALID = 1 << 7 | 1 << 15  # MMARVALID, BFARVALID
_SIGNALS: dict[int, str] = {
    signal.SIGILL: "illegal instruction",
    signal.SIGSEGV: "access to an address without memory, or store to ROM",
    signal.SIGBUS: "misaligned access",
    signal.SIGFPE: "arithmetic error",
    signal.SIGTRAP: "breakpoint",
    signal.SIGABRT: "the C library gave up",
}
_FAULT = re.compile(
    r"FAULT cfsr=(?P<cfsr>\w+) hfsr=(?P<hfsr>\w+) pc=(?P<pc>\w+) lr=(?P<lr>\w+) addr=(?P<addr>\w+) sp=(?P<sp>\w+)"
)
_SIGNAL = re.compile(r"FAULT signal=(?P<signal>\w+) pc=(?P<pc>\w+) lr=(?P<lr>\w+) addr=(?P<addr>\w+) sp=(?P<sp>\w+)")
_NEAR_STACK = 65536
_BEFORE = re.compile(r"BEFORE pc=(\w+)")
_LIMIT = re.compile(r"LIMIT pc=(\w+)")
_MOST = re.compile(r"MOST pc=(\w+)")
_REGISTER_15 = re.compile(r"R15=(\w+)")


def fault_message(finished: Finished, elf: Path, target: Target) -> str:
    """Return a message of up to three lines for a fault or an abort, '' for a normal end."""
    output = finished.output
    if finished.exit_code == FAULT_EXIT_CODE:
        return _core_fault(output, elf, target) or _signal(output, elf, target) or _unknown(output)
    if "qemu: fatal: Lockup" in output:
        register = _REGISTER_15.search(output)
        pc = _before(output) or (int(register[1], 16) if register else 0)
        where = f"\nin {place(pc, elf, target)}" if _is_code(pc, target) else ""
        return f"the core locked up: a fault in a fault handler, or no handler{where}"
    if finished.exit_code < 0:
        said = output.strip()[-200:].splitlines()[-2:]
        ended = ended_by_signal("QEMU was", finished.exit_code)
        return "\n".join([f"{ended.message}:" if said else ended.message, *said, *ended.hint.splitlines()])
    return ""


def limit_place(finished: Finished, elf: Path, target: Target, *, whole: bool = False) -> str:
    """Return where the instruction limit ended the program; '' if something else did.

    whole  look for the limit of the whole program instead of the one that the program armed
    """
    limit = (_MOST if whole else _LIMIT).search(finished.output)
    return place(int(limit[1], 16), elf, target) if finished.exit_code == LIMIT_EXIT_CODE and limit else ""


def _unknown(output: str) -> str:
    return f"the firmware trapped at an unknown place:\n{output[-200:].strip()}"


def _core_fault(output: str, elf: Path, target: Target) -> str:
    """Return the message for the line of cortex_m/runtime/fault.c; '' without one."""
    match = _FAULT.search(output)
    if match is None:
        return ""
    status, pc, lr, address, sp = (int(match[name], 16) for name in ("cfsr", "pc", "lr", "addr", "sp"))
    pc = pc or _before(output)
    cause = next((name for bit, name in _CAUSES.items() if status >> bit & 1), f"fault with status {status:#010x}")
    if (status & _ADDRESS_VALID and is_below_stack(address, target)) or is_below_stack(sp, target):
        cause = "stack overflow"
    shown = f" (address {address:#x})" if status & _ADDRESS_VALID else ""
    where = place(pc, elf, target) if _is_code(pc, target) else _called_from(pc, lr, elf, target)
    remedy = stack_remedy(target) if cause == "stack overflow" else ""
    return f"the firmware trapped: {cause}{shown}\nin {where}{remedy}"


def _signal(output: str, elf: Path, target: Target) -> str:
    """Return the message for the line of aarch64/runtime/fault.c; '' without one."""
    match = _SIGNAL.search(output)
    if match is None:
        return ""
    number, pc, lr, address, sp = (int(match[name], 16) for name in ("signal", "pc", "lr", "addr", "sp"))
    cause, where = _SIGNALS.get(number, f"signal {number}"), place(pc, elf, target)
    if number == signal.SIGSEGV and pc == address:
        cause, where = "jump to an address without memory or into data", _called_from(pc, lr, elf, target)
    elif number == signal.SIGSEGV and abs(address - sp) < _NEAR_STACK:
        cause = "stack overflow"
    return f"the firmware trapped: {cause} (address {address:#x})\nin {where}"


def _is_code(address: int, target: Target) -> bool:
    """Return whether an address is in a region that holds code."""
    regions = target.memory.regions.values() if target.memory is not None else ()
    return any(region.is_run and region.contains(address) for region in regions)


def _called_from(pc: int, lr: int, elf: Path, target: Target) -> str:
    """Describe an address that is not code, and the call to it.

    lr is the address of the next instruction (plus Thumb bit).
    """
    return f"{pc:#x}, called from {place((lr & ~1) - 1, elf, target)}"


def _before(output: str) -> int:
    """Return the start of the last block before the fault handler, if no address was saved."""
    match = _BEFORE.search(output)
    return int(match[1], 16) if match else 0
