"""Variables for values that C would compute in several places."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Temporary:
    """A variable, and the arrays and variables that were read for its value."""

    name: str
    reads: frozenset[str]


@dataclass
class Scope:
    """Between two braces: temporaries by the text of their value."""

    temporaries: dict[str, Temporary] = field(default_factory=dict)

    def forget(self, stored: set[str] | None) -> None:
        """Leaves out those that read what was stored; None: anything, so all that read at all."""
        self.temporaries = {
            text: one
            for text, one in self.temporaries.items()
            if not (one.reads if stored is None else one.reads & stored)
        }
