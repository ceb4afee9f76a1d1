"""The C of a group of layers that run by rows.

A table has the order of the calls, from stages.lower.streaming.schedule. Rows of calls and buffers are counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from stages.emit.row_steps import row_steps
from stages.lower.codegen.layers import LayerFunction, call
from stages.lower.streaming.plan import StreamedGroup
from stages.lower.streaming.schedule import RowLayer, RowTensor

if TYPE_CHECKING:
    from stages.emit.model import Model

_WIDTH = 108  # of a line, less its indentation
_PUSHED = "pushed."  # the structure with the state of a group whose input the caller passes by rows


def group_c(model: Model, number: int, group: StreamedGroup) -> dict[str, Any]:
    """Return the functions of a group for the template.

    name         of the function that runs the group
    first, last  its layers
    fields       of a structure with its state, if the caller passes the input by rows; else [] and local variables
    start        statements that initialize the group; a separate function if there are fields
    body         the statements that run the layers, up to the next row from the caller
    """
    writer = _GroupC(model, group)
    return {"name": f"run_rows_{number}", "first": group.first, "last": group.end - 1, **writer.parts()}


def emitted_c(group: StreamedGroup) -> dict[str, int]:
    """Return what templates need to pass rows to the application: number and row bytes."""
    tensor = group.tensors[group.emitted]
    return {"rows": tensor.height, "row_bytes": tensor.row_bytes}


def pushed_c(model: Model, group: StreamedGroup, by_rows: dict[str, Any]) -> dict[str, Any]:
    """Return template variables for rows from the caller: sizes, and a row's address."""
    tensor, writer = group.tensors[group.pushed], _GroupC(model, group)
    return {
        "group": by_rows,
        "rows": tensor.height,
        "row_bytes": tensor.row_bytes,
        "unfinished": writer.unfinished(),
        "place": writer.appended(group.pushed, "1u"),
    }


