"""How much came from a remote store, and went to it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Tally:
    """Artifacts that came from the remote store and were sent to it, with the bytes of their files that moved."""

    fetched: int = 0
    fetched_bytes: int = 0
    sent: int = 0
    sent_bytes: int = 0

    def __str__(self) -> str:
        """`7 artifacts from it (1.4 MB), 2 sent to it (0.1 MB)`, '' where nothing moved."""
        parts = [("from it", self.fetched, self.fetched_bytes), ("sent to it", self.sent, self.sent_bytes)]
        texts = [
            f"{count:,} artifact{'s' if count > 1 else ''} {where} ({size / 1e6:,.1f} MB)"
            for where, count, size in parts
            if count
        ]
        return ", ".join(texts)
