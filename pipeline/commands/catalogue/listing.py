"""Base of commands that list records: as columns, in full if one is named, or as JSON."""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, ClassVar

from pipeline.commands.command import JSON, Command, selected_names, variables
from pipeline.errors import PipelineError, list_known
from stages.support.messages import escape
from stages.support.messages.wording import did_you_mean

Record = Mapping[str, Any]
# The most names that an error message lists.
_MOST_KNOWN = 20


class Listing(Command, ABC):
    """A command that lists records. Arguments select records by name; `*` matches any text."""

    what: ClassVar[str]
    columns: ClassVar[tuple[str, ...]]
    # Keys that mean the same as names.
    name_keys: ClassVar[tuple[str, ...]] = ()
    cmd_options = (JSON,)

    @abstractmethod
    def records(self) -> Sequence[Record]:
        """Return all records, with JSON values. Records of one name are consecutive."""

    def names_of(self, record: Record) -> Sequence[str]:
        """Return the names that select the record as an argument."""
        return [record["name"]]

    def unknown(self, word: str, known: Sequence[str]) -> PipelineError:
        """Return the error for an argument that selects no record."""
        message = f"unknown {self.what} '{escape.name(word)}'{did_you_mean(word, known)}"
        many = len(known) > _MOST_KNOWN
        return PipelineError(
            message, hint=f"`doit {self.name}` lists them" if many else list_known(f"{self.what}s", known)
        )

    def _matches(self, record: Record, word: str) -> bool:
        return any(fnmatchcase(name.lower(), word.lower()) for name in self.names_of(record))

    def _perform(self, named: list[str], options: dict[str, Any]) -> int:
        records, named = self.records(), selected_names(named, variables(), *self.name_keys)
        for word in named:
            if not any(self._matches(record, word) for record in records):
                raise self.unknown(
                    word, list(dict.fromkeys(name for record in records for name in self.names_of(record)))
                )
        if named:
            records = [record for record in records if any(self._matches(record, word) for word in named)]
        if options["json"]:
            print(json.dumps(records, indent=1))
        elif named and len(records) == 1:
            print("\n".join(_in_full(records[0])))
        else:
            print("\n".join(in_columns(records, self.columns)))
        return 0


def in_columns(records: Sequence[Record], columns: Sequence[str]) -> list[str]:
    """Return a line of titles and a line per record. Numbers are right-aligned."""
    rows = [[_text(record.get(column)) for column in columns] for record in records]
    widths = [max(map(len, cells)) for cells in zip(columns, *rows, strict=True)]
    right = [any(isinstance(record.get(column), int) for record in records) for column in columns]
    lines = []
    for row in (list(columns), *rows):
        cells = [
            cell.rjust(width) if number else cell.ljust(width)
            for cell, width, number in zip(row, widths, right, strict=True)
        ]
        lines.append(escape.line("  ".join(cells).rstrip()))
    return lines


def _in_full(record: Record) -> list[str]:
    """Return the lines of one record: one per field and per nested value."""
    width = max(map(len, record))
    lines = []
    for field, value in record.items():
        nested = value if isinstance(value, Mapping) else {"": value}
        for number, (name, inner) in enumerate(nested.items()):
            title = field if not number else ""
            lines.append(escape.line(f"{title:{width}}  {f'{name}: ' if name else ''}{_text(inner)}".rstrip()))
    return lines


def _text(value: Any) -> str:
    if value is None or value is False:
        return ""
    if value is True:
        return "yes"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_text(inner)}" for name, inner in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_text, value))
    return f"{value:,}" if isinstance(value, int) else str(value)
