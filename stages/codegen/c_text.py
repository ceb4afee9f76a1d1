"""From the file TVM prints to function bodies that people like to read.

TVM prints two-space indents, a pair of parentheses for each operation, its own includes and linkage macros, and arrays
on the stack for allocations. What leaves this module has none of these.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence

from stages.codegen.c_expression import NotUnderstood, simplify

Body = str
_PER_LINE = 8

_FUNCTION = re.compile(r"^TVM_DLL (?:void|int32_t) (\w+)\(([^)]*)\) \{$(.*?)^\}$", re.MULTILINE | re.DOTALL)
_ARRAY = re.compile(r"^ *(?P<type>\w+) (?P<name>\w+)\[(?P<count>\d+)\];$", re.MULTILINE)
_FOR = re.compile(r"^for \((?P<type>\w+) (?P<name>\w+) = (?P<start>.*); (?P<stop>.*); (?P<step>.*)\) \{$")
_DECLARATION = re.compile(r"^(?P<type>\w+) (?P<name>\w+) = (?P<value>.*);$")
_IF = re.compile(r"^(?P<head>(?:\} else )?if) \((?P<condition>.*)\) \{$")


def split_functions(
    source: str, literals: Mapping[str, Sequence[str]] | None = None
) -> dict[str, tuple[tuple[str, ...], Body]]:
    """Functions that `source` defines: name -> (parameter names, tidied body).

    The last parameters of a function with `literals` stand for these constants: the body gets the constants instead.
    """
    out = {}
    for match in _FUNCTION.finditer(source):
        names = [part.split()[-1].lstrip("*") for part in match[2].split(",") if part.strip()]
        constants = (literals or {}).get(match[1], ())
        kept = len(names) - len(constants)
        values = dict(zip(names[kept:], constants, strict=True))
        body = re.sub(r"\b[A-Za-z_]\w*\b", lambda word, values=values: values.get(word[0], word[0]), match[3])
        out[match[1]] = (tuple(names[:kept]), tidy(body))
    return out


def tidy(body: str) -> Body:
    """The body with scalars for arrays, minimal parentheses and four-space indents.

    Raises RuntimeError when an array remains that is not indexed by constants alone: it would live on the stack.
    """
    renamed = _plain_temporaries(_scalars(body))
    scalar = "\n".join(_clean(line) for line in renamed.splitlines() if line.strip())
    lines = textwrap.dedent(scalar).splitlines()
    return "\n".join(_indent(line) for line in lines) + "\n"


def _scalars(body: str) -> str:
    """Arrays with constant indices become one variable for each element that is read."""
    for array in list(_ARRAY.finditer(body)):
        name, count = array["name"], int(array["count"])
        rest = body.replace(array[0], "")
        used = sorted({int(index) for index in re.findall(rf"\b{name}\[(\d+)\]", rest)})
        scalars = _scalar_names(name, used, count, rest)
        for index, scalar in scalars.items():
            rest = re.sub(rf"\b{name}\[{index}\]", scalar, rest)
        if re.search(rf"\b{name}\[", rest):
            raise RuntimeError(f"internal error: array {name} would be on the stack")
        for scalar in list(scalars.values()):
            rest, is_read = _without_dead_stores(rest, scalar)
            if not is_read:
                scalars = {index: other for index, other in scalars.items() if other != scalar}
        body = _declared(array["type"], list(scalars.values())) + rest
    return body


def _scalar_names(array: str, used: Sequence[int], count: int, body: str) -> dict[int, str]:
    """A variable for each index: `sum` for a single one, else `sum_0`, `sum_1`, ..."""
    base = array.removesuffix("_ptr")
    while any(re.search(rf"\b{base}(?:_{index})?\b", body) for index in used) and base != array:
        base = array
    return {index: base if count == 1 else f"{base}_{index}" for index in used}


def _declared(ctype: str, names: Sequence[str]) -> str:
    groups = [names[i : i + _PER_LINE] for i in range(0, len(names), _PER_LINE)]
    return "".join(f"\n  {ctype} {', '.join(group)};" for group in groups)


def _without_dead_stores(body: str, name: str) -> tuple[str, bool]:
    """The body without assignments to `name` when nothing reads it (GCC warns about such a variable)."""
    store = re.compile(rf"^ *{name} = [^;{{}}]*;$\n?", re.MULTILINE)
    calls = re.compile(r"\b[A-Za-z_]\w*\(")
    stores = store.findall(body)
    remaining = store.sub("", body)
    if re.search(rf"\b{name}\b", remaining):
        return body, True
    if any(calls.search(text) for text in stores):  # the value is unused, the call is not
        return body, True
    return remaining, False


def _plain_temporaries(body: str) -> str:
    """`v` and `v1` for the temporaries that TVM calls `v_` and `v__1`, unless these names are taken."""
    if re.search(r"\bv\d*\b", body):
        return body
    return re.sub(r"\bv__?(\d*)\b", r"v\1", body)


def _indent(line: str) -> str:
    stripped = line.lstrip(" ")
    return " " * (4 + 2 * (len(line) - len(stripped))) + stripped


def _clean(line: str) -> str:
    """The statement with minimal parentheses; unchanged when it is not one of those TVM prints."""
    stripped = line.strip()
    indent = line[: len(line) - len(line.lstrip())]
    try:
        return indent + _statement(stripped)
    except NotUnderstood:
        return line.rstrip()


def _statement(text: str) -> str:
    if text in {"{", "}", "} else {"} or re.fullmatch(r"\w+ \w+(, \w+)*;", text):
        return text
    if match := _FOR.match(text):
        start, stop, step = (
            simplify(part) if "++" not in part else part for part in match.group("start", "stop", "step")
        )
        return f"for ({match['type']} {match['name']} = {start}; {stop}; {step}) {{"
    if match := _IF.match(text):
        return f"{match['head']} ({simplify(match['condition'])}) {{"
    if match := _DECLARATION.match(text):
        return f"{match['type']} {match['name']} = {simplify(match['value'])};"
    if text.endswith(";"):
        return simplify(text[:-1]) + ";"
    raise NotUnderstood(text)
