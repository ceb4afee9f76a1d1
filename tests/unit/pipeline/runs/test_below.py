"""Nothing is written or removed outside of the folder that it belongs to: by names, and by links that a project has."""

from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.artifacts.store import Store
from pipeline.errors import PipelineError
from stages.base import StageError
from stages.delivery.export import folder as export_folder
from stages.support.system.path_below import OutsideError, path_below
from tests.unit.pipeline.conftest import FakeProject

FACTS = {"recipe": "r", "target": "t", "form": "f", "overrides": ""}


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A folder outside of everything, whose files stay as they are."""
    (tmp_path / "victim/sub").mkdir(parents=True)
    (tmp_path / "victim/sub/kept").write_text("kept")
    return tmp_path / "victim"


def as_it_was(victim: Path) -> bool:
    return [str(path.relative_to(victim)) for path in sorted(victim.rglob("*"))] == ["sub", "sub/kept"]


@pytest.mark.parametrize("name", ["..", "../victim", "/etc/passwd", ".", "", "a/../..", "link", "link/new", "loop/new"])
def test_what_leads_out(tmp_path: Path, victim: Path, name: str) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "root/link").symlink_to(victim)
    (tmp_path / "root/loop").symlink_to("../root/link/sub")
    with pytest.raises(OutsideError, match="outside of"):
        path_below(tmp_path / "root", name)


@pytest.mark.parametrize("linked", ["artifacts", "building", "locks", "runs", "artifacts/ab", "locks/store.lock"])
def test_store(tmp_path: Path, victim: Path, linked: str) -> None:
    """`doit gc` deletes, and a run writes, where a link in the store leads: nowhere else."""
    Store(tmp_path / "store")
    place = tmp_path / "store" / linked
    if place.is_dir():
        place.rmdir()
    place.symlink_to(victim / "sub/new.lock" if linked.endswith(".lock") else victim)
    with pytest.raises(PipelineError, match="outside of"):
        store = Store(tmp_path / "store")
        with store.in_use():
            pass
        store.trim(days=0)
    assert as_it_was(victim)


def link_build(project: FakeProject, victim: Path) -> None:
    (project.root / "build").mkdir()
    (project.root / "build/demo").symlink_to(victim)


def link_below_build(project: FakeProject, victim: Path) -> None:
    (project.root / "build/demo").mkdir(parents=True)
    (project.root / "build/demo/rv64-rvp").symlink_to(victim)


@pytest.mark.parametrize("linked", [link_build, link_below_build])
def test_build_folder(project: FakeProject, victim: Path, linked: Callable[[FakeProject, Path], None]) -> None:
    linked(project, victim)
    with pytest.raises(PipelineError, match="outside of"):
        project.run()
    assert as_it_was(victim)


def test_export(tmp_path: Path, victim: Path) -> None:
    out = tmp_path / "out"
    for name in ("../victim/sub/new.c", "/tmp/new.c", "src/../../victim/new.c"):
        with pytest.raises(StageError, match="outside of"):
            export_folder.write(out, {name: b"x"}, FACTS, "out")
    export_folder.write(out, {"src/a.c": b"x", "src/b.c": b"x"}, FACTS, "out")
    (out / "src").rename(tmp_path / "moved")
    (out / "src").symlink_to(tmp_path / "moved")
    with pytest.raises(StageError, match="outside of"):
        export_folder.write(out, {"src/a.c": b"y"}, FACTS, "out")
    assert as_it_was(victim) and sorted(path.name for path in (tmp_path / "moved").iterdir()) == ["a.c", "b.c"]
