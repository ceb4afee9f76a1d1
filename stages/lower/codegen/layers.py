"""The C functions of the layers: signatures, used parameters, and each layer's scratch.

A layer is one function of layers.c. If its kernel has several functions (a float operator that TVM splits), they are
static, and the layer's function calls them in order.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from stages.lower.codegen.lower import CFunction, Param
from stages.lower.codegen.printer import ctype

FLOAT_VECTORS = "include/float_vectors.h"
"""Kernel header for functions of cores whose vectors flush subnormal numbers."""
_WIDTH = 116


@dataclass(frozen=True)
class Text:
    """A function as written to layers.c. `attributes` precede its definition."""

    signature: str
    body: str
    attributes: str = ""


@dataclass(frozen=True)
class LayerFunction:
    """A layer's function.

    roles    its arguments in order
    scratch  bytes by scratch name
    headers  C library headers and kernel headers that it and its static `steps` need
    """

    name: str
    roles: tuple[str, ...]
    scratch: Mapping[str, int]
    text: Text
    headers: frozenset[str]
    steps: tuple[Text, ...] = ()


def layer_function(functions: Sequence[CFunction], may_overlay: bool) -> LayerFunction:
    """Return the function of a layer that calls `functions` in order.

    With `may_overlay` an output may share the memory of an input, so neither is `restrict`.
    """
    used = [_used(function) for function in functions]
    texts = [text for f, p in zip(functions, used, strict=True) for text in _texts(f, p, may_overlay)]
    scratch = scratch_of(functions)
    headers = frozenset(header for function in functions for header in function.headers)
    if any(param.dtype == "bool" for params in used for param in params):
        headers |= {"<stdbool.h>"}
    if any(function.floats for function in functions):
        headers |= {FLOAT_VECTORS}
    if len(functions) == 1:
        *steps, text = texts
        return LayerFunction(functions[0].name, tuple(p.role for p in used[0]), scratch, text, headers, tuple(steps))
    name = functions[0].name.rsplit("_step", 1)[0]
    merged = _merge(used)
    names = {param.role: param.name for param in merged}
    calls = [
        call(function.name, [names[p.role] for p in params]) for function, params in zip(functions, used, strict=True)
    ]
    text = Text(_signature(name, merged, may_overlay), "".join(f"    {line}\n" for line in calls))
    return LayerFunction(name, tuple(p.role for p in merged), scratch, text, headers, tuple(texts))


def _texts(function: CFunction, params: Sequence[Param], overlay: bool) -> list[Text]:
    """Return the function, after the functions that it calls.

    A function with vectors that flush subnormal numbers runs again without vectors if they flushed one. That needs its
    inputs, so a function that may write over them has no vectors.
    """
    name = function.name
    if function.floats != "vectors" or overlay:
        return [
            Text(_signature(name, params, overlay), function.body, "WITHOUT_FLOAT_VECTORS" if function.floats else "")
        ]
    called = {part: call(f"{name}_{part}", [p.name for p in params]) for part in ("body", "vectors", "scalars")}
    guarded = (
        "    uint32_t flags = fl_begin_vectors();\n\n"
        f"    {called['vectors']}\n"
        "    if (fl_end_vectors(flags) != 0) {\n"
        f"        {call(f'{name}_scalars', [p.name for p in params], indent=8)}\n"
        "    }\n"
    )
    return [
        Text(_signature(f"{name}_body", params, overlay), function.body, "ALWAYS_INLINE"),
        Text(_signature(f"{name}_vectors", params, overlay), f"    {called['body']}\n", "WITH_FLOAT_VECTORS"),
        Text(_signature(f"{name}_scalars", params, overlay), f"    {called['body']}\n", "WITHOUT_FLOAT_VECTORS"),
        Text(_signature(name, params, overlay), guarded),
    ]


def scratch_of(functions: Iterable[CFunction]) -> dict[str, int]:
    """Return bytes by name of the layer's scratch in the arena.

    Functions that use the same name share its memory, so its size is the largest.
    """
    scratch: dict[str, int] = {}
    for param in (p for function in functions for p in _used(function) if p.role.startswith("scratch:")):
        name = param.role.partition(":")[2]
        scratch[name] = max(param.bytes, scratch.get(name, 0))
    return scratch


def _used(function: CFunction) -> list[Param]:
    """Return the parameters that the body mentions; simplification may remove others."""
    return [p for p in function.params if p.name in function.used]


def _merge(used: Sequence[Sequence[Param]]) -> list[Param]:
    """Return the parameters of all steps, each role once, with unique names."""
    merged: dict[str, Param] = {}
    names: set[str] = set()
    for param in (p for params in used for p in params):
        if param.role in merged:
            continue
        name, number = param.name, 1
        while name in names:
            name, number = f"{param.name}_{number}", number + 1
        names.add(name)
        merged[param.role] = Param(name, param.role, param.dtype, param.bytes)
    return list(merged.values())


def _signature(name: str, params: Sequence[Param], overlay: bool) -> str:
    return wrapped(f"void {name}(", [_declaration(p, overlay) for p in params] or ["void"], ")")


def _declaration(param: Param, overlay: bool) -> str:
    """Return `const int8_t *restrict input`; without restrict if input and output may overlap."""
    kind = param.role.partition(":")[0]
    const = "const " if kind in ("input", "constant") else ""
    restrict = "" if overlay and kind in ("input", "output") else "restrict "
    return f"{const}{ctype(param.dtype)} *{restrict}{param.name}"


def call(name: str, arguments: Sequence[str], indent: int = 4) -> str:
    """Return a call statement, wrapped under its opening parenthesis."""
    return wrapped(f"{name}(", arguments, ");", indent)


def wrapped(head: str, parts: Sequence[str], tail: str, indent: int = 0) -> str:
    """Return the parts separated by commas, wrapped under the end of `head` if they are long."""
    lines, line = [], head
    for number, part in enumerate(parts):
        piece = part + ("," if number + 1 < len(parts) else tail)
        if len(line) + len(piece) + 1 + indent > _WIDTH and line != head:
            lines.append(line.rstrip())
            line = " " * (len(head) + indent)
        line += piece + " "
    return "\n".join([*lines, line.rstrip()])
