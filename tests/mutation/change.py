"""One small change of a source file, and how it is shown."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Change:
    """Characters `start` to `end` of a text become `after`; `what` says which kind of change that is."""

    start: int
    end: int
    after: str
    what: str

    def apply(self, text: str) -> str:
        """The changed text."""
        return text[: self.start] + self.after + text[self.end :]

    def line(self, text: str) -> int:
        """The number, from 1, of the line where it begins."""
        return text.count("\n", 0, self.start) + 1

    def diff(self, text: str) -> str:
        """The lines it is in, before and after."""
        first = text.rfind("\n", 0, self.start) + 1
        last = text.find("\n", self.end)
        last = len(text) if last < 0 else last
        changed = self.apply(text)
        end = last + len(changed) - len(text)
        before, after = text[first:last].splitlines(), changed[first:end].splitlines()
        return "\n".join([*(f"- {line}" for line in before), *(f"+ {line}" for line in after)])


def neighbours(number: str, start: int, what: str = "constant") -> list[Change]:
    """A whole number, decimal or hexadecimal as it is written, one more and one less."""
    value = int(number, 0)
    found = [f"{new:#x}" if number[:2].lower() == "0x" else str(new) for new in (value + 1, value - 1)]
    return [Change(start, start + len(number), new, what) for new in found]
