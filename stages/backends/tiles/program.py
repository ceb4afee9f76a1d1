"""Assembly programs with named registers.

A program is written with virtual registers. `text` assigns them by linear scan (Poletto and Sarkar, 1999): a register
is taken from its first to its last use, and to the end of each loop that it enters with a value. Names become
`#define`s, so the text reads as it was written:

    program = Program("add_one", ("count", "data"), RISCV)
    value = program.register("x", "value")
    with program.loop("bnez", program["count"]):
        program("lw", value, program.at("data"))
        ...
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

_COMMENT = 44  # column of comments


@dataclass(frozen=True)
class RegisterClass:
    """Registers of one kind, in the order in which they are assigned.

    names     physical names, in the order of their numbers where groups are aligned
    saved     names that a function must preserve
    """

    names: tuple[str, ...]
    saved: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Convention:
    """Calling convention: register classes by kind, argument registers, and how saved registers are kept.

    preamble       lines before the function
    save, restore  one line for a register and its offset: `sd {register}, {offset}(sp)`
    adjust         line that adds {bytes} to the stack pointer
    word_bytes     of a saved register; the stack is aligned to 16 bytes
    """

    classes: Mapping[str, RegisterClass]
    arguments: tuple[str, ...]
    preamble: tuple[str, ...] = ()
    save: str = ""
    restore: str = ""
    adjust: str = ""
    ret: str = "ret"
    word_bytes: int = 8


@dataclass(eq=False)
class Register:
    """A virtual register: `size` adjacent registers of a kind, aligned to `size`."""

    name: str
    kind: str
    size: int = 1
    first: int = -1
    last: int = -1

    def __str__(self) -> str:
        return self.name


@dataclass
class _Line:
    text: str
    comment: str = ""
    registers: tuple[Register, ...] = ()


@dataclass
class Program:
    """One function. `arguments` become registers of kind "x", reached by `program[name]`."""

    name: str
    arguments: Sequence[str]
    convention: Convention
    comment: str = ""
    _lines: list[_Line] = field(default_factory=list)
    _registers: dict[str, Register] = field(default_factory=dict)
    _loops: list[tuple[int, int]] = field(default_factory=list)
    _labels: int = 0

    def __post_init__(self) -> None:
        for argument in self.arguments:
            self.register("x", argument).first = 0

    def __getitem__(self, name: str) -> Register:
        return self._registers[name]

    def register(self, kind: str, name: str, size: int = 1) -> Register:
        """Return a new register. Raise ValueError if the name is in use or too short to be a macro."""
        if name in self._registers or len(name) < 3:
            raise ValueError(f"{self.name}: register name {name!r} is in use or shorter than three letters")
        self._registers[name] = Register(name, kind, size)
        return self._registers[name]

    def registers(self, kind: str, name: str, count: int, size: int = 1) -> list[Register]:
        """Return `count` new registers name0, name1, ..."""
        return [self.register(kind, f"{name}{i}", size) for i in range(count)]

    def __call__(self, mnemonic: str, *operands: Register | Address | str | int, comment: str = "") -> None:
        """Add an instruction."""
        text = f"{mnemonic} {', '.join(map(str, operands))}".rstrip()
        self._add(text, comment, operands)

    def encoded(self, encoding: str, *operands: Register, mnemonic: str) -> None:
        """Add an instruction that the assembler does not know.

        `encoding` has a field {0}, {1}, ... for the number of each operand's register.
        """
        shown = f"{mnemonic} {', '.join(map(str, operands))}"
        numbers = encoding.format(*(f"\0{operand.name}\0" for operand in operands))
        self._add(numbers, shown, operands)

    def note(self, text: str) -> None:
        """Add a comment on a line of its own."""
        self._lines.append(_Line(f"/* {text} */"))

    def at(self, base: Register | str, offset: int = 0) -> Address:
        """Return the operand `offset(base)`."""
        return Address(base if isinstance(base, Register) else self[base], offset)

    @contextmanager
    def loop(self, branch: str, *operands: Register) -> Iterator[None]:
        """Repeat the body while `branch operands` is taken at its end."""
        self._labels += 1
        label = f".L{self.name}_{self._labels}"
        first = len(self._lines)
        self._lines.append(_Line(f"{label}:"))
        yield
        self._add(f"{branch} {', '.join([*map(str, operands), label])}", "", operands)
        self._loops.append((first, len(self._lines) - 1))

    @contextmanager
    def unless(self, branch: str, *operands: Register) -> Iterator[None]:
        """Skip the body if `branch operands` is taken."""
        self._labels += 1
        label = f".L{self.name}_{self._labels}"
        self._add(f"{branch} {', '.join([*map(str, operands), label])}", "", operands)
        yield
        self._lines.append(_Line(f"{label}:"))

    def _add(self, text: str, comment: str, operands: Sequence[object]) -> None:
        registers = []
        for operand in operands:
            register = operand.base if isinstance(operand, Address) else operand
            if isinstance(register, Register):
                registers.append(register)
                register.first = len(self._lines) if register.first < 0 else register.first
                register.last = len(self._lines)
        self._lines.append(_Line(text, comment, tuple(registers)))

    def text(self) -> str:
        """Return the function as GNU assembly for the C preprocessor. Raise ValueError if registers run out."""
        names = self._assigned()
        used = {name for register, name in names.items() for name in _group(name, register.size)}
        saved = [name for kind in self.convention.classes.values() for name in kind.names if name in kind.saved & used]
        convention = self.convention
        frame = -(-len(saved) * convention.word_bytes // 16) * 16
        lines = [f"/* {self.comment} */"] if self.comment else []
        lines += convention.preamble
        lines += [f"#define {register.name} {name}" for register, name in names.items()]
        lines += [f'    .section .text.{self.name}, "ax", %progbits', "    .balign 4", f"    .globl {self.name}"]
        lines += [f"    .type {self.name}, %function", f"{self.name}:"]
        if saved:
            lines.append("    " + convention.adjust.format(bytes=-frame))
            lines += _frame(convention.save, saved, convention.word_bytes)
        lines += [self._shown(line, names) for line in self._lines]
        if saved:
            lines += _frame(convention.restore, saved, convention.word_bytes)
            lines.append("    " + convention.adjust.format(bytes=frame))
        lines += [f"    {convention.ret}", f"    .size {self.name}, . - {self.name}"]
        lines += [f"#undef {register.name}" for register in names]
        return "\n".join(lines) + "\n"

    def _shown(self, line: _Line, names: Mapping[Register, str]) -> str:
        numbers = {register.name: re.sub(r"\D", "", names[register]) for register in line.registers}
        physical = {register.name: names[register] for register in line.registers}

        def number(match: re.Match[str]) -> str:
            name = match[1]
            return physical[name] if self._registers[name].kind == "x" else f"x{numbers[name]}"

        text = re.sub("\0([^\0]+)\0", number, line.text)
        if text.endswith(":") or text.startswith("/*"):
            return text if text.endswith(":") else f"    {text}"
        return f"    {text}" + (f"{' ' * max(1, _COMMENT - len(text))}/* {line.comment} */" if line.comment else "")

    def _assigned(self) -> dict[Register, str]:
        """Return the physical register of each virtual one; the first of a group."""
        used = [register for register in self._registers.values() if register.last >= 0]
        for register in used:
            changed = True
            while changed:
                changed = False
                for first, last in self._loops:
                    if register.first < first <= register.last < last:
                        register.last, changed = last, True
        names = dict(zip((self[a] for a in self.arguments), self.convention.arguments, strict=False))
        names = {register: name for register, name in names.items() if register.last >= 0}
        for register in sorted(used, key=lambda r: (r.first, -r.size)):
            if register not in names:
                names[register] = self._free(register, names)
        return names

    def _free(self, register: Register, names: Mapping[Register, str]) -> str:
        available = self.convention.classes[register.kind].names
        taken = {
            name
            for other, first in names.items()
            if other.kind == register.kind and other.first <= register.last and register.first <= other.last
            for name in _group(first, other.size)
        }
        for position in range(0, len(available) - register.size + 1, register.size):
            if taken.isdisjoint(available[position : position + register.size]):
                return available[position]
        raise ValueError(f"{self.name}: no register of kind {register.kind} is free for {register.name}")


@dataclass(frozen=True)
class Address:
    base: Register
    offset: int

    def __str__(self) -> str:
        return f"{self.offset}({self.base.name})" if self.offset else f"({self.base.name})"


def _group(first: str, size: int) -> list[str]:
    """Return the names of a group: v8, v9, ..."""
    if size == 1:
        return [first]
    letters, number = re.fullmatch(r"(\D+)(\d+)", first).groups()  # type: ignore[union-attr]  # groups have numbers
    return [f"{letters}{int(number) + i}" for i in range(size)]


def _frame(pattern: str, saved: Sequence[str], word_bytes: int) -> list[str]:
    return [f"    {pattern.format(register=name, offset=i * word_bytes)}" for i, name in enumerate(saved)]
