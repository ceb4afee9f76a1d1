"""Assembly programs with named registers.

A program is written with virtual registers. `text` assigns them by linear scan (Poletto and Sarkar, 1999): a register
is taken from its first to its last use, and to the end of each loop that it enters with a value. If registers run out,
those with the fewest uses in inner loops stay on the stack. Names become `#define`s, so the text reads as it was
written:

    program = Program("add_one", ("count", "data"), RISCV)
    value = program.register("x", "value")
    with program.loop("bnez", program["count"]):
        program("lw", value, program.at("data"))
        ...
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

_COMMENT = 44  # column of comments
_LOOP_WEIGHT = 8  # a use in a loop counts as so many outside of it


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
    """Calling convention of an instruction set.

    classes        register classes by kind, which may share registers; kind "x" can be kept on the stack
    arguments      registers of the arguments
    results        number of leading operands that an instruction writes: 0 for stores and branches
    enter, leave   lines that begin and end a function: from the registers to save and the bytes of its other words
    preamble       lines before the function
    save, restore  one line for a register and its offset: `sd {register}, {offset}(sp)`
    address        operand of a base and an offset: `{offset}({base})`
    word_bytes     of a register on the stack
    """

    classes: Mapping[str, RegisterClass]
    arguments: tuple[str, ...]
    results: Callable[[str], int]
    enter: Callable[[Sequence[str], int], list[str]]
    leave: Callable[[Sequence[str], int], list[str]]
    preamble: tuple[str, ...] = ()
    save: str = ""
    restore: str = ""
    address: str = "{offset}({base})"
    word_bytes: int = 8


@dataclass(eq=False)
class Register:
    """A virtual register: `size` adjacent registers of a kind, aligned to `size`."""

    name: str
    kind: str
    size: int = 1
    is_reload: bool = False  # of a register that is kept on the stack

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Address:
    """An operand in memory."""

    base: Register
    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(eq=False)
class _Line:
    text: str
    comment: str = ""
    reads: frozenset[Register] = frozenset()
    writes: frozenset[Register] = frozenset()

    @property
    def registers(self) -> frozenset[Register]:
        return self.reads | self.writes


@dataclass
class Program:
    """One function. `arguments` become registers of kind "x", reached by `program[name]`."""

    name: str
    arguments: Sequence[str]
    convention: Convention
    comment: str = ""
    _lines: list[_Line] = field(default_factory=list)
    _registers: dict[str, Register] = field(default_factory=dict)
    _loops: list[tuple[_Line, _Line]] = field(default_factory=list)
    _words: dict[str, None] = field(default_factory=dict)
    _labels: int = 0
    _slots: int = 0

    def __post_init__(self) -> None:
        for argument in self.arguments:
            self.register("x", argument)

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
        results = self.convention.results(mnemonic)
        reads, writes = _registers_of(operands[results:]), _registers_of(operands[:results])
        after = (each for each in operands if isinstance(each, Address) and not each.text.endswith((")", "]")))
        writes |= _registers_of([*after])  # the base is incremented
        if writes and isinstance(operands[0], Register) and operands[0].kind != "x":
            reads |= writes  # of a vector instruction, which may accumulate
        text = f"{mnemonic} {', '.join(map(str, operands))}".rstrip()
        self._lines.append(_Line(text, comment, reads, writes))

    def encoded(self, encoding: str, *operands: Register, mnemonic: str) -> None:
        """Add an instruction that the assembler does not know.

        It may read its result, the first operand.
        `encoding` has a field {0}, {1}, ... for the number of each operand's register.
        """
        shown = f"{mnemonic} {', '.join(map(str, operands))}"
        numbers = encoding.format(*(f"\0{operand.name}\0" for operand in operands))
        self._lines.append(_Line(numbers, shown, _registers_of(operands), _registers_of(operands[:1])))

    def either(self, condition: str, then: Callable[[], None], otherwise: Callable[[], None]) -> None:
        """Add code that the preprocessor selects."""
        self._lines.append(_Line(f"#if {condition}"))
        then()
        self._lines.append(_Line("#else"))
        otherwise()
        self._lines.append(_Line("#endif"))

    def note(self, text: str) -> None:
        """Add a comment on a line of its own."""
        self._lines.append(_Line(f"/* {text} */"))

    def at(self, base: Register | str, offset: int = 0, form: str = "") -> Address:
        """Return the operand of a base and an offset, in the convention's form or another."""
        base = base if isinstance(base, Register) else self[base]
        return Address(base, (form or self.convention.address).format(offset=offset, base=base))

    @property
    def lines(self) -> int:
        """The number of lines so far."""
        return len(self._lines)

    def word(self, name: str) -> str:
        """Return the operand of a named word of the stack frame."""
        self._words.setdefault(name, None)
        return f"[sp, #{name.upper()}_WORD]"

    def load_words(self, *registers: Register) -> None:
        """Load registers with one instruction, from the first words of the frame.

        The words have the names of the registers and the order of their numbers.
        """
        self._words.update(dict.fromkeys(register.name for register in registers))
        self._lines.append(_Line("ldm sp, {\1}", writes=frozenset(registers)))

    @contextmanager
    def loop(self, branch: str, *operands: Register) -> Iterator[None]:
        """Repeat the body while `branch operands` is taken at its end."""
        first = _Line(self._label())
        self._lines.append(first)
        yield
        self._branch(branch, operands, first.text)
        self._loops.append((first, self._lines[-1]))

    @contextmanager
    def unless(self, branch: str, *operands: Register) -> Iterator[None]:
        """Skip the body if `branch operands` is taken."""
        label = self._label()
        self._branch(branch, operands, label)
        yield
        self._lines.append(_Line(label))

    def _label(self) -> str:
        self._labels += 1
        return f".L{self.name}_{self._labels}:"

    def _branch(self, branch: str, operands: Sequence[Register], label: str) -> None:
        text = f"{branch} {', '.join([*map(str, operands), label.removesuffix(':')])}"
        self._lines.append(_Line(text, "", _registers_of(operands)))

    def text(self) -> str:
        """Return the function as GNU assembly for the C preprocessor.

        Raise ValueError if registers run out.
        """
        while isinstance(names := self._assigned(), Register):
            self._keep_on_stack(names)
        convention = self.convention
        used = {part for register, name in names.items() for part in _group(name, register.size)}
        saved = [name for each in convention.classes.values() for name in each.names if name in each.saved & used]
        frame = (len(self._words) + self._slots) * convention.word_bytes
        lines = [f"/* {self.comment} */"] if self.comment else []
        lines += convention.preamble
        lines += [f"#define {register.name} {name}" for register, name in names.items()]
        block = {register for line in self._lines if "\1" in line.text for register in line.writes}
        order = [register.name for register in sorted(block, key=lambda r: _number(names[r]))]
        words = dict.fromkeys([*order, *self._words])
        lines += [f"#define {word.upper()}_WORD {i * convention.word_bytes}" for i, word in enumerate(words)]
        lines += [f'    .section .text.{self.name}, "ax", %progbits', "    .balign 4", f"    .globl {self.name}"]
        lines += [f"    .type {self.name}, %function", f"{self.name}:"]
        lines += [f"    {line}" for line in convention.enter(saved, frame)]
        lines += [self._shown(line, names).replace("\1", ", ".join(order)) for line in self._lines]
        lines += [f"    {line}" for line in convention.leave(saved, frame)]
        lines += [f"    .size {self.name}, . - {self.name}"]
        lines += [f"#undef {register.name}" for register in names]
        return "\n".join(lines) + "\n"

    def _shown(self, line: _Line, names: Mapping[Register, str]) -> str:
        physical = {register.name: (register.kind, names[register]) for register in line.registers}

        def number(match: re.Match[str]) -> str:
            kind, name = physical[match[1]]
            return name if kind == "x" else f"x{re.sub(r'[^0-9]', '', name)}"

        text = re.sub("\0([^\0]+)\0", number, line.text)
        if text.endswith(":") or text.startswith("#"):
            return text
        return f"    {text}" + (f"{' ' * max(1, _COMMENT - len(text))}/* {line.comment} */" if line.comment else "")

    def _intervals(self) -> dict[Register, tuple[int, int]]:
        """Return the first and last line in which each register must keep its value."""
        place = {line: number for number, line in enumerate(self._lines)}
        loops = sorted((place[first], place[last]) for first, last in self._loops)[::-1]
        intervals = {self[argument]: (-1, -1) for argument in self.arguments}
        for number, line in enumerate(self._lines):
            for register in line.registers:
                intervals[register] = (intervals.get(register, (number, 0))[0], number)
        for register, (begin, end) in intervals.items():
            for first, last in loops:  # inner loops come before those around them
                if begin < first <= end < last:
                    end = last
            intervals[register] = (begin, end)
        return {register: (begin, end) for register, (begin, end) in intervals.items() if end >= 0}

    def _assigned(self) -> dict[Register, str] | Register:
        """Return each virtual register's physical one (a group's first), or one for the stack."""
        intervals = self._intervals()
        fixed = zip((self[argument] for argument in self.arguments), self.convention.arguments, strict=False)
        names = {register: name for register, name in fixed if register in intervals}
        created = {register: number for number, register in enumerate(self._registers.values())}
        for register in sorted(intervals, key=lambda r: (intervals[r][0], -r.size, created[r])):
            if register not in names:
                begin, end = intervals[register]
                rivals = [other for other in names if intervals[other][0] <= end and begin <= intervals[other][1]]
                taken = {part for other in rivals for part in _group(names[other], other.size)}
                free = self._free(register, taken)
                if free is None:
                    return self._rarest(register, rivals)
                names[register] = free
        return names

    def _free(self, register: Register, taken: set[str]) -> str | None:
        available = self.convention.classes[register.kind].names
        for position in range(0, len(available) - register.size + 1, register.size):
            if taken.isdisjoint(available[position : position + register.size]):
                return available[position]
        return None

    def _rarest(self, register: Register, rivals: Sequence[Register]) -> Register:
        """Return the register with the fewest uses.

        Raise ValueError if none can be kept on the stack.
        """
        place = {line: number for number, line in enumerate(self._lines)}
        loops = [(place[first], place[last]) for first, last in self._loops]

        def uses(candidate: Register) -> int:
            depths = (
                sum(first <= number <= last for first, last in loops)
                for number, line in enumerate(self._lines)
                if candidate in line.registers
            )
            return sum(_LOOP_WEIGHT**depth for depth in depths)

        candidates = [r for r in (register, *rivals) if r.kind == "x" and not r.is_reload]
        classes = self.convention.classes
        if not candidates or set(classes[register.kind].names).isdisjoint(classes["x"].names):
            raise ValueError(f"{self.name}: no register of kind {register.kind} is free for {register.name}")
        return min(candidates, key=uses)

    def _keep_on_stack(self, register: Register) -> None:
        """Load the register before each use, and store it after each change."""
        address = {"offset": (len(self._words) + self._slots) * self.convention.word_bytes}
        self._slots += 1
        lines: list[_Line] = []
        if register.name in self.arguments:
            lines.append(_Line(self.convention.save.format(register=register, **address), "", frozenset({register})))
        for line in self._lines:
            if register not in line.registers:
                lines.append(line)
                continue
            part = Register(f"{register.name}_{len(lines)}", register.kind, is_reload=True)
            self._registers[part.name] = part
            only = frozenset({part})
            if register in line.reads:
                lines.append(_Line(self.convention.restore.format(register=part, **address), "", writes=only))
            line.text = re.sub(rf"\b{register.name}\b", part.name, line.text)
            line.reads, line.writes = (
                registers - {register} | (only if register in registers else frozenset())
                for registers in (line.reads, line.writes)
            )
            lines.append(line)
            if part in line.writes:
                lines.append(_Line(self.convention.save.format(register=part, **address), "", reads=only))
        self._lines = lines


def _registers_of(operands: Sequence[object]) -> frozenset[Register]:
    bases = (operand.base if isinstance(operand, Address) else operand for operand in operands)
    return frozenset(base for base in bases if isinstance(base, Register))


def _number(name: str) -> int:
    return int(re.sub(r"\D", "", name) or 99)


def _group(first: str, size: int) -> list[str]:
    """Return the names of a group: v8, v9, ..."""
    if size == 1:
        return [first]
    match = re.fullmatch(r"(\D+)(\d+)", first)
    assert match is not None, first
    return [f"{match[1]}{int(match[2]) + i}" for i in range(size)]
