"""What an export is called in C and in file names, and names of its functions that no other export has."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

SYMBOLS = "symbols.h"
# Headers of C's library, which `<name>.h` beside them would hide, and targets that build tools have.
_TAKEN = {
    *("assert", "complex", "ctype", "errno", "fenv", "float", "inttypes", "iso646", "limits", "locale", "math"),
    *("setjmp", "signal", "stdalign", "stdarg", "stdatomic", "stdbool", "stddef", "stdint", "stdio", "stdlib"),
    *("stdnoreturn", "string", "tgmath", "threads", "time", "uchar", "wchar", "wctype"),
    *("all", "clean", "help", "install", "main", "model", "package", "test", "symbols", "test_data"),
}
_LICENCE = re.compile(r"\A/\* SPDX-License-Identifier: [^\n]* \*/\n")


def identifier(name: str) -> str:
    """A recipe's name as C and build tools take it: small letters, digits and `_`, beginning with a letter."""
    word = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
    if not word or not word[0].isalpha():
        word = f"net_{word}".rstrip("_")
    return f"{word}_model" if word in _TAKEN else word


def renamed(sources: Mapping[str, bytes], symbols: Iterable[str], prefix: str) -> dict[str, bytes]:
    """The sources with the prefix before all of `symbols` that lack it.

    sources    the files by their paths, C, headers and assembly that the C preprocessor reads among them
    symbols    the functions and variables that their objects define for others

    Each file that may name one, all kernels among them, includes `symbols.h`, which defines the names anew.
    """
    foreign = sorted({symbol for symbol in symbols if not symbol.startswith(f"{prefix}_")})
    if not foreign:
        return dict(sources)
    named = re.compile(rb"\b(?:" + b"|".join(re.escape(symbol.encode()) for symbol in foreign) + rb")\b")
    found = {SYMBOLS: _definitions(foreign, prefix)}
    for path, content in sources.items():
        may_name = path.endswith((".c", ".h", ".S")) and (path.startswith("kernels/") or named.search(content))
        text = _assembled(path, content.decode(), prefix) if may_name else ""
        found[path] = _including(path, text).encode() if may_name else content
    return dict(sorted(found.items()))


def _definitions(symbols: Iterable[str], prefix: str) -> bytes:
    guard = f"{prefix.upper()}_SYMBOLS_H"
    lines = [
        "/* SPDX-License-Identifier: Apache-2.0 */",
        "/* Functions that several exported networks have, under a name of this one's. */",
        f"#ifndef {guard}",
        f"#define {guard}",
        "",
        *(f"#define {symbol} {prefix}_{symbol}" for symbol in symbols),
        "",
        "#endif",
        "",
    ]
    return "\n".join(lines).encode()


def _assembled(path: str, text: str, prefix: str) -> str:
    """Assembly with the prefix before names that its macros make, `rvp_rows_\\suffix`.

    The C preprocessor sees only pieces of these. Kernels' names begin with that of their folder.
    """
    if not path.endswith(".S"):
        return text
    folder = re.escape(PurePosixPath(path).parent.name)
    return re.sub(rf"(?<![\w\\.])({folder}_\w*)(?=\\)", rf"{prefix}_\1", text)


def _including(path: str, text: str) -> str:
    """The text that includes symbols.h, below its licence line."""
    up = "../" * (len(PurePosixPath(path).parts) - 1)
    licence = _LICENCE.match(text)
    at = licence.end() if licence else 0
    return f'{text[:at]}#include "{up}{SYMBOLS}"\n{text[at:]}'
