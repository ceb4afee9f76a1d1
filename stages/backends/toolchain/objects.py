"""Object files of kernels and run-time code, compiled once for all networks and recipes.

Each object is an artifact. Its key has the text of the source with all that it includes, the flags, and the
versions of the tools.
"""

import hashlib
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stages.support.cache import Cache
from stages.support.messages.stage_error import StageError

_OBJECT = "object.o"
_INCLUDE = re.compile(r"^\s*#\s*include\s*(.*)$", re.MULTILINE)
_READS_MORE = re.compile(r"\.inc(bin|lude)\b")  # the assembler reads a file that no #include names


@dataclass(frozen=True)
class ObjectCache:
    """Object files in the artifact store.

    cache    the store, as a stage sees it
    tools    versions of the compiler and its C library, by name
    shared   folders whose sources are the same for all networks
    places   folders with the names that stand for them in keys and in debug information, the innermost first
    """

    cache: Cache
    tools: Mapping[str, str]
    shared: tuple[Path, ...]
    places: tuple[tuple[Path, str], ...]

    def bring(
        self,
        source: Path,
        arguments: Sequence[str],
        include: Sequence[Path],
        out: Path,
        compile_to: Callable[[Path], None],
    ) -> bool:
        """Write the object of `source` to `out`; return False if no key can describe the source.

        `arguments` are the compiler's, without input and output; `include` are folders of headers. `compile_to(file)`
        compiles the source if the store lacks the object.
        """
        ingredients = self._ingredients(source, arguments, include, out.parent)
        if ingredients is None:
            return False

        def write(folder: Path) -> None:
            compile_to(out)
            if self._ingredients(source, arguments, include, out.parent) != ingredients:
                raise StageError(f"{source.name} has changed while it was compiled", hint="run again")
            shutil.move(out, folder / _OBJECT)

        shutil.copyfile(self.cache.get(ingredients, write) / _OBJECT, out)
        return True

    def _ingredients(
        self, source: Path, arguments: Sequence[str], include: Sequence[Path], folder: Path
    ) -> dict[str, Any] | None:
        if not any(source.is_relative_to(place) for place in self.shared):
            return None
        try:
            text = dict(self._read(source, include))
        except LookupError:
            return None
        return {
            "stage": "object",
            "source": self._shown(str(source)),
            "folder": self._shown(str(folder)),
            "text": text,
            "flags": [self._shown(word) for word in arguments],
            "tools": dict(self.tools),
        }

    def _read(self, source: Path, include: Sequence[Path]) -> Iterator[tuple[str, str]]:
        """Return name and sha256 of the source and of all files that it includes.

        Raises LookupError for a source that depends on the network, or on what the compiler defines.
        """
        waiting, done = [source], {source}
        while waiting:
            path = waiting.pop()
            text = path.read_text()
            yield self._shown(str(path)), hashlib.sha256(text.encode()).hexdigest()
            if path.suffix == ".S" and _READS_MORE.search(text):
                raise LookupError(path)
            for named in _INCLUDE.findall(text):
                if named.startswith("<"):
                    continue  # the compiler's and the C library's
                if not named.startswith('"'):
                    raise LookupError(path)
                name = named.split('"')[1]
                header = next((place / name for place in (path.parent, *include) if (place / name).is_file()), None)
                if header is None or not any(header.resolve().is_relative_to(place.resolve()) for place in self.shared):
                    raise LookupError(path)
                if header.resolve() not in done:
                    done.add(header.resolve())
                    waiting.append(header)

    def _shown(self, text: str) -> str:
        for place, name in self.places:
            text = text.replace(str(place), name)
        return text
