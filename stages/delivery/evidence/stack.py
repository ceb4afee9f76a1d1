"""Static bound of the stack, from frame sizes and the call graph.

Frames of C functions of the build come from `-fstack-usage`. Frames of assembly and libraries are read from the
instructions that move the stack pointer. The call graph is read from the linked firmware.
"""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stages.backends.targets.spec import Target
from stages.backends.toolchain.compiler import binutil, run_command

STACK_USAGE = "-fstack-usage"
_LINE = re.compile(r"^\s*([0-9a-f]+):\t([^\t]+)(?:\t(.*))?$")
# Branches, jumps and calls of all families.
_CALLS = ("bl", "jal", "call")
_JUMPS = ("b", "j", "c.j", "cb", "tb", "call", "tail")
_CALLEE = re.compile(r"([0-9a-f]+) <[^>]+>")
_EXECUTABLE, _UNTYPED = 4, ("STT_NOTYPE", "STB_GLOBAL")
_WORD = {"s": 4, "d": 8, "q": 16}


@dataclass
class Function:
    """A function of the firmware.

    frame    bytes of its frame, None if its size is computed at run time
    calls    addresses of the functions that it calls or jumps to
    pointer  whether it calls through a pointer
    """

    name: str
    frame: int | None = 0
    calls: set[int] = field(default_factory=set)
    pointer: bool = False


@dataclass
class Usage:
    """Frame sizes in object files that were compiled with `-fstack-usage`.

    frames   frame sizes of C functions by name, None for a dynamic frame
    kernels  names of the functions of kernels, which a pointer may call
    """

    frames: dict[str, int | None] = field(default_factory=dict)
    kernels: set[str] = field(default_factory=set)

    def read(self, objects: Mapping[str, Path]) -> None:
        """Read object files, by source file, and the .su files beside them."""
        for source, path in objects.items():
            if source.startswith("kernels/"):
                self.kernels |= {name for name, _, _ in _symbols(path)}
            self._read_frames(path.with_suffix(".su"))

    def _read_frames(self, usage: Path) -> None:
        for line in usage.read_text().splitlines() if usage.is_file() else ():
            place, size, kind = line.split("\t")
            name = place.rpartition(":")[2]
            known = self.frames.get(name, 0)
            is_bounded = known is not None and (kind == "static" or "bounded" in kind)
            self.frames[name] = max(int(size), known) if is_bounded and known is not None else None


def stack_bound(
    elf: Path, target: Target, usage: Usage, roots: Sequence[str], hook: str, measured: int | None
) -> dict[str, Any]:
    """Return the largest stack below each root.

    roots     names of functions; functions that the firmware lacks are skipped. `main` is the whole test program
    hook      a function for measurements, which counts only below `main`
    measured  stack bytes of the run, None if not measured

    A call through a pointer counts as the deepest kernel function that nothing calls directly.

    Returns {functions, roots: [{root, bytes, path, pointer_calls, dynamic, recursive}], measured, holds}. `bytes` is no
    bound if `dynamic` or `recursive`, lists of functions, have an entry. `holds`: whether the run stayed within the
    bound of `main`; None if that is unknown.
    """
    functions = _functions(elf, target, usage.frames)
    start = {function.name: address for address, function in functions.items()}
    called = {callee for function in functions.values() for callee in function.calls}
    targets = [
        address
        for address, function in functions.items()
        if function.name in usage.kernels and address not in called and function.name not in {*roots, hook}
    ]
    rows = []
    for root in (root for root in roots if root in start):
        skipped = -1 if root == "main" else start.get(hook, -1)
        rows.append({"root": root, **_below(functions, start[root], targets, skipped)})
    main = next((row for row in rows if row["root"] == "main"), None)
    is_known = main is not None and measured is not None and not main["dynamic"] and not main["recursive"]
    holds = measured <= main["bytes"] if is_known and main is not None and measured is not None else None
    return {"functions": len(functions), "roots": rows, "measured": measured, "holds": holds}


