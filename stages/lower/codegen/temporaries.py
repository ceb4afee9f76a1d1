"""Variables for values that the C code uses in several places."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Temporary:
    """A variable, and the arrays and variables that its value reads."""

    name: str
    reads: frozenset[str]


@dataclass
class Scope:
    """The temporaries of a block, by the text of their value."""

    temporaries: dict[str, Temporary] = field(default_factory=dict)

    def forget(self, stored: set[str] | None) -> None:
        """Remove temporaries that read a name in `stored`; None: all that read anything."""
        self.temporaries = {
            text: temporary
            for text, temporary in self.temporaries.items()
            if not (temporary.reads if stored is None else temporary.reads & stored)
        }
