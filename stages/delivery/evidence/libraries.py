"""Libraries of the toolchain in a firmware, from the linker's map.

Each with version, licence, Debian package and linked objects.
"""

import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from stages.delivery.evidence.provenance import sha256
from stages.delivery.evidence.release import Library

_LOADED = re.compile(r"^LOAD (/.+\.(?:a|o|so(?:\.[0-9.]+)?))$", re.MULTILINE)
_MEMBER = re.compile(r"^(/[^()\n]+\.a)\(([^()\n]+)\)", re.MULTILINE)
_OF_GCC = re.compile(r"libgcc|crtbegin|crtend|crtfastmath")
_OF_C_LIBRARY = re.compile(
    r"lib(c|m|g|mvec|nosys|semihost|rdimon|c_nano|g_nano|c_nonshared)[.]|s?g?crt[01in]|ld-linux", re.I
)
_GCC = {"expression": "GPL-3.0-or-later WITH GCC-exception-3.1"}
# Licences as CycloneDX writes them. Newlib and picolibc have a licence in each file.
_LICENSES: Mapping[str, Mapping[str, Any]] = {
    "newlib": {"license": {"name": "BSD-3-Clause and other permissive licenses of its files, see COPYING.NEWLIB"}},
    "picolibc": {"license": {"name": "BSD-3-Clause and other permissive licenses of its files, see COPYING.picolibc"}},
    "glibc": {"license": {"id": "LGPL-2.1-or-later"}},
}


def libraries(map_text: str, tools: Mapping[str, str]) -> list[Library]:
    """Return C library and libgcc, and other libraries if the firmware has objects of them.

    Reads the files' digests.

    map_text  the linker's map
    tools     versions: `compiler`, and `C library` as `newlib 3.3.0`
    """
    objects: dict[str, list[str]] = {path: [] for path in _LOADED.findall(map_text)}
    for path in objects:
        if not path.endswith(".a"):
            objects[path].append(Path(path).name)
    for path, member in _MEMBER.findall(map_text):
        objects.setdefault(path, []).append(f"{Path(path).name}({member})")
    name, _, version = tools.get("C library", "").partition(" ")
    of_gcc = [path for path in objects if _OF_GCC.match(Path(path).name)]
    of_c = [path for path in objects if path not in of_gcc and _OF_C_LIBRARY.match(Path(path).name)]
    license_ = _LICENSES.get(name)
    toolchain_libraries = [
        _library(name or "C library", version, license_, {path: objects[path] for path in of_c}),
        _library("libgcc", tools.get("compiler", ""), _GCC, {path: objects[path] for path in of_gcc}),
    ]
    others = [path for path, linked in objects.items() if linked and path not in (*of_gcc, *of_c)]
    return toolchain_libraries + [
        _library(Path(path).name.partition(".")[0], "", None, {path: objects[path]}) for path in others
    ]


def _library(name: str, version: str, license_: Mapping[str, Any] | None, objects: Mapping[str, list[str]]) -> Library:
    files = {Path(path).name: sha256(Path(path)) for path in objects if Path(path).is_file()}
    linked = tuple(dict.fromkeys(entry for entries in objects.values() for entry in entries))
    by_objects = sorted(objects, key=lambda path: -len(objects[path]))
    return Library(name, version, license_, dict(sorted(files.items())), linked, _package(by_objects))


def _package(paths: Iterable[str]) -> str:
    """Return the package URL of the first file that a Debian package has, '' if there is none."""
    if shutil.which("dpkg-query") is None:
        return ""
    for path in paths:
        owner = _output("dpkg-query", "-S", str(Path(path).resolve())).partition(": ")[0]
        if owner:
            version, _, architecture = _output("dpkg-query", "-W", "-f", "${Version} ${Architecture}", owner).partition(
                " "
            )
            name = owner.partition(":")[0]
            return f"pkg:deb/{_vendor()}/{name}@{quote(version, safe='')}?arch={architecture}"
    return ""


def _vendor() -> str:
    """Return `debian`, `ubuntu`, … of this machine."""
    try:
        lines = Path("/etc/os-release").read_text(encoding="utf-8").splitlines()
    except OSError:
        return "debian"
    return next((line[3:].strip("\"'") for line in lines if line.startswith("ID=")), "debian")


def _output(*command: str) -> str:
    """Return the first line that a program prints, '' if it fails."""
    result = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=60, check=False)
    return result.stdout.partition("\n")[0] if result.returncode == 0 else ""
