"""A remote store in a mounted folder: file://."""

import contextlib
import stat
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pipeline.remote.settings import RemoteSettings
from pipeline.remote.transport import BLOCK, Denied, RemoteError
from stages.support.system.regular_file import open_regular


class FolderTransport:
    """A folder. Only regular files are read: a pipe or device has no end."""

    def __init__(self, settings: RemoteSettings) -> None:
        self._root = Path(settings.url.removeprefix("file://"))

    def read(self, name: str, take: Callable[[bytes], None]) -> bool:
        """See Transport."""
        with _convert_errors():
            try:
                stream = open_regular(self._root / name)
            except FileNotFoundError:
                return False
        with stream:
            while True:
                with _convert_errors():
                    block = stream.read(BLOCK)
                if not block:
                    return True
                take(block)

    def has(self, name: str, size: int | None = None) -> bool:
        """See Transport."""
        with _convert_errors():
            try:
                info = (self._root / name).stat()
            except FileNotFoundError:
                return False
        return stat.S_ISREG(info.st_mode) and size in (None, info.st_size)

    def write(self, name: str, content: Path | bytes) -> None:
        """See Transport."""
        place = self._root / name
        partial_file = place.with_name(f"{place.name}.{uuid.uuid4().hex}.part")
        with _convert_errors():
            try:
                place.parent.mkdir(parents=True, exist_ok=True)
                with partial_file.open("xb") as stream:
                    for block in blocks(content):
                        stream.write(block)
                partial_file.replace(place)
            except BaseException:
                with contextlib.suppress(OSError):
                    partial_file.unlink()
                raise


def blocks(content: Path | bytes) -> Iterator[bytes]:
    """Yield the bytes to send in blocks of at most BLOCK. Raises OSError."""
    if isinstance(content, bytes):
        yield from (content[at : at + BLOCK] for at in range(0, len(content), BLOCK))
        return
    with content.open("rb") as stream:
        while block := stream.read(BLOCK):
            yield block


@contextmanager
def _convert_errors() -> Iterator[None]:
    """Turn OSError into RemoteError."""
    try:
        yield
    except PermissionError as error:
        raise Denied(error.strerror or "not permitted") from error
    except OSError as error:
        raise RemoteError(error.strerror or str(error)) from error
