"""A remote store in a folder that several machines mount: file://."""

from __future__ import annotations

import contextlib
import stat
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pipeline.remote.exchange import BLOCK, current
from pipeline.remote.settings import RemoteSettings
from pipeline.remote.transport import Denied, RemoteError
from stages.support.system.regular_file import open_regular


class FolderTransport:
    """A folder. What is no regular file there is refused: a pipe or a device has no end."""

    def __init__(self, settings: RemoteSettings) -> None:
        self._root = Path(settings.url.removeprefix("file://"))

    def read(self, name: str, take: Callable[[bytes], None]) -> bool:
        """As Transport says."""
        with _told():
            try:
                stream = open_regular(self._root / name)
            except FileNotFoundError:
                return False
        with stream:
            while True:
                with _told():
                    block = stream.read(BLOCK)
                if not block:
                    return True
                take(block)

    def has(self, name: str, size: int | None = None) -> bool:
        """As Transport says."""
        with _told():
            try:
                found = (self._root / name).stat()
            except FileNotFoundError:
                return False
        return stat.S_ISREG(found.st_mode) and size in (None, found.st_size)

    def write(self, name: str, content: Path | bytes) -> None:
        """As Transport says."""
        place = self._root / name
        partial_file = place.with_name(f"{place.name}.{uuid.uuid4().hex}.part")
        with _told():
            try:
                place.parent.mkdir(parents=True, exist_ok=True)
                with partial_file.open("xb") as stream:
                    for block in blocks(content):
                        stream.write(block)
                        current().moved(len(block))
                partial_file.replace(place)
            except BaseException:
                with contextlib.suppress(OSError):
                    partial_file.unlink()
                raise


def blocks(content: Path | bytes) -> Iterator[bytes]:
    """The bytes to send, at most BLOCK at a time. Raises OSError."""
    if isinstance(content, bytes):
        yield from (content[at : at + BLOCK] for at in range(0, len(content), BLOCK))
        return
    with content.open("rb") as stream:
        while block := stream.read(BLOCK):
            yield block


@contextmanager
def _told() -> Iterator[None]:
    """What the system says as RemoteError."""
    try:
        yield
    except PermissionError as error:
        raise Denied(error.strerror or "not permitted") from error
    except OSError as error:
        raise RemoteError(error.strerror or str(error)) from error
