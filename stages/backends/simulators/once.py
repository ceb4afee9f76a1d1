"""Build something into a cache once, also if several processes need it at the same time."""

import fcntl
import hashlib
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from stages.support.system.programs import run_tool

_DIGEST = ".sha256"
_BUILD = "build-"


def read_sources(folder: Path) -> dict[str, bytes]:
    """Return the files of a folder by name, so that later changes do not affect the build."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}


def key_of(sources: Mapping[str, bytes], identity: Sequence[str]) -> str:
    """Return 16 hexadecimal digits over the sources and all else that decides the result."""
    digest = hashlib.sha256()
    for name, content in sources.items():
        digest.update(name.encode() + b"\0" + content + b"\0")
    digest.update("\0".join(identity).encode())
    return digest.hexdigest()[:16]


@cache
def first_line_of_version(program: str) -> str:
    """Return the first line of a program's `--version`. Raises StageError."""
    return run_tool([program, "--version"]).stdout.partition("\n")[0]


def built_once(library: Path, sources: Mapping[str, bytes], build: Callable[[Path, Path], None]) -> Path:
    """Return `library`; if missing or damaged, `build(source folder, output file)` makes it.

    The library appears only when it is complete. The parent of its folder has the lock. Remains of killed builds there
    are removed.
    """
    if not _is_whole(library):
        cache = library.parent.parent
        with _lock(cache):
            for left in cache.glob(f"{_BUILD}*"):
                shutil.rmtree(left, ignore_errors=True)
            if not _is_whole(library):  # another process may have built it meanwhile
                _build(library, sources, build)
    return library


def _build(library: Path, sources: Mapping[str, bytes], build: Callable[[Path, Path], None]) -> None:
    with tempfile.TemporaryDirectory(dir=library.parent.parent, prefix=_BUILD) as name:
        folder, output = Path(name, "src"), Path(name, "out", library.name)
        folder.mkdir()
        output.parent.mkdir()
        for file, content in sources.items():
            (folder / file).write_bytes(content)
        build(folder, output)
        _digest_file(output).write_text(_digest(output))
        shutil.rmtree(library.parent, ignore_errors=True)
        output.parent.rename(library.parent)


def _is_whole(library: Path) -> bool:
    """Return whether the library has the bytes that it was built with."""
    try:
        return _digest_file(library).read_text() == _digest(library)
    except (OSError, ValueError):
        return False


def _digest_file(library: Path) -> Path:
    return library.with_name(library.name + _DIGEST)


def _digest(library: Path) -> str:
    return hashlib.sha256(library.read_bytes()).hexdigest()


@contextmanager
def _lock(folder: Path) -> Iterator[None]:
    """Let one process build at a time. The lock ends with the process that holds it."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
