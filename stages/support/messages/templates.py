"""The Jinja2 environment of all templates: it escapes values for the kind of file.

The kind follows from the template's name, without `.j2`:

    c         .c .h .S .cpp .ino            safe in comments and in string literals; names and numbers stay as they are
    cmake     CMakeLists.txt .cmake         safe in comments and quoted arguments
    yaml      .yml .yaml                    a plain scalar where it can be one, else a quoted one
    xml       .xml .pdsc .svg .html         text and attributes in quotes
    markdown  .md                           text; nothing is markup
    rst       .rst                          text; nothing is markup
    plain     all others (Kconfig, .ini)    one line of letters, digits, spaces and _ . , : = + ( ) / -

Filters for other destinations: `verbatim` for code that Firmline generated; `c`, `cmake`, `yaml` and so on for that
kind; `yaml_text` for a quoted scalar inside text; `code_span` between backticks of Markdown, `code_block` in an
indented or fenced block.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from stages.support.messages import escape

if TYPE_CHECKING:
    from jinja2 import BaseLoader, Environment

_SUFFIXES = {
    **dict.fromkeys((".c", ".h", ".S", ".cpp", ".ino"), "c"),
    ".cmake": "cmake",
    **dict.fromkeys((".yml", ".yaml"), "yaml"),
    **dict.fromkeys((".xml", ".pdsc", ".svg", ".html"), "xml"),
    ".md": "markdown",
    ".rst": "rst",
}
_PLAIN_SCALAR = re.compile(r"[A-Za-z_][A-Za-z0-9_.+/-]*")
# Words that YAML 1.1 does not read as text.
_YAML_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null", "none"})


class Verbatim(str):
    """Text that is not escaped again."""

    __slots__ = ()

    def __html__(self) -> str:
        return str(self)


def environment(loader: BaseLoader | None, kind: str = "", *, strict: bool = True) -> Environment:
    """Return an environment that escapes every inserted value, for `kind` or by template name.

    A `strict` one raises UndefinedError for a missing value.
    """
    from jinja2 import Environment, StrictUndefined, Undefined, pass_context

    @pass_context
    def finalize(context: Any, value: Any) -> Any:
        if isinstance(value, str) and not hasattr(value, "__html__"):
            return ESCAPES[kind or kind_of(context.name or "")](value)
        return value

    jinja = Environment(
        loader=loader,
        undefined=StrictUndefined if strict else Undefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=lambda name: (kind or kind_of(name or "")) == "xml",
        finalize=finalize,
    )
    extra = {"verbatim": _as_str, "yaml_text": yaml_text, "code_span": code_span, "code_block": code_block}
    jinja.filters |= {name: _marked(function) for name, function in (*ESCAPES.items(), *extra.items()) if name != "xml"}
    return jinja


def kind_of(template: str) -> str:
    """Return the kind of file that a template writes, by its name."""
    path = PurePosixPath(template.removesuffix(".j2"))
    if path.name.endswith("CMakeLists.txt"):
        return "cmake"
    return _SUFFIXES.get(path.suffix, "plain")


def c(text: str) -> str:
    """Return printable ASCII that is safe in C comments and strings."""
    shown = "".join(letter if " " <= letter <= "~" and letter != "\\" else "?" for letter in text)
    shown = shown.replace('"', "'").replace("*/", "* /").replace("/*", "/ *")
    shown = re.sub(r"\?(?=\?)", "? ", shown)
    # The text around the value may be the other half of `*/`.
    return f"{' ' if shown[:1] == '/' else ''}{shown}{' ' if shown[-1:] in ('*', '/', '?') else ''}"


def cmake(text: str) -> str:
    """Return text for a quoted argument or a comment: no variable, list or end of line."""
    return re.sub(r'([\\"$;])', r"\\\1", escape.visible(text).replace("\\", "/"))


def yaml(text: str) -> str:
    """Return a scalar that YAML reads as this text."""
    return text if _PLAIN_SCALAR.fullmatch(text) and text.lower() not in _YAML_WORDS else yaml_text(text)


def yaml_text(text: str) -> str:
    """Return a quoted scalar that YAML reads as this text."""
    valid = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    # YAML reads JSON's surrogate pairs as two characters.
    quoted = json.dumps(valid, ensure_ascii=False)
    return "".join(letter if letter < "\x7f" else f"\\U{ord(letter):08x}" for letter in quoted)


def xml(text: str) -> str:
    """Return text without characters that XML cannot hold; Jinja2 escapes the others."""
    return re.sub(
        "[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", lambda match: escape.visible(match[0]), text
    )


def rst(text: str) -> str:
    """Return text of reStructuredText on one line, with nothing in it that is markup."""
    return re.sub(r"([\\`*_|<>:\[\]])", r"\\\1", escape.visible(text))


def plain(text: str) -> str:
    """Return one line of letters, digits and a few marks; anything else is a `_`."""
    return re.sub(r"[^A-Za-z0-9 _.,:=+()/-]", "_", text)


def code_span(text: str) -> str:
    """Return text for between backticks of Markdown, also in a cell of a table."""
    return escape.visible(text).replace("`", "'").replace("|", "\u00a6")


def code_block(text: str) -> str:
    """Return one line for a block of code of Markdown."""
    return escape.visible(text).replace("```", "'''")


def _as_str(text: str) -> str:
    return text


def _marked(function: Callable[[str], str]) -> Callable[[Any], Verbatim]:
    return lambda value: Verbatim(function(str(value)))


ESCAPES: dict[str, Callable[[str], str]] = {
    "c": c,
    "cmake": cmake,
    "yaml": yaml,
    "xml": xml,
    "markdown": escape.markdown,
    "rst": rst,
    "plain": plain,
}