class _GroupC:
    """Writes the C of one group.

    prefix    of the names of its counters and structures: the state's structure, or '' for local variables
    variable  by tensor, its `struct rows`
    readers   by tensor, the layers of the group that read it
    steps     the calls in order
    """

    def __init__(self, model: Model, group: StreamedGroup) -> None:
        self.model = model
        self.group = group
        self.prefix = _PUSHED if group.pushed else ""
        self.variable = {}
        for name in group.tensors:
            producer = next((layer.index for layer in group.layers if layer.output == name), None)
            self.variable[name] = self.prefix + ("rows_in" if producer is None else f"rows_{producer:03d}")
        self.readers = {name: [layer for layer in group.layers if name in layer.inputs] for name in group.tensors}
        self.steps = row_steps(group)

    def parts(self) -> dict[str, list[str]]:
        """Return fields, start, body as in `group_c`; with fields also `result`, at the end."""
        buffers = [name for name, tensor in self.group.tensors.items() if self._has_rows(name) and not tensor.place_of]
        counts = {self._done(layer): 0 for layer in self.group.layers} | {f"{self.prefix}step": 0}
        if self.steps.repeats:
            counts[f"{self.prefix}repeats"] = self.steps.repeats
        fills = [line for name in buffers for line in self._filled(name)] + self._cleared_sums()
        rows = {self.variable[name]: f"{{{self._initial(name)}}}" for name in buffers}
        if not self.group.pushed:
            begin = [f"struct rows {name} = {value};" for name, value in rows.items()]
            begin += [f"size_t {name} = {value}u;" for name, value in counts.items()]
            start = [*self._tables(), *begin, "", *fills]
            return {"fields": [], "start": start, "body": [*self._loop(), *self.result()]}
        fields = [f"struct rows {name.removeprefix(_PUSHED)};" for name in rows]
        fields += [f"size_t {name.removeprefix(_PUSHED)};" for name in counts]
        begin = [f"{name} = (struct rows){value};" for name, value in rows.items()]
        begin += [f"{name} = {value}u;" for name, value in counts.items()]
        body = [*self._tables(), "", *self._loop()]
        return {"fields": fields, "start": [*begin, *fills], "body": body, "result": self.result()}

    def _tables(self) -> list[str]:
        """Return the table of the steps, and that of their rows if a layer's calls differ."""
        steps, layers = self.steps.steps, self.group.layers
        lines = _table("steps", steps)
        if any(map(_other_rows, layers)):
            counts = [count for layer in layers for count in (layer.rows, _other_rows(layer) or layer.rows)]
            lines += _table("counts", [*counts, *[1] * (max(steps) + 1 - len(counts))])
        return lines

    def _loop(self) -> list[str]:
        """Return the statements that run the steps."""
        group, steps, step = self.group, self.steps, f"{self.prefix}step"
        layers, repeats = len(group.layers), f"{self.prefix}repeats"
        lines = [f"while ({self.unfinished()}) {{", f"    unsigned code = steps[{step}];"]
        lines += ["    size_t count = counts[code];"] if any(map(_other_rows, group.layers)) else []
        lines += ["    size_t bytes = 0u; /* that it makes */", "    void *place = NULL;", "", f"    {step}++;"]
        if steps.repeats:
            lines += [f"    if (({step} == {steps.end}u) && ({repeats} > 0u)) {{", f"        {repeats}--;"]
            lines += [f"        {step} = {steps.first}u;", "    }"]
        if steps.wait in steps.steps:
            lines += [f"    if (code == {steps.wait}u) {{", "        break; /* until the next row comes */", "    }"]
        lines.append("    switch (code / 2u) {")
        for number, layer in enumerate(group.layers):
            lines += [f"    case {number}u:", *("        " + line for line in self._called(layer)), "        break;"]
        for number, name in enumerate(steps.padded, layers):
            fill = self._fill(group.tensors[name], self.appended(name, "1u"), 1)
            lines += [f"    case {number}u:", f"        {fill}", "        break;"]
        done = f"MODEL_ROWS_DONE((code / 2u) + {group.first}u, place, bytes);"
        lines += ["    default:", "        break; /* not reached */", "    }"]
        lines += [f"    if (code < {2 * layers}u) {{", f"        {done}", "    }"] if steps.padded else [f"    {done}"]
        return [*lines, "}"]

    def _cleared_sums(self) -> list[str]:
        """Return the statement that sets the sums to 0, of a group whose last layer adds up rows."""
        last = self.group.sums
        if last is None:
            return []
        size, place = self.model.scratch_bytes(last.index, "sums"), self.model.argument(last.index, "scratch:sums")
        return [f"(void)memset({place}, 0, {size}u);"]

    def unfinished(self) -> str:
        """Return the condition that there are steps left."""
        return f"{self.prefix}step < {len(self.steps.steps)}u"

    def _has_rows(self, name: str) -> bool:
        """Return whether a tensor's rows are counted (not those of sums, or for the application)."""
        return name != self.group.emitted and (self.group.sums is None or name != self.group.sums.output)

    def result(self) -> list[str]:
        """Return the statements after all rows, of a group that ends in a layer that adds them up."""
        last = self.group.sums
        if last is None:
            return []
        model, name = self.model, last.output
        size = model.graph.tensors[name].bytes * (model.graph.tensors[name].tflite_index is not None)
        called = _call(
            model.results[last.index].name, [model.argument(last.index, r) for r in model.results[last.index].roles]
        )
        return [*called, f"MODEL_ROWS_DONE({last.index}, {model.port(name)}, {size}u);"]

    def _initial(self, name: str) -> str:
        """Return the fields of a tensor's rows before the first call."""
        tensor = self.group.tensors[name]
        capacity = tensor.total if tensor.whole else self.group.capacity[name]
        end = tensor.total if self._is_complete(name) else tensor.above
        memory = self.model.rows_at(name, tensor.above * tensor.row_bytes if tensor.whole else 0)
        return f".memory = {memory}, .bytes = {tensor.row_bytes}u, .capacity = {capacity}u, .end = {end}u"

    def _filled(self, name: str) -> list[str]:
        """Return the statements that fill the padding rows that are in memory from the beginning."""
        tensor, variable = self.group.tensors[name], self.variable[name]
        written = any(layer.output == name for layer in self.group.layers)
        if tensor.whole and written:
            return []  # the reader fills them
        lines = []
        if tensor.above:
            lines.append(self._fill(tensor, f"row_at(&{variable}, 0u)", tensor.above))
        if tensor.whole and tensor.below:
            lines.append(self._fill(tensor, f"row_at(&{variable}, {tensor.above + tensor.height}u)", tensor.below))
        return lines

    @staticmethod
    def _fill(tensor: RowTensor, place: str, rows: int) -> str:
        return f"fill_rows({place}, {tensor.fill & 0xFF}u, {rows * tensor.row_bytes}u);"

    def _is_complete(self, name: str) -> bool:
        """Return whether a tensor has all its rows before the first call."""
        return name != self.group.pushed and all(layer.output != name for layer in self.group.layers)

    def _called(self, layer: RowLayer) -> list[str]:
        """Return the statements of a call, which may have another number of rows."""
        model, index, output = self.model, layer.index, self.group.tensors[layer.output]
        done, rest = self._done(layer), _other_rows(layer) > 0
        count = "count" if rest else f"{layer.rows}u"
        has_place = not layer.window.accumulates
        lines = [f"place = {self._placed(layer, count)};"] if has_place else []
        called = self._call(layer, model.functions[index])
        if rest:
            lines += [
                "if ((code % 2u) == 0u) {",
                *("    " + line for line in called),
                "} else {",
                *("    " + line for line in self._call(layer, model.rests[index])),
                "}",
            ]
        else:
            lines += called
        if layer.output == self.group.emitted:
            lines.append(f"emit_rows(place, {done}, {count});")
        if has_place and model.graph.tensors[layer.output].tflite_index is not None:
            size = f"count * {output.row_bytes}u" if rest else f"{layer.rows * output.row_bytes}u"
            lines.append(f"bytes = {size};")
        return [*lines, f"{done} += {count};"]

    def _placed(self, layer: RowLayer, count: str) -> str:
        """Return the expression of the place of a layer's next rows."""
        output = self.group.tensors[layer.output]
        if not output.place_of:
            is_emitted = layer.output == self.group.emitted
            return self.model.port(layer.output) if is_emitted else self.appended(layer.output, count)
        end = f"{self._done(layer)} + {output.above}u" if output.above else self._done(layer)
        return f"row_at(&{self.variable[output.place_of]}, {end})"

    def appended(self, name: str, count: str) -> str:
        """Return the expression that makes room for rows of a tensor's buffer."""
        root = self.group.tensors[name].place_of or name
        sharing = [other for other, tensor in self.group.tensors.items() if root in (other, tensor.place_of)]
        return f"add_rows(&{self.variable[root]}, {count}, {self._keep(sharing)})"

    def _call(self, layer: RowLayer, function: LayerFunction) -> list[str]:
        arguments = []
        names, tables = self.model.graph.layers[layer.index].inputs, self.model.plan.layers[layer.index].row_tables
        for role in function.roles:
            kind, _, key = role.partition(":")
            if kind == "output":
                arguments.append("place")
            elif kind == "input" and names[int(key)] in self.group.tensors:
                name = names[int(key)]
                root = self.group.tensors[name].place_of or name
                arguments.append(f"row_at(&{self.variable[root]}, {self._start(layer, name)})")
            else:
                argument, row_bytes = self.model.argument(layer.index, role), tables.get(key, 0)
                arguments.append(f"{argument[:-1]} + ({self._done(layer)} * {row_bytes}u))" if row_bytes else argument)
        return _call(function.name, arguments)

    def _done(self, layer: RowLayer) -> str:
        return f"{self.prefix}done_{layer.index:03d}"

    def _offset(self, layer: RowLayer) -> str:
        """Return the input's rows that a layer has gone on by, without padding."""
        window, rows = layer.window, self._done(layer)
        rows = rows if window.stride == 1 else f"({rows} * {window.stride}u)"
        rows = f"({rows} + {window.shift}u)" if window.shift else rows
        return rows if window.rate == 1 else f"({rows} / {window.rate}u)"

    def _start(self, layer: RowLayer, name: str) -> str:
        """Return the first row that the next call needs."""
        above = self.group.tensors[name].above - layer.window.padding
        return f"({self._offset(layer)} + {above}u)" if above else self._offset(layer)

    def _keep(self, names: Sequence[str]) -> str:
        """Return the first row that a reader of these tensors still needs."""
        starts = [self._start(reader, name) for name in names for reader in self.readers[name]]
        text = starts[0] if starts else "0u"
        for start in starts[1:]:
            text = f"least({text}, {start})"
        return text


def _call(name: str, arguments: Sequence[str]) -> list[str]:
    return [
        line.replace(" " * 12, "", 1) if number else line
        for number, line in enumerate(call(name, arguments, 12).splitlines())
    ]


def _other_rows(layer: RowLayer) -> int:
    """Return the rows of the calls that have another number of rows, 0 if there are none."""
    return next((rows for rows in layer.calls() if rows != layer.rows), 0)


def _table(name: str, numbers: Sequence[int]) -> list[str]:
    kind = "uint8_t" if max(numbers) < 256 else "uint16_t"
    rows = wrap(", ".join(map(str, numbers)), _WIDTH, initial_indent="    ", subsequent_indent="    ")
    return [f"static const {kind} {name}[{len(numbers)}] = {{", *rows, "};"]
