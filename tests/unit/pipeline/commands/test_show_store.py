"""`doit store`."""

import hashlib
import json
import os
from pathlib import Path

import pytest

from pipeline.artifacts.digest import DigestCache
from pipeline.commands import show_store
from pipeline.commands.exit_codes import PENDING
from pipeline.commands.show_store import ShowStore
from tests.unit.pipeline.conftest import Capture, FakeProject


@pytest.fixture(autouse=True)
def served(project: FakeProject, monkeypatch: pytest.MonkeyPatch) -> None:
    project.serve(monkeypatch, show_store)


def show(*words: str, as_json: bool = False) -> int:
    return ShowStore().execute({"json": as_json, "dry-run": False, "days": ""}, list(words))


def artifact_file(project: FakeProject, stage: str) -> Path:
    """A file that a stage wrote, made writable."""
    for manifest in project.store.glob("artifacts/*/*/manifest.json"):
        if json.loads(manifest.read_text())["stage"] == stage:
            path = next(path for path in (manifest.parent / "files").rglob("*") if path.is_file())
            path.chmod(0o644)
            return path
    raise AssertionError(stage)


def test_sizes_by_stage(project: FakeProject, capsys: Capture) -> None:
    assert show(as_json=True) == 0
    assert json.loads(capsys.readouterr().out) == []
    project.run()
    capsys.readouterr()
    assert show(as_json=True) == 0
    records = {record["stage"]: record for record in json.loads(capsys.readouterr().out)}
    files = [path for path in project.store.glob("artifacts/*/*/files/**/*") if path.is_file()]
    assert sum(record["bytes"] for record in records.values()) == sum(path.stat().st_size for path in files)
    assert records["compile"]["artifacts"] == 1


def test_verify_reads_every_byte(project: FakeProject, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    project.run()
    assert show("verify") == 0
    path = artifact_file(project, "compile")
    before, content = path.stat(), path.read_bytes()
    path.write_bytes(bytes([content[0] ^ 1]) + content[1:])
    # An altered file whose size and times are as before is found too, whatever digests are remembered.
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    remembered = hashlib.sha256(content).hexdigest()
    monkeypatch.setattr(DigestCache, "digest", lambda self, asked: remembered)
    capsys.readouterr()
    assert show("verify") == PENDING
    out = capsys.readouterr().out
    assert f"compile of demo: {path.name} has changed bytes" in out
    assert "1 damaged" in out


@pytest.mark.parametrize("harm", ["gone", "more", "manifest"])
def test_verify_finds(harm: str, project: FakeProject, capsys: Capture) -> None:
    project.run()
    path = artifact_file(project, "emit")
    if harm == "gone":
        path.parent.chmod(0o755)
        path.unlink()
    elif harm == "more":
        path.parent.chmod(0o755)
        path.with_name("more").write_text("")
    else:
        manifest = next(parent for parent in path.parents if (parent / "manifest.json").exists()) / "manifest.json"
        manifest.write_text("{")
    capsys.readouterr()
    assert show("verify", as_json=True) == PENDING
    (record,) = json.loads(capsys.readouterr().out)
    not_readable = "manifest.json cannot be read"
    expected = {"gone": f"{path.name} is missing", "more": "more is not in the manifest", "manifest": not_readable}
    assert expected[harm] in record["damage"][0]