def _functions(elf: Path, target: Target, usage: Mapping[str, int | None]) -> dict[int, Function]:
    """Return the functions by start address."""
    sizes: dict[int, int] = {}
    functions: dict[int, Function] = {}
    for name, address, size in _symbols(elf):
        functions[address], sizes[address] = Function(name), max(size, sizes.get(address, 0))
    starts = sorted(functions)
    text = run_command([binutil(target, "objdump"), "-d", "--no-show-raw-insn", str(elf)], "objdump")
    step = _STEPS[target.family]
    number = -1
    for match in filter(None, map(_LINE.match, text.splitlines())):
        address = int(match[1], 16)
        while number + 1 < len(starts) and starts[number + 1] <= address:
            number += 1
        if number < 0:
            continue
        function = functions[starts[number]]
        mnemonic, operands = match[2].strip(), match[3] or ""
        lowered = step(mnemonic, operands)
        function.frame = None if lowered is None or function.frame is None else function.frame + lowered
        is_jump = mnemonic.startswith(_JUMPS) and not mnemonic.startswith("bf")  # bfcsel prepares a loop
        callee = _CALLEE.search(operands) if is_jump else None
        if callee is not None:
            # A jump to another function is a tail call. One to a label of the same function is none.
            place = int(callee[1], 16)
            reached = starts[max(0, bisect_right(starts, place) - 1)]
            if not reached <= place < reached + sizes[reached]:
                function.pointer = True  # an entry of the linkage table, whose target is unknown
            elif reached != starts[number] or (place == reached and mnemonic in _CALLS):
                function.calls.add(reached)
        elif _POINTER_CALL.fullmatch(mnemonic):
            function.pointer = True
    for function in functions.values():
        # GCC's clones have a suffix: gemm.constprop.0.
        plain = function.name.partition(".")[0]
        if plain in usage:
            function.frame = usage[plain]
    return functions


def _symbols(elf: Path) -> Iterator[tuple[str, int, int]]:
    """Yield name, address and size of each function of a program or an object file.

    Without a size, a function extends to the end of its section. Functions of a C library may have no type.
    """
    from elftools.elf.elffile import ELFFile

    with elf.open("rb") as stream:
        file = ELFFile(stream)
        table: Any = file.get_section_by_name(".symtab")
        sections = enumerate(file.iter_sections())
        ends = {n: s["sh_addr"] + s["sh_size"] for n, s in sections if s["sh_flags"] & _EXECUTABLE}
        for symbol in table.iter_symbols():
            kind, binding = symbol["st_info"]["type"], symbol["st_info"]["bind"]
            if symbol["st_shndx"] in ends and (kind == "STT_FUNC" or (kind, binding) == _UNTYPED):
                address = symbol["st_value"] & ~1  # bit 0 is set for Thumb code
                yield symbol.name, address, symbol["st_size"] or ends[symbol["st_shndx"]] - address


def _below(functions: Mapping[int, Function], root: int, targets: Sequence[int], skipped: int) -> dict[str, Any]:
    """Return the deepest path from a function, and what makes it uncertain.

    targets  functions that a pointer may call
    skipped  a function that is not counted

    Functions that may call each other through pointers count as if each called the next, once.
    """
    direct = {address: function.calls - {skipped} for address, function in functions.items()}
    pointers = {address: {*targets} - {address} for address, function in functions.items() if function.pointer}
    edges = {address: calls | pointers.get(address, set()) for address, calls in direct.items()}
    group = _groups(edges)
    members: dict[int, list[int]] = {}
    for address, number in group.items():
        members.setdefault(number, []).append(address)
    depths: dict[int, tuple[int, list[str]]] = {}

    def depth(number: int) -> tuple[int, list[str]]:
        if number not in depths:
            own = members[number]
            callees = {group[callee] for address in own for callee in edges[address]} - {number}
            deepest = max((depth(callee) for callee in sorted(callees)), default=(0, []))
            frames = sum(functions[address].frame or 0 for address in own)
            depths[number] = (frames + deepest[0], [*(functions[address].name for address in own), *deepest[1]])
        return depths[number]

    total, path = depth(group[root])
    reached = [address for number in depths for address in members[number]]
    cycles = _groups({address: direct[address] for address in reached})
    sizes = Counter(cycles.values())
    recursive = [address for address in reached if sizes[cycles[address]] > 1 or address in direct[address]]
    return {
        "bytes": total,
        "path": path,
        "pointer_calls": sorted(functions[address].name for address in reached if functions[address].pointer),
        "dynamic": sorted(functions[address].name for address in reached if functions[address].frame is None),
        "recursive": sorted(functions[address].name for address in recursive),
    }


