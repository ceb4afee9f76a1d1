"""Names of C variables: TIR's names, unique in a function, and none of C's own."""

_RESERVED = [
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
        self._counts = dict.fromkeys(_RESERVED, 0)
        self._temporaries = 0

    def new(self, base: str) -> str:
        """Return `base`, or `base` with a number: `i`, `i_1`, `i_2`."""
        clean = "".join(c if (c.isalnum() and c.isascii()) or c == "_" else "_" for c in base)
        name = clean
        while name in self._counts:
            self._counts[clean] += 1
            name = f"{clean}_{self._counts[clean]}"
        self._counts[name] = 0
        return name

    def temporary(self) -> str:
        """Return a name for a value without one in TIR: `v`, `v1`, `v2`."""
        while (name := f"v{self._temporaries or ''}") in self._counts:
            self._temporaries += 1
        return self.new(name)
