"""Names of an export in C and in files, and the unique names of its functions."""

import re
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

SYMBOLS = "symbols.h"
# Headers of the C library, which `<name>.h` would hide, and targets of build tools.
_RESERVED = {
    *("assert", "complex", "ctype", "errno", "fenv", "float", "inttypes", "iso646", "limits", "locale", "math"),
    *("setjmp", "signal", "stdalign", "stdarg", "stdatomic", "stdbool", "stddef", "stdint", "stdio", "stdlib"),
    *("stdnoreturn", "string", "tgmath", "threads", "time", "uchar", "wchar", "wctype"),
    *("all", "clean", "help", "install", "main", "model", "package", "test", "symbols", "test_data"),
    "kernels",  # folder of the common kernels
}
_LICENCE = re.compile(r"\A/\* SPDX-License-Identifier: [^\n]* \*/\n")


def identifier(name: str) -> str:
    """Convert a recipe's name to an identifier.

    It has lower-case letters, digits and `_`, and begins with a letter.
    """
    result = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
    if not result or not result[0].isalpha():
        result = f"net_{result}".rstrip("_")
    return f"{result}_model" if result in _RESERVED else result


def renamed(
    sources: Mapping[str, bytes], symbols: Iterable[str], prefix: str, prefixes: Iterable[str] = ()
) -> dict[str, bytes]:
    """Prefix global symbols by macros in `symbols.h`, unless they have one of `prefixes`.

    sources  files by path: C, headers, preprocessed assembly and others
    symbols  functions and variables that the objects define

    Kernels, and all files that contain one of the symbols, include `symbols.h`.
    """
    known = tuple(f"{known}_" for known in (prefix, *prefixes))
    foreign = sorted({symbol for symbol in symbols if not symbol.startswith(known)})
    if not foreign:
        return dict(sources)
    named = re.compile(rb"\b(?:" + b"|".join(re.escape(symbol.encode()) for symbol in foreign) + rb")\b")
    files = {SYMBOLS: _definitions(foreign, prefix)}
    for path, content in sources.items():
        may_name = path.endswith((".c", ".h", ".S")) and (path.startswith("kernels/") or named.search(content))
        text = _assembled(path, content.decode(), prefix) if may_name else ""
        files[path] = _including(path, text).encode() if may_name else content
    return dict(sorted(files.items()))


def _definitions(symbols: Iterable[str], prefix: str) -> bytes:
    guard = f"{prefix.upper()}_SYMBOLS_H"
    lines = [
        "/* SPDX-License-Identifier: Apache-2.0 */",
        "/* Unique names for functions that other exported networks have too. */",
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
    """Add the prefix to names that assembler macros compose, `rvp_rows_\\suffix`.

    The C preprocessor sees only parts of such a name. Kernel names begin with the name of their folder.
    """
    if not path.endswith(".S"):
        return text
    folder = re.escape(PurePosixPath(path).parent.name)
    return re.sub(rf"(?<![\w\\.])({folder}_\w*)(?=\\)", rf"{prefix}_\1", text)


def _including(path: str, text: str) -> str:
    """Add the include of symbols.h after the licence line."""
    up = "../" * (len(PurePosixPath(path).parts) - 1)
    licence = _LICENCE.match(text)
    position = licence.end() if licence else 0
    return f'{text[:position]}#include "{up}{SYMBOLS}"\n{text[position:]}'
