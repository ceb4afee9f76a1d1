"""Print a program as C functions: the early transfers, and the layer."""

from collections.abc import Iterable, Sequence

from stages.lower.codegen.layers import LayerFunction, Text, call, wrapped
from stages.lower.offload.program import (
    Await,
    Command,
    Fence,
    Function,
    Numbers,
    Place,
    Program,
    Start,
    Transfer,
    Value,
)

_ORDER = ("input", "constant", "output", "scratch")


def program_function(name: str, program: Program) -> LayerFunction:
    """Return the layer's function. It returns when the output is complete."""
    return _function(name, program.commands, program)


def ahead_function(name: str, program: Program) -> LayerFunction | None:
    """Return the function with the early transfers, None if there are none."""
    return _function(f"{name}_ahead", program.ahead, program) if program.ahead else None


def _function(name: str, commands: Sequence[Command], program: Program) -> LayerFunction:
    writer = _Writer(program.wait)
    for command in commands:
        writer.write(command)
    roles = sorted(writer.roles, key=lambda role: (_ORDER.index(role.partition(":")[0]), role))
    parameters = [f"{_type(role)} *restrict {_name(role)}" for role in roles]
    scratch = {buffer.name: buffer.bytes for buffer in program.buffers}
    text = Text(wrapped(f"void {name}(", parameters, ")"), "".join(f"    {line}\n" for line in writer.lines))
    return LayerFunction(name, tuple(roles), scratch, text, frozenset())


class _Writer:
    def __init__(self, wait: str) -> None:
        self.lines: list[str] = []
        self.roles: set[str] = set()
        self._wait = wait
        self._tables: dict[Numbers, str] = {}

    def write(self, command: Command) -> None:
        """Write the C statements of a command."""
        if isinstance(command, Transfer):
            self._transfer(command)
        elif isinstance(command, Fence):
            self._call("dma_wait", [f"{command.left}u"])
        elif isinstance(command, Start):
            self._call(f"const int tile_{command.tile} = {command.call.name}", self._arguments(command.call))
        elif isinstance(command, Await):
            self._call(self._wait, [f"tile_{command.tile}"])
        else:
            self._call(command.call.name, self._arguments(command.call))

    def _transfer(self, command: Transfer) -> None:
        sizes = [f"{size}u" for size in (command.bytes, command.runs, command.to_stride, command.source_stride)]
        if command.times == 1:
            self._call("dma_start", [self._place(command.to), self._place(command.source), *sizes])
            return
        places = [self._place(command.to, command.to_step), self._place(command.source, command.source_step)]
        self.lines.append(f"for (uint32_t i = 0u; i < {command.times}u; ++i) {{")
        self.lines.append("    " + call("dma_start", [*places, *sizes], 8))
        self.lines.append("}")

    def _call(self, function: str, arguments: Iterable[str]) -> None:
        self.lines.append(call(function, list(arguments)))

    def _arguments(self, function: Function) -> list[str]:
        return [self._value(argument) for argument in function.arguments]

    def _value(self, value: Value) -> str:
        if isinstance(value, Numbers):
            return self._table(value)
        return self._place(value) if isinstance(value, Place) else str(value)

    def _place(self, place: Place, step: int = 0) -> str:
        """Return the address of a place, or of the place `i` steps after it."""
        self.roles.add(place.role)
        name = _name(place.role)
        if not step:
            return f"&{name}[{place.offset}]" if place.offset else name
        if place.offset < 0:  # an unsigned sum would wrap below the width of a pointer
            return f"&(&{name}[{place.offset}])[i * {step}u]"
        return f"&{name}[{place.offset}u + (i * {step}u)]" if place.offset else f"&{name}[i * {step}u]"

    def _table(self, table: Numbers) -> str:
        if table not in self._tables:
            self._tables[table] = name = f"table_{len(self._tables)}"
            numbers = [_number(value, table.ctype) for value in table.values]
            head = f"static const {table.ctype} {name}[{len(numbers)}] = {{"
            self.lines.append(wrapped(head, numbers, "};", 4))
        return self._tables[table]


def _number(value: int, ctype: str) -> str:
    return f"{value:#x}u" if ctype.startswith("uint32") else str(value)


def _type(role: str) -> str:
    return "const uint8_t" if role.partition(":")[0] in ("input", "constant") else "uint8_t"


def _name(role: str) -> str:
    kind, _, key = role.partition(":")
    if kind in ("input", "output"):
        return kind if key == "0" else f"{kind}{key}"
    return key