def _groups(edges: Mapping[int, Set[int]]) -> dict[int, int]:
    """Return the number of each function's group; functions of a group reach each other."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    numbers = {address: number for number, address in enumerate(sorted(edges))}
    pairs = [(numbers[a], numbers[b]) for a, reached in edges.items() for b in reached if b in numbers]
    rows, columns = zip(*pairs, strict=True) if pairs else ((), ())
    matrix = csr_array(([1] * len(pairs), (rows, columns)), shape=(len(numbers), len(numbers)))
    labels = connected_components(matrix, connection="strong")[1]
    return {address: int(labels[number]) for address, number in numbers.items()}


# Calls through a register: RISC-V jalr, Arm blx, AArch64 blr.
_POINTER_CALL = re.compile(r"jalr|c\.jalr|blx|blr")
_STEP = re.compile(r"sp,\s*(?:sp,\s*)?#?(-?(?:0x[0-9a-f]+|\d+))\b(?:, lsl #(\d+))?")
_WRITEBACK = re.compile(r"\[sp, #-(\d+)\]!")
_REGISTER = re.compile(r"sp,\s*sp,\s*[a-z]")
_LIST = re.compile(r"\{([^}]*)\}")


def _riscv(mnemonic: str, operands: str) -> int | None:
    """Return the bytes by which an instruction lowers the stack; None if a register decides."""
    if mnemonic not in ("add", "addi", "sub", "c.addi", "c.addi16sp"):
        return 0
    if _REGISTER.match(operands):
        return None
    step = _STEP.match(operands)
    return max(0, -int(step[1], 0)) if step else 0


def _cortex_m(mnemonic: str, operands: str) -> int | None:
    name = mnemonic.partition(".")[0]
    if name == "push" or (name == "stmdb" and operands.startswith("sp!")):
        return 4 * _registers(operands)
    if name in ("vpush", "vstmdb"):
        first = _LIST.search(operands)
        return _WORD[first[1][0]] * _registers(operands) if first else 0
    if name in ("str", "strd") and (writeback := _WRITEBACK.search(operands)):
        return int(writeback[1])
    return _subtraction(name, operands)


def _aarch64(mnemonic: str, operands: str) -> int | None:
    if mnemonic in ("stp", "str") and (writeback := _WRITEBACK.search(operands)):
        return int(writeback[1])
    return _subtraction(mnemonic, operands)


def _subtraction(name: str, operands: str) -> int | None:
    if name not in ("sub", "subw"):
        return 0
    if _REGISTER.match(operands):
        return None
    step = _STEP.match(operands)
    return int(step[1], 0) << int(step[2] or 0) if step else 0


def _registers(operands: str) -> int:
    """Return the number of registers in a list such as `{r4-r7, lr}`."""
    items = _LIST.search(operands)
    count = 0
    for item in items[1].split(",") if items else ():
        first, _, last = item.strip().partition("-")
        count += int(last[1:]) - int(first[1:]) + 1 if last else 1
    return count


_STEPS: Mapping[str, Callable[[str, str], int | None]] = {"riscv": _riscv, "cortex_m": _cortex_m, "aarch64": _aarch64}
FAMILIES = frozenset(_STEPS)
