"""Name the original file of a copied kernel source in compiler errors."""

import re
from functools import partial
from pathlib import Path

from stages.backends.kernels.places import path_of
from stages.backends.targets.spec import Target


def with_originals(output: str, target: Target) -> str:
    """Return compiler output with the original kernel files and lines instead of the copies.

    `.../src/kernels/acme/gemm.c:8:3` is `plugins/kernels/acme/gemm.c:7:3` of a project,
    `stages/backends/.../kernels/...` of Firmline; of other plug-ins it is the whole path.
    """
    for name in target.kernels:
        folder = target.places.get(f"kernels/{name}") or path_of(name)
        copied = re.compile(rf"(\S*/kernels/{re.escape(name)}/)([^\s:]+):(\d+)")
        output = copied.sub(partial(_original, folder), output)
    return output


def _original(folder: Path, match: re.Match[str]) -> str:
    copy, original = Path(match[1], match[2]), folder / match[2]
    if not copy.is_file() or not original.is_file() or copy.samefile(original):
        return match[0]
    added = len(copy.read_text().splitlines()) - len(original.read_text().splitlines())
    return f"{_shown(original)}:{max(int(match[3]) - added, 1)}"


def _shown(path: Path) -> str:
    """Return a path from `plugins/kernels` or `stages/backends` on."""
    parts = path.parts
    for number in reversed(range(len(parts) - 1)):
        if parts[number : number + 2] in (("plugins", "kernels"), ("stages", "backends")):
            return str(Path(*parts[number:]))
    return str(path)
