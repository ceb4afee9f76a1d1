"""Kills runs and corrupts stores at random: never a wrong artifact, a stuck lock or anything left, always well again.

Maintainers: `python -m tests.unit.pipeline.attack --kills 100 --corruptions 150 --seed 1` from the root prints
counts by class, and exits 1 at the first promise that does not hold. The stages are those of fake_stages, so it takes
minutes.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from pipeline.artifacts.folders import remove
from pipeline.keys.explain import explain
from stages.system.installation import INSTALLATION as ROOT
from tests.unit.pipeline.conftest import RECIPE, FakeProject
from tests.unit.pipeline.fake_stages import fake_registry

# Seconds that a run may take before its lock counts as stuck.
PATIENCE = 120.0


class Broken(AssertionError):
    """A promise of the store that did not hold."""


def new_project(root: Path) -> FakeProject:
    """The fake project in an empty folder."""
    project = FakeProject(root, fake_registry())
    root.mkdir(parents=True)
    shutil.copy(ROOT / "pipeline.yaml", root / "pipeline.yaml")
    project.recipe(RECIPE)
    project.write("model.txt", "weights 0\n")
    for kind in project.registry.kinds:
        project.write(f"code/{kind}.py", f"# code of {kind}\n")
    project.tool("13.2.0")
    return project


def start(project: FakeProject, mood: str = "") -> subprocess.Popen[str]:
    """A run of its own process, in a session of its own."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "FAKE_RAN": str(project.root / "ran.txt"),
        "FAKE_MOOD": mood,
        "TMPDIR": str(project.root / "tmp"),
    }
    (project.root / "tmp").mkdir(exist_ok=True)
    return subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("fake_stages.py")), str(project.root)],
        env=environment,
        cwd=project.root,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def finish(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Exit code and what it printed on stderr. Raises Broken when it does not end."""
    try:
        _, err = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        raise Broken(f"a run did not end within {PATIENCE:g} s: a stuck lock") from None
    return process.returncode, err


def check_well(project: FakeProject, model: str) -> None:
    """A run now ends well, with the right artifacts, and leaves nothing unfinished. Raises Broken."""
    code, err = finish(start(project))
    if code != 0:
        raise Broken(f"a run after it fails: {err.strip()[-500:]}")
    built = project.root / "build/demo/rv64-rvp"
    expected = {"firmware.elf": f"O2 4 {model}", "src/model.c": f"4 {model}", "src/model.h": "// header\n"}
    for name, text in expected.items():
        if (built / name).read_text() != text:
            raise Broken(f"{name} is {(built / name).read_text()!r}, not {text!r}")
    json.loads((built / "report.json").read_text())
    left = [
        *(project.store / "building").iterdir(),
        *project.store.glob(".*"),
        *(project.store / "runs").glob(".*"),
        *built.glob(".*"),
        *(project.root / "tmp").iterdir(),
    ]
    if left:
        raise Broken(f"left behind: {', '.join(str(path.relative_to(project.root)) for path in left)}")
    manifests = list((project.store / "artifacts").glob("*/*/manifest.json"))
    with project.workspace() as workspace:
        wrong = [path for path in manifests if workspace.store.find(path.parent.name) is None]
        explained = explain(workspace.plan("demo"), workspace.store)
        current = [stage.kind for stage in explained if not stage.cached or stage.unless]
    if current:
        raise Broken(f"no whole artifact of {', '.join(current)}")
    for path in wrong:
        # Of an earlier model: damaged, which the store knows. Through a link it may be here twice.
        remove(path.parent)


def kill(project: FakeProject, number: int, chance: random.Random) -> str:
    """One run, or two side by side, that a signal ends at some time; returns the class."""
    model = f"weights {number}\n"
    project.write("model.txt", model)
    processes = [start(project, chance.choice(["", "slow"])) for _ in range(chance.choice([1, 1, 2]))]
    signals = [chance.choice([signal.SIGKILL, signal.SIGINT, signal.SIGTERM]) for _ in processes]
    # A run takes about half a second, most of it in Python's imports.
    time.sleep(chance.uniform(0.1, 1.4))
    for process, number_ in zip(processes, signals, strict=True):
        if process.poll() is None:
            process.send_signal(number_)
    codes = [finish(process)[0] for process in processes]
    check_well(project, model)
    ended = "ended before" if all(code == 0 for code in codes) else "killed"
    return f"{ended}: {' and '.join(sorted(one.name for one in signals))}"


def _truncate(path: Path, chance: random.Random) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: chance.randrange(len(content))] if content else b"")


def _flip(path: Path, chance: random.Random) -> None:
    content = bytearray(path.read_bytes() or b"x")
    content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    path.write_bytes(content)


def _flip_keeping_times(path: Path, chance: random.Random) -> None:
    info = path.stat()
    _flip(path, chance)
    os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))


def _garbage(path: Path, chance: random.Random) -> None:
    path.write_bytes(
        chance.choice([b"", b"\0" * 100, b"\xff\xfe", b"[]", b"{}", b"null", b'{"format": 1}', b"[" * 9999])
    )


def _swap(path: Path, chance: random.Random) -> None:
    others = [other for other in sorted(path.parent.iterdir()) if other != path]
    if others:
        other, aside = chance.choice(others), path.with_name("swapped")
        path.rename(aside)
        other.rename(path)
        aside.rename(other)


def _delete(path: Path, chance: random.Random) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def _become_folder(path: Path, chance: random.Random) -> None:
    _delete(path, chance)
    path.mkdir()
    (path / "inside").write_text("x")


def _become_link(path: Path, chance: random.Random) -> None:
    _delete(path, chance)
    path.symlink_to(chance.choice(["/etc/hostname", "nowhere", "."]))


def _close(path: Path, chance: random.Random) -> None:
    path.chmod(chance.choice([0, 0o100, 0o222]))


def _become_file(path: Path, chance: random.Random) -> None:
    folder = path if path.is_dir() else path.parent
    _delete(folder, chance)
    folder.write_text("x")


def _add(path: Path, chance: random.Random) -> None:
    folder = path if path.is_dir() else path.parent
    (folder / f"extra{chance.randrange(100)}").write_text("x")


DAMAGES: dict[str, Callable[[Path, random.Random], None]] = {
    "truncate": _truncate,
    "flip": _flip,
    "flip keeping times": _flip_keeping_times,
    "garbage": _garbage,
    "swap": _swap,
    "delete": _delete,
    "folder instead of file": _become_folder,
    "link instead of file": _become_link,
    "chmod": _close,
    "file instead of folder": _become_file,
    "add": _add,
}
# Files of the store by what they are; a lock that a run holds all the time is told, not mended.
PLACES = {
    "artifact": "artifacts/*/*/files/**/*",
    "manifest": "artifacts/*/*/manifest.json",
    "log": "artifacts/*/*/log.txt",
    "artifact's folder": "artifacts/*/*",
    "two digits": "artifacts/*",
    "key's lock": "locks/[0-9a-f]*.lock",
    "digests": "digests.json",
    "tools": "tools.json",
    "runs": "runs/*",
    "locks": "locks",
    "building": "building",
}


def corrupt(project: FakeProject, number: int, chance: random.Random) -> str:
    """One damage somewhere in the store, then a run; returns the class."""
    model = f"weights {number % 2}\n"
    if not project.store.exists() or (project.root / "model.txt").read_text() != model:
        project.write("model.txt", model)
        check_well(project, model)
    place = chance.choice(list(PLACES))
    found = sorted(path for path in project.store.glob(PLACES[place]) if path.resolve() == path)
    if not found:
        return f"nothing: {place}"
    path = chance.choice(found)
    of_files = {"truncate", "flip", "flip keeping times", "garbage", "folder instead of file"}
    names = [name for name in DAMAGES if path.is_file() or name not in of_files]
    if place in ("locks", "building"):
        names = ["delete", "add", "file instead of folder"]
    name = chance.choice(names)
    if name == "file instead of folder" and path.is_file() and path.parent in (project.store, project.store / "locks"):
        # A store that is a file is an error, and so is the store's own lock as a folder.
        name = "delete"
    for each in (path, path.parent):
        each.chmod(0o755)
    DAMAGES[name](path, chance)
    for folder in (project.store / "building").glob("extra*"):
        # Unfinished work of nobody: cleared as what killed runs leave.
        assert folder.is_file()
    check_well(project, model)
    return f"{name}: {place}"


def attack(folder: Path, kills: int, corruptions: int, seed: int) -> Counter[str]:
    """Counts by class. Raises Broken with the seed's number of the attack that was one too many."""
    classes: Counter[str] = Counter()
    for what, count, one in (("kill", kills, kill), ("corruption", corruptions, corrupt)):
        project = new_project(folder.resolve() / what)
        with first_on_path(project.root / "bin"):
            for number in range(count):
                try:
                    classes[f"{what}, {one(project, number, random.Random(f'{seed}-{what}-{number}'))}"] += 1
                except (AssertionError, OSError) as error:
                    raise Broken(f"seed {seed}, {what} {number}: {type(error).__name__} {error}") from error
    return classes


@contextlib.contextmanager
def first_on_path(folder: Path) -> Iterator[None]:
    """While this lasts, commands are looked for in `folder` first."""
    path = os.environ["PATH"]
    os.environ["PATH"] = f"{folder}{os.pathsep}{path}"
    try:
        yield
    finally:
        os.environ["PATH"] = path


def main() -> int:
    """Prints the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("kills", 100), ("corruptions", 150), ("seed", 1)):
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="attack-") as name:
        try:
            classes = attack(Path(name), given.kills, given.corruptions, given.seed)
        except Broken as error:
            print(error)
            return 1
    for kind, count in sorted(classes.items()):
        print(f"{count:5}  {kind}")
    print(f"{classes.total():5}  in all, seed {given.seed}: no wrong artifact, no stuck lock, nothing left behind")
    return 0


if __name__ == "__main__":
    sys.exit(main())
