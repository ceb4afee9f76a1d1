"""The C of a group of layers that run by rows.

The conditions are those of stages.lower.streaming.schedule: of all layers that can run, the last one runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from stages.lower.codegen.layers import LayerFunction, call
from stages.lower.streaming.plan import StreamedGroup
from stages.lower.streaming.schedule import RowLayer, RowTensor, has_unread_rows

if TYPE_CHECKING:
    from stages.emit.model import Model

_WIDTH = 108  # of a line, less its indentation
_INDENT = 12
_LAST = ["    } else {", "        /* not reached: some layer can always make rows */", "    }"]
_PUSHED = "pushed."  # the structure with the state of a group whose input the caller passes by rows


def group_c(model: Model, number: int, group: StreamedGroup) -> dict[str, Any]:
    """Return the functions of a group for the template.

    name         of the function that runs the group
    first, last  its layers
    fields       of a structure with its state, if the caller passes the input by rows; else [] and local variables
    start        statements that initialize the group; a separate function if there are fields
    body         the statements that run all layers that can run
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
    unread    layers whose last rows no layer reads
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
        self.unread = [x for x in group.layers if has_unread_rows(group.tensors[x.output], group.layers)]

    def parts(self) -> dict[str, list[str]]:
        """Return fields, start, body as in `group_c`; with fields also `result`, at the end."""
        kept = {name: tensor for name, tensor in self.group.tensors.items() if self._has_rows(name)}
        buffers = [name for name, tensor in kept.items() if not tensor.place_of]
        shared = [name for name, tensor in kept.items() if tensor.place_of and not tensor.whole]
        counts = {self._end(name): self.group.tensors[name].above for name in shared}
        counts |= {self._done(layer): 0 for layer in self.group.layers}
        fills = [line for name in buffers for line in self._filled(name)] + self._cleared_sums()
        rows = {self.variable[name]: f"{{{self._initial(name)}}}" for name in buffers}
        body = [f"while ({self.unfinished()}) {{"]
        declared = [] if self.group.layers[0] is self.group.sums else ["void *place;"]
        alone = self.group.layers[0] if len(self.group.layers) == 1 and not self.group.pushed else None
        for position, layer in enumerate(reversed(self.group.layers)):
            lines = self._called(layer) if layer is alone else self._branch(layer, first=position == 0)
            body += ["    " + line for line in lines]
        if not self.group.pushed:
            begin = [f"struct rows {name} = {value};" for name, value in rows.items()]
            begin += [f"size_t {name} = {value}u;" for name, value in counts.items()]
            return {
                "fields": [],
                "start": [*begin, *declared, "", *fills],
                "body": [*body, *([] if alone else _LAST), "}", *self.result()],
            }
        fields = [f"struct rows {name.removeprefix(_PUSHED)};" for name in rows]
        fields += [f"size_t {name.removeprefix(_PUSHED)};" for name in counts]
        begin = [f"{name} = (struct rows){value};" for name, value in rows.items()]
        begin += [f"{name} = {value}u;" for name, value in counts.items()]
        body += ["    " + line for line in self._padded_input()]
        return {
            "fields": fields,
            "start": [*begin, *fills],
            "body": [*declared, *([""] if declared else []), *body, "    } else {", "        break;", "    }", "}"],
            "result": self.result(),
        }

    def _cleared_sums(self) -> list[str]:
        """Return the statement that sets the sums to 0, of a group whose last layer adds up rows."""
        last = self.group.sums
        if last is None:
            return []
        size, place = self.model.scratch_bytes(last.index, "sums"), self.model.argument(last.index, "scratch:sums")
        return [f"(void)memset({place}, 0, {size}u);"]

    def _padded_input(self) -> list[str]:
        """Return the branch that appends padding rows below an input that the caller passes."""
        tensor = self.group.tensors[self.group.pushed]
        if not tensor.below:
            return []
        end = f"{self.variable[tensor.name]}.end"
        return [
            f"}} else if (({_PUSHED}rows == {tensor.height}u) && ({end} < {tensor.total}u)) {{",
            f"    place = {self.appended(tensor.name, '1u')};",
            f"    {self._fill(tensor, 'place', 1)}",
        ]

    def unfinished(self) -> str:
        """Return the condition that a layer has rows to make."""
        layers = (*self.unread, self.group.layers[-1])
        conditions = [f"{self._done(layer)} < {layer.height}u" for layer in layers]
        return conditions[0] if len(conditions) == 1 else " || ".join(f"({text})" for text in conditions)

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
        return f"(void)memset({place}, {tensor.fill}, {rows * tensor.row_bytes}u);"

    def _branch(self, layer: RowLayer, first: bool) -> list[str]:
        """Return the branch of a layer, with that of the padding rows below its output."""
        output = self.group.tensors[layer.output]
        is_last = layer is self.group.layers[-1]
        conditions = [] if is_last else [self._wanted(layer.output)]
        if is_last and self.unread:
            conditions = [f"({self._done(layer)} < {layer.height}u)"]
        lines = []
        head = "if" if first else "} else if"
        if output.below and not output.whole:
            lines += [
                *_condition(head, [f"({self._done(layer)} == {layer.height}u)", conditions[0]]),
                f"    place = {self.appended(layer.output, '1u')};",
                f"    {self._fill(output, 'place', 1)}",
                *([f"    {self._end(layer.output)} += 1u;"] if output.place_of else []),
            ]
            head = "} else if"
        conditions += [
            f"({self._needed(layer, name)} <= {self._end(name)})"
            for name in layer.inputs
            if not self._is_complete(name)
        ]
        return [*lines, *_condition(head, conditions), *("    " + line for line in self._called(layer))]

    def _is_complete(self, name: str) -> bool:
        """Return whether a tensor has all its rows before the first call."""
        return name != self.group.pushed and all(layer.output != name for layer in self.group.layers)

    def _called(self, layer: RowLayer) -> list[str]:
        """Return the statements of a call, with the last call if that has fewer rows."""
        model, index, output = self.model, layer.index, self.group.tensors[layer.output]
        done, rest = self._done(layer), len(layer.calls()) > 1
        count = "count" if rest else f"{layer.rows}u"
        has_place = not layer.window.accumulates
        lines = [f"place = {self._placed(layer, count)};"] if has_place else []
        called = self._call(layer, model.functions[index])
        if rest:
            first = f"({done} == 0u) ? {layer.first}u : " if layer.first else ""
            lines = [
                f"size_t count = {first}least({layer.height}u - {done}, {layer.rows}u);",
                "",
                *lines,
                f"if (count == {layer.rows}u) {{",
                *("    " + line for line in called),
                "} else {",
                *("    " + line for line in self._call(layer, model.rests[index])),
                "}",
            ]
        else:
            lines += called
        if output.place_of and self._has_rows(layer.output) and not output.whole:
            lines.append(f"{self._end(layer.output)} += {count};")
        if layer.output == self.group.emitted:
            lines.append(f"emit_rows(place, {done}, {count});")
        size = f"count * {output.row_bytes}u" if rest else f"{layer.rows * output.row_bytes}u"
        is_traced = has_place and model.graph.tensors[layer.output].tflite_index is not None
        written = f"{'place' if has_place else 'NULL'}, {size if is_traced else '0u'}"
        return [*lines, f"{done} += {count};", f"MODEL_ROWS_DONE({index}, {written});"]

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

    def _end(self, name: str) -> str:
        """Return the variable with the end of a tensor's rows."""
        variable = self.variable[name]
        return f"{variable.replace('rows', 'end')}" if self.group.tensors[name].place_of else f"{variable}.end"

    def _call(self, layer: RowLayer, function: LayerFunction) -> list[str]:
        arguments = []
        names = self.model.graph.layers[layer.index].inputs
        for role in function.roles:
            kind, _, key = role.partition(":")
            if kind == "output":
                arguments.append("place")
            elif kind == "input" and names[int(key)] in self.group.tensors:
                name = names[int(key)]
                root = self.group.tensors[name].place_of or name
                arguments.append(f"row_at(&{self.variable[root]}, {self._start(layer, name)})")
            else:
                arguments.append(self.model.argument(layer.index, role))
        return _call(function.name, arguments)

    def _done(self, layer: RowLayer) -> str:
        return f"{self.prefix}done_{layer.index:03d}"

    def _offset(self, layer: RowLayer) -> str:
        """Return the input's rows that a layer has gone on by, without padding."""
        return self._done(layer) if layer.window.stride == 1 else f"({self._done(layer)} * {layer.window.stride}u)"

    def _start(self, layer: RowLayer, name: str) -> str:
        """Return the first row that the next call needs."""
        above = self.group.tensors[name].above - layer.window.padding
        return f"({self._offset(layer)} + {above}u)" if above else self._offset(layer)

    def _needed(self, layer: RowLayer, name: str, clipped: bool = False) -> str:
        """Return the end of the next call's rows; `clipped`: also if there is no next call."""
        above = self.group.tensors[name].above
        count, first = f"{replace(layer, first=0).needed(0, above)}u", f"{layer.needed(0, above)}u"
        text = (
            f"{self._offset(layer)} + {f'(({self._done(layer)} == 0u) ? {first} : {count})' if layer.first else count}"
        )
        if not clipped and (layer.height - layer.first) % layer.rows == 0:
            return f"({text})"
        return f"least({text}, {layer.end(above)}u)"

    def _wanted(self, name: str) -> str:
        """Return the condition that a reader needs more rows of a tensor."""
        needed = [f"({self._end(name)} < {self._needed(reader, name, clipped=True)})" for reader in self.readers[name]]
        if any(layer.output == name for layer in self.unread):
            tensor = self.group.tensors[name]
            rest = f"({self._end(name)} < {tensor.above + tensor.height}u)"
            needed += [f"(({self._done(reader)} == {reader.height}u) && {rest})" for reader in self.readers[name]]
        return needed[0] if len(needed) == 1 else f"({' || '.join(needed)})"

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


def _condition(head: str, conditions: Sequence[str]) -> list[str]:
    """Return `if (a && b) {`, wrapped."""
    lines, line = [], f"{head} ("
    for number, condition in enumerate(conditions):
        piece = condition + (") {" if number + 1 == len(conditions) else " &&")
        if len(line) + len(piece) > _WIDTH and line.strip():
            lines.append(line.rstrip())
            line = " " * len(f"{head} (")
        line += piece + " "
    return [*lines, line.rstrip()]
