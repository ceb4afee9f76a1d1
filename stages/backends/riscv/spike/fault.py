"""Turn the trap line that riscv/runtime/trap.c prints into cause, function and source line."""

import re
from pathlib import Path

from stages.backends.simulators.process import Finished
from stages.backends.simulators.symbols import in_memory, is_below_stack, place, stack_remedy
from stages.backends.targets.spec import Target

#: Of the RISC-V privileged architecture, table "Machine cause register values after trap".
_CAUSES = {
    0: "misaligned jump",
    1: "jump to an address without memory",
    2: "illegal instruction",
    3: "breakpoint",
    4: "misaligned load",
    5: "load from an address without memory",
    6: "misaligned store",
    7: "store to an address without memory or to ROM",
    11: "environment call",
}
_TIMER_INTERRUPT = 7
_DEVICE = re.compile(r"^DEVICE pc=(\w{16}): (.*)$", re.MULTILINE)
_TRAP = re.compile(r"TRAP cause=(\w{16}) pc=(\w{16}) tval=(\w{16}) ra=(\w{16}) sp=(\w{16})")


def fault_message(finished: Finished, elf: Path, target: Target) -> str:
    """Return a message of up to three lines for the printed trap."""
    output = finished.output
    match = _TRAP.search(output)
    if match is None:
        return f"the firmware trapped at an unknown place:\n{output[-200:].strip()}"
    cause, pc, tval, ra, sp = (int(value, 16) for value in match.groups())
    interrupt = bool(cause >> 31)  # the top bit of a register, 32 or 64 wide
    code = cause & 0x7FFFFFFF
    name = _CAUSES.get(code, f"trap with cause {cause:#x}") if not interrupt else f"interrupt {code}"
    remedy = ""
    if _is_stack_overflow(code, tval, sp, target):
        name, remedy = "stack overflow", stack_remedy(target)
    where = place(pc, elf, target)
    if not in_memory(pc, target):
        # ra is the instruction after the call.
        where = f"{pc:#x}, called from {place(ra - 1, elf, target)}"
    return f"the firmware trapped: {name} (address {tval:#x})\nin {where}{remedy}"


def device_fault_message(output: str, elf: Path, target: Target) -> str:
    """Return a message of up to two lines for the misuse of a device (devices/machine.cc)."""
    match = _DEVICE.search(output)
    if match is None:
        return f"a device ended the simulation without a reason:\n{output[-200:].strip()}"
    pc = int(match[1], 16)
    return match[2] + (f"\nin {place(pc, elf, target)}" if pc else "")


def limit_place(output: str, elf: Path, target: Target) -> str:
    """Return where the timer interrupt ended the firmware; '' if something else ended it."""
    match = _TRAP.search(output)
    cause = int(match[1], 16) if match else 0
    is_timer = bool(cause >> 31) and cause & 0x7FFFFFFF == _TIMER_INTERRUPT
    return place(int(match[2], 16), elf, target) if match and is_timer else ""


def _is_stack_overflow(code: int, tval: int, sp: int, target: Target) -> bool:
    """Return whether the address lies just below RAM, whose lowest part is the stack."""
    if target.memory is None or code not in (5, 7):
        return False
    return is_below_stack(tval, target) or sp < target.memory.region_of("stack").origin
