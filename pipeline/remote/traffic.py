"""Amount of data that a run exchanged with the remote store."""

from dataclasses import dataclass


@dataclass
class Traffic:
    """Numbers of fetched and sent artifacts, and the bytes of their transferred files."""

    fetched: int = 0
    fetched_bytes: int = 0
    sent: int = 0
    sent_bytes: int = 0

    def __str__(self) -> str:
        """Return a text such as `7 artifacts from it (1.4 MB), 2 sent to it (0.1 MB)`; '' for none."""
        parts = [("from it", self.fetched, self.fetched_bytes), ("sent to it", self.sent, self.sent_bytes)]
        texts = [
            f"{count:,} artifact{'s' if count > 1 else ''} {where} ({size / 1e6:,.1f} MB)"
            for where, count, size in parts
            if count
        ]
        return ", ".join(texts)
