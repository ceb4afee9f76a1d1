"""Exact instruction counts of a firmware by function.

`python -m stages.backends.qemu.profile TARGET firmware.elf inputs.bin` runs the firmware on inputs.bin of a
simulate artifact.
"""

import bisect
import shutil
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from stages.backends.qemu.fault import fault_message
from stages.backends.qemu.run import qemu_command
from stages.backends.simulators.process import run_process
from stages.backends.targets.spec import Target
from stages.support.messages.stage_error import StageError
from stages.support.system.scratch import temporary_folder

_SHOWN = 25


def profile(elf: Path, target: Target, inputs: Path, *, timeout: float = 600) -> Counter[str]:
    """Return instructions by function, with harness and start-up, without the counter itself."""
    with temporary_folder("profile") as folder:
        shutil.copy(inputs, folder / "inputs.bin")
        blocks = folder / "blocks"
        command = qemu_command(elf.resolve(), target, profile=blocks)
        finished = run_process(command, folder, timeout=timeout, watch=lambda: None)
        if finished.exit_code != 0:
            message = fault_message(finished, elf, target) or f"the firmware ended with status {finished.exit_code}"
            raise StageError(message)
        return by_function(elf, blocks.read_text())


def by_function(elf: Path, blocks: str) -> Counter[str]:
    """Sum the plug-in's lines {address (hex), instructions, runs} by function of each block.

    A block never spans a branch, so it lies in one function.
    """
    starts, names = _functions(elf)
    counts: Counter[str] = Counter()
    for line in blocks.splitlines():
        address, instructions, runs = line.split()
        at = bisect.bisect_right(starts, int(address, 16)) - 1
        counts[names[at] if at >= 0 else "?"] += int(instructions) * int(runs)
    return counts


def _functions(elf: Path) -> tuple[list[int], list[str]]:
    """Return addresses and names of all functions by address, without Arm's Thumb bit."""
    from elftools.elf.elffile import ELFFile

    with elf.open("rb") as handle:
        image = ELFFile(handle)
        table: Any = image.get_section_by_name(".symtab")
        is_thumb = image["e_machine"] == "EM_ARM"
        functions = sorted(
            (symbol["st_value"] & ~1 if is_thumb else symbol["st_value"], symbol.name)
            for symbol in (table.iter_symbols() if table is not None else ())
            if symbol["st_info"]["type"] == "STT_FUNC"
        )
    return [address for address, _ in functions], [name for _, name in functions]


def main(arguments: list[str]) -> int:
    """Print the functions with the most instructions."""
    from stages.backends.targets.load import load_target

    if len(arguments) != 3:
        print("usage: python -m stages.backends.qemu.profile TARGET firmware.elf inputs.bin", file=sys.stderr)
        return 2
    counts = profile(Path(arguments[1]), load_target(arguments[0]), Path(arguments[2]))
    total = counts.total()
    for name, count in counts.most_common(_SHOWN):
        print(f"{count:15,} {count / total:6.1%}  {name}")
    print(f"{total:15,}         total")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except StageError as error:
        sys.exit(str(error))
