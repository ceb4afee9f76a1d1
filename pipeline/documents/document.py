"""YAML documents, with the position of each value.

`load_document` parses without positions, which is fast, and keeps the text. `Document.locate` parses the text again,
into nodes with line and column, and finds the node of a path such as ("stages", "layout", "rules", 0).
"""

import contextlib
import hashlib
import json
import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pipeline.documents.positions import LINE_END, Position, error_at
from pipeline.errors import RecipeError
from stages.support.messages import escape
from stages.support.system.caches import read_cache, write_cache
from stages.support.system.installation import build_cache

YamlPath = tuple[str | int, ...]
MAX_FILE_BYTES = 4 << 20
# Name of a dictionary recipe in messages: `recipe['model']['file']`.
DICTIONARY = "recipe"
_BYTE_ORDER_MARKS = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}


@dataclass(frozen=True)
class Document:
    """A parsed YAML file or dictionary. Errors in a dictionary show a path instead of a line.

    name: the name in messages; a file inside the project has its path relative to the project.
    """

    name: str
    text: str
    data: Any
    is_file: bool = True

    def locate(self, path: YamlPath, *, key: bool = False) -> Position:
        """Return the position of the value (or key) at `path`, or of the nearest enclosing value."""
        from pipeline.documents.parsing import position_of

        return position_of(self.text, path, key=key)

    def error(self, message: str, path: YamlPath, *, key: bool = False, hint: str = "") -> RecipeError:
        """Return the error for the value at `path` (its key with `key`).

        A file gives `file:line:column: message`, the line and a caret; a dictionary gives
        `recipe['stages']['emit']: message`.
        """
        if self.is_file:
            return error_at(self.name, self.text, message, self.locate(path, key=key), hint)
        place = self.name + "".join(f"[{escape.quoted(part) if isinstance(part, str) else part}]" for part in path)
        return RecipeError(f"{place}: {escape.line(message)}", hint=hint, file=place)


def parse_value(text: str) -> Any:
    """Parse a YAML value of the command line. Raises ValueError if it is not YAML."""
    from pipeline.documents.parsing import parse_yaml_value

    return parse_yaml_value(text)


def dictionary_document(data: Mapping[str, Any]) -> Document:
    """Return a dictionary as a document. Raises RecipeError for values without a YAML type."""
    from pipeline.documents.parsing import dump_yaml, parse_yaml_value

    try:
        text = dump_yaml(data)
    except ValueError as error:
        raise RecipeError(f"{DICTIONARY}: a value has no YAML type: {error}") from None
    try:
        return Document(DICTIONARY, text, parse_yaml_value(text), is_file=False)
    except ValueError as error:
        raise RecipeError(f"{DICTIONARY}: {error}") from None


def load_document(path: Path, name: str) -> Document:
    """Read a YAML file. Raises RecipeError if it is unreadable or outside of the YAML subset."""
    try:
        data = _read(path)
    except OSError as error:
        raise RecipeError(f"{name}: cannot be read: {error.strerror or error}", file=name) from None
    if len(data) > MAX_FILE_BYTES:
        raise RecipeError(f"{name}: is larger than {MAX_FILE_BYTES >> 20} MiB, the limit for recipes", file=name)
    if data[:2] in _BYTE_ORDER_MARKS:
        raise RecipeError(f"{name}: is {_BYTE_ORDER_MARKS[data[:2]]} text; save it as UTF-8", file=name)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8-sig", errors="replace")
        lines = LINE_END.split(before)
        message = f"is not UTF-8 text: byte 0x{data[error.start]:02x}; save the file as UTF-8"
        text = data.decode("utf-8-sig", errors="replace")
        raise error_at(name, text, message, Position(len(lines), len(lines[-1]) + 1)) from None
    return Document(name, text, cached_parse(text, lambda: _parsed(name, text)))


def _parsed(name: str, text: str) -> Any:
    from pipeline.documents.parsing import parse_yaml_document

    return parse_yaml_document(name, text)


def _read(path: Path) -> bytes:
    """Return the first MAX_FILE_BYTES + 1 bytes of a regular file. Raises OSError."""
    # O_NONBLOCK: opening a named pipe must not wait for a writer.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError("not a regular file")
        return stream.read(MAX_FILE_BYTES + 1)


# Maximum number of entries; above it the oldest are deleted.
_MAX_ENTRIES = 500


def cached_parse(text: str, parse: Callable[[], Any]) -> Any:
    """Return the cached value of a text, or call `parse` and cache its result.

    Exceptions of `parse` propagate.
    """
    path = build_cache("documents") / f"{hashlib.sha256(f'{_parser_digest()}{text}'.encode()).hexdigest()}.json"
    entry = read_cache(path)
    if isinstance(entry, dict) and "value" in entry:
        return entry["value"]
    value = parse()
    with contextlib.suppress(OSError, ValueError, TypeError, RecursionError):
        if json.loads(json.dumps(value)) == value:
            _trim(path.parent)
            write_cache(path, {"value": value})
    return value


@cache
def _parser_digest() -> str:
    """Digest of the accepted YAML subset and of PyYAML (the file with its version)."""
    parser = find_spec("yaml")
    files = [Path(__file__).with_name("yaml_subset.py"), *([Path(parser.origin)] if parser and parser.origin else [])]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def _trim(folder: Path) -> None:
    entries = list(folder.glob("*.json"))
    if len(entries) > _MAX_ENTRIES:
        for path in sorted(entries, key=lambda path: path.stat().st_mtime)[: _MAX_ENTRIES // 2]:
            path.unlink(missing_ok=True)
