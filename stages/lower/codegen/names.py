"""Names of C variables: those of TIR, each once in a function, and none that C or its library has."""

from __future__ import annotations

_TAKEN = [
    "auto",
    "break",
    "case",
    "char",
    "const",
    "continue",
    "default",
    "do",
    "double",
    "else",
    "enum",
    "extern",
    "float",
    "for",
    "goto",
    "if",
    "inline",
    "int",
    "long",
    "register",
    "restrict",
    "return",
    "short",
    "signed",
    "sizeof",
    "static",
    "struct",
    "switch",
    "typedef",
    "union",
    "unsigned",
    "void",
    "volatile",
    "while",
    "bool",
    "true",
    "false",
]


class Names:
    """The names of one function."""

    def __init__(self) -> None:
        self._counts = dict.fromkeys(_TAKEN, 0)
        self._temporaries = 0

    def new(self, wanted: str) -> str:
        """`wanted`, or with a number behind it: `i`, `i_1`, `i_2`."""
        clean = "".join(c if (c.isalnum() and c.isascii()) or c == "_" else "_" for c in wanted)
        found = clean
        while found in self._counts:
            self._counts[clean] += 1
            found = f"{clean}_{self._counts[clean]}"
        self._counts[found] = 0
        return found

    def temporary(self) -> str:
        """`v`, `v1`, `v2`: of values that TIR has no name for."""
        while (name := f"v{self._temporaries or ''}") in self._counts:
            self._temporaries += 1
        return self.new(name)
