"""`pytest --changed`: the test files that a change affects.

A test file is affected if it changed, if it imports a changed module (also through other modules), or if it names the
changed file. Imports are read from the source, and those under TYPE_CHECKING do not count. What is loaded by a name
made at run time (stages, kernels) is not seen, so a change also affects the tests of its own folder, and a change of
a stage those that emit and run whole networks.
"""

import re
import subprocess
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_CODE = ("pipeline", "stages", "tests")
_FROM = re.compile(r"^[ \t]*from (\w[\w.]*) import (\([^)]*\)|.*)", re.MULTILINE)
_IMPORT = re.compile(r"^[ \t]*import (.*)", re.MULTILINE)
_NAME = re.compile(r"(?<![\w.])(?!as\b)[A-Za-z_][\w.]*")
_ONLY_FOR_TYPES = re.compile(r"^([ \t]*)if TYPE_CHECKING:\n(?:\1[ \t]+.*\n|\n)*", re.MULTILINE)
# A change of these affects all tests.
_ALL = {"tests/conftest.py", "pyproject.toml", "constraints.txt"}
# Folders of tests that a change below a folder affects, beside those that the imports show.
_AFFECTS = {
    "stages/": ("tests/golden", "tests/firmware"),
    "stages/backends/kernels/": ("tests/unit/kernels", "tests/unit/tensorize", "tests/conformance"),
    "stages/backends/accelerators/": ("tests/unit/accelerators",),
    "docs/": ("tests/docs",),
    "README.md": ("tests/docs",),
    "recipes/": ("tests/unit/pipeline/recipes", "tests/firmware/test_recipes.py"),
    "pipeline.yaml": ("tests/unit/targets", "tests/unit/pipeline/recipes", "tests/unit/pipeline/test_project.py"),
}


def changed_files(root: Path = ROOT) -> set[str]:
    """Return the files that differ from the merge base with main, and those that git does not know yet.

    Paths are relative to `root`. Main is origin/main or main; without either only uncommitted changes count.
    """
    base = "HEAD"
    for main in ("origin/main", "main"):
        found = _git(root, "merge-base", "HEAD", main)
        if found:
            base = found[0]
            break
    return {*_git(root, "diff", "--name-only", "--no-renames", base), *_untracked(root)}


def _untracked(root: Path) -> list[str]:
    return _git(root, "ls-files", "--others", "--exclude-standard")


def _git(root: Path, *words: str) -> list[str]:
    """Return the lines that git prints, none where it fails."""
    done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=False)
    return done.stdout.splitlines() if done.returncode == 0 else []


def affected(changed: Iterable[str], root: Path = ROOT) -> set[str]:
    """Return the test files (paths relative to `root`) that changed files affect."""
    changed = set(changed)
    tests = {path for path in _modules(root) if path.startswith("tests/") and Path(path).name.startswith("test_")}
    if changed & _ALL:
        return tests
    modules = {path for path in changed if path.endswith(".py")}
    reached = _importers(modules | {module for path in changed - modules for module in _owners(path, root)}, root)
    folders = [folder for path in changed for folder in _tests_of(path, root)]
    names = {name for path in changed - modules for name in _names(path)}
    return {
        test
        for test in tests
        if test in reached
        or any(test == folder or test.startswith(f"{folder}/") for folder in folders)
        or (names and any(name in _text(root / test) for name in names))
    }


def _tests_of(path: str, root: Path) -> Iterator[str]:
    """Folders and files of tests that a changed file affects by where it lies."""
    parts = Path(path).parts
    if parts[0] in ("pipeline", "stages") and len(parts) > 2:
        own = Path("tests/unit", *(parts[1:] if parts[0] == "stages" else parts))
        if (folder := _nearest_tests(own.as_posix(), root)) not in ("tests/unit", "tests/unit/pipeline"):
            yield folder
    if parts[0] == "tests" and (not path.endswith(".py") or Path(path).name == "conftest.py"):
        yield _nearest_tests(path, root)
    for prefix, folders in _AFFECTS.items():
        if path.startswith(prefix):
            yield from folders


def _nearest_tests(path: str, root: Path) -> str:
    """Return the folder of a file, or the nearest one above it that has tests."""
    folder = Path(path).parent
    while len(folder.parts) > 1 and not any(one.startswith(f"{folder.as_posix()}/") for one in _modules(root)):
        folder = folder.parent
    return folder.as_posix()


def _owners(path: str, root: Path) -> list[str]:
    """Modules that read a file which is no module: those beside it that name it, else all of its folder."""
    folder = Path(path).parent
    if folder.parts[:1] not in (("stages",), ("pipeline",)):
        return []
    while not (beside := [name for name in _modules(root) if Path(name).parent == folder]) and len(folder.parts) > 1:
        folder = folder.parent
    return [name for name in beside if Path(path).name in _text(root / name)] or beside


def _names(path: str) -> Iterator[str]:
    """Texts by which a test names a file that is no module."""
    if "/" in path:
        yield path
    if path.startswith(("docs/", "recipes/")):
        yield f"{Path(path).stem}.md" if path.startswith("docs/") else f'"{Path(path).stem}'
    if "/" not in path:
        yield f'"{path}"'


def _importers(modules: set[str], root: Path) -> set[str]:
    """Return modules, and those that import them directly or not."""
    importers: dict[str, set[str]] = {}
    for path in _modules(root):
        for imported in _imports(root / path, root):
            importers.setdefault(imported, set()).add(path)
    waiting, reached = list(modules), set(modules)
    while waiting:
        fresh = importers.get(waiting.pop(), set()) - reached
        reached |= fresh
        waiting += fresh
    return reached


@cache
def _modules(root: Path) -> tuple[str, ...]:
    return tuple(
        path.relative_to(root).as_posix()
        for folder in _CODE
        for path in sorted((root / folder).rglob("*.py"))
        if "__pycache__" not in path.parts
    )


@cache
def _known(root: Path) -> frozenset[str]:
    return frozenset(_modules(root))


@cache
def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _imports(path: Path, root: Path) -> set[str]:
    """Return the modules of the project that a module imports; all of its folder where it goes through it.

    Imports of programs that it has as texts count too.
    """
    text = _ONLY_FOR_TYPES.sub("", _text(path))
    found = {name for names in _IMPORT.findall(text) for name in _NAME.findall(names)}
    for module, names in _FROM.findall(text):
        found |= {module, *(f"{module}.{name}" for name in _NAME.findall(names))}
    places = {place for name in found for place in _places(name, root)}
    if "iter_modules(" in text:
        places |= {one.relative_to(root).as_posix() for one in path.parent.glob("*.py")}
    return places


def _places(name: str, root: Path) -> Iterator[str]:
    """The file of a module of the project, or of a package."""
    parts = name.split(".")
    if parts[0] in _CODE:
        for place in (f"{'/'.join(parts)}.py", f"{'/'.join(parts)}/__init__.py"):
            if place in _known(root):
                yield place
