"""Small changes of C and of assembly with the C preprocessor: operators, comparisons, constants, lines left out.

By tokens: what the sources' own way of writing makes unambiguous. A binary operator has spaces on both sides.
"""

import re

from tests.mutation.change import Change, neighbours

_SIGNS = {
    "+": "-", "-": "+", "*": "+", "/": "*", "%": "/", "<<": ">>", ">>": "<<", "<": "<=", "<=": "<", ">": ">=",
    ">=": ">", "==": "!=", "!=": "==", "&&": "||", "||": "&&", "&": "|", "|": "&", "^": "|", "+=": "-=", "-=": "+=",
    "<<=": ">>=", ">>=": "<<=", "|=": "&=", "&=": "|=",
}  # fmt: skip
_SIGN = re.compile(rf"(?<= )(?:{'|'.join(re.escape(sign) for sign in sorted(_SIGNS, key=len, reverse=True))})(?= )")
_NUMBER = re.compile(r"(?<![\w.])(?:0[xX][0-9a-fA-F]+|\d+)(?=[uUlL]*\b)(?![\w.]*\.)")
_HIDDEN = re.compile(
    r"/\*.*?\*/|//[^\n]*|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)+'|^[ \t]*#[ \t]*(?!define)[^\n]*",
    re.DOTALL | re.MULTILINE,
)
# Not a declaration, a return or a jump: without these nothing compiles, or another line says so.
_STATEMENT = re.compile(
    r"^[ \t]+(?:(?:\*?[\w.>\[\]()+*& -]+?)(?: [-+*/|&^]| <<| >>)?= [^;\n]+|[\w]+\([^;\n]*\)|[\w.>-]+(?:\+\+|--));$",
    re.M,
)
_DECLARATION = re.compile(r"\s*(?:const|static|u?int\d*_t|int|unsigned|size_t|struct|return|char|else)\b")
_INSTRUCTION = re.compile(r"^[ \t]+\\?[a-zA-Z][\w.]*(?:[ \t]+[^\n]*\S)?[ \t]*$", re.M)
# Numbers in the names of registers and types are none; directives lay out the file.
_DIRECTIVE = re.compile(r"^[ \t]*(?:\.(?!if\b|rept\b)\w+|\w+:)[^\n]*", re.M)


def c_changes(text: str) -> list[Change]:
    """Every change of a C file that this knows, in the order of the text."""
    plain = _visible(text)
    statements = [
        Change(match.start() + len(match[0]) - len(match[0].lstrip()), match.end(), ";", "statement")
        for match in _STATEMENT.finditer(plain)
        if not _DECLARATION.match(match[0])
    ]
    return _sorted([*_signs(plain), *_numbers(plain), *statements])


def assembly_changes(text: str) -> list[Change]:
    """The same of a `.S` file: instructions left out, constants one more and one less."""
    plain = _visible(text)
    lines = [
        Change(
            match.start() + len(match[0]) - len(match[0].lstrip()),
            match.start() + len(match[0].rstrip()),
            "",
            "instruction",
        )
        for match in _INSTRUCTION.finditer(plain)
    ]
    body = _DIRECTIVE.sub(lambda match: " " * len(match[0]), plain)
    return _sorted([*_signs(plain), *_numbers(body), *lines])


def _visible(text: str) -> str:
    """The text with comments, strings and preprocessor lines but definitions replaced by as many spaces."""
    return _HIDDEN.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def _signs(plain: str) -> list[Change]:
    return [Change(m.start(), m.end(), _SIGNS[m[0]], "operator") for m in _SIGN.finditer(plain)]


def _numbers(plain: str) -> list[Change]:
    # A number with a leading zero would be octal.
    found = [m for m in _NUMBER.finditer(plain) if m[0] == "0" or not re.match(r"0\d", m[0])]
    return [change for match in found for change in neighbours(match[0], match.start())]


def _sorted(changes: list[Change]) -> list[Change]:
    return sorted(changes, key=lambda change: (change.start, change.end, change.after))
