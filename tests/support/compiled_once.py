"""Objects of sources that many tests compile in the same way: kernels, the harness, the board's start.

The key is all that an object is made of: the compiler, its options, and the text that its preprocessor makes of the
source. The name of a temporary folder counts for nothing there, where only debug information has it.
"""

import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from threading import get_ident
from typing import Any

RunTool = Callable[..., subprocess.CompletedProcess[str]]
_TEMPORARY = str(Path(tempfile.gettempdir()).resolve())
_MARK = re.compile(r'^# \d+ ".*$', re.MULTILINE)  # of a line's file, which only debug information has
_FOLDER = re.compile(r"-I(.+)|-f\w+-prefix-map=([^=]+)=")
_READS_MORE = re.compile(r"\.inc(bin|lude)\b")  # what the assembler reads is not in the preprocessor's text


def compiled_once(run_tool: RunTool, folder: Path) -> RunTool:
    """`run_tool` that takes the object of an equal call from `folder`, and puts it there."""

    def run(arguments: Sequence[str], *, cwd: Path | None = None, **options: Any) -> subprocess.CompletedProcess[str]:
        key = _key(run_tool, arguments, cwd, options)
        if not key:
            return run_tool(arguments, cwd=cwd, **options)
        kept, made = folder / key, Path(arguments[-1])
        if kept.is_file():
            shutil.copyfile(kept, made)
            return subprocess.CompletedProcess(arguments, 0, "", "")
        done = run_tool(arguments, cwd=cwd, **options)
        if done.returncode == 0 and not done.stdout and not done.stderr:
            part = kept.with_name(f"{key}.{get_ident()}")
            shutil.copyfile(made, part)
            part.replace(kept)
        return done

    return run


def _key(run_tool: RunTool, arguments: Sequence[str], cwd: Path | None, options: dict[str, Any]) -> str:
    """'' for a call that is not the compilation of one file, or of which the text does not say all."""
    if len(arguments) < 5 or arguments[-4] != "-c" or arguments[-2] != "-o":
        return ""
    compiler = _identity(arguments[0])
    if not compiler:
        return ""
    command, source = [*arguments[:-4]], Path(arguments[-3])
    if source.suffix not in (".c", ".S"):  # others have no preprocessor
        return ""
    text = run_tool([*command, "-E", str(source)], cwd=cwd, **options)
    if text.returncode or _READS_MORE.search(text.stdout):
        return ""
    named = [found[1] or found[2] for word in command if (found := _FOLDER.match(word))]
    places = list(_temporary([cwd, source.parent, *named]))

    def placed(name: str) -> str:
        for place, stands in places:
            name = name.replace(place, stands)
        return name

    # The preprocessor has used these, and the names of its folders are in the text.
    flags = [placed(word) for word in command[1:] if not word.startswith(("-D", "-U", "-I"))]
    said = _MARK.sub(lambda found: placed(found[0]), text.stdout)
    return sha256("\0".join([*compiler, source.suffix, *flags, said]).encode()).hexdigest()


def _temporary(folders: Sequence[Path | str | None]) -> Iterator[tuple[str, str]]:
    """Those that are temporary, the longest first, each with what stands for it."""
    named = {str(place): f"<{number}>" for number, place in reversed([*enumerate(folders)]) if place is not None}
    for place in sorted(named, key=len, reverse=True):
        if place.startswith(_TEMPORARY):
            yield place, named[place]


def _identity(command: str) -> tuple[str, ...]:
    """Where the compiler lies and its age; nothing for one that a test has made."""
    path = shutil.which(command)
    return () if path is None or path.startswith(_TEMPORARY) else _age(path)


@cache
def _age(path: str) -> tuple[str, ...]:
    known = Path(path).resolve().stat()
    return path, str(known.st_size), str(known.st_mtime_ns)
