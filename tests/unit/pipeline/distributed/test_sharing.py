"""What the machine that gives stages away and those that run them see of each other's artifacts."""

import contextlib
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.artifacts.digest import digest_of
from pipeline.artifacts.store import Artifact, Store
from pipeline.errors import InputChanged
from pipeline.keys.planner import Action
from pipeline.remote.transport import RemoteError
from pipeline.runs.executor import Local, Work
from pipeline.runs.workspace import Workspace
from tests.unit.pipeline.conftest import FakeProject
from tests.unit.pipeline.remote.conftest import clone
from tests.unit.pipeline.remote.memory import Memory

pytest.importorskip("distributed", reason="needs the group dask: ./bootstrap --with dask")

from pipeline.distributed import worker
from pipeline.distributed.dask_executor import DaskExecutor
from pipeline.distributed.worker_results import result_of


@pytest.mark.parametrize("gone", [False, True])
def test_a_file_that_changed_since_it_was_planned_is_not_sent(project: FakeProject, gone: bool) -> None:
    """What went under the digest of before would be refused by workers ever after."""
    executor = _executor()
    memory = Memory()
    model = project.root / "model.txt"
    with project.workspace() as workspace:
        vars(workspace)["remote"] = memory.remote(workspace.store)
        work = _work(workspace, workspace.plan("demo")["import"])
        model.unlink() if gone else model.write_text("other weights\n")
        with pytest.raises(InputChanged, match=r"import: model\.txt changed after the run was planned"):
            executor._sent_file("model", model, work)
        workspace.flush()
        assert memory.objects == {} and not any(project.store.glob("artifacts/*/*"))
        model.write_text("weights\n")
        key = executor._sent_file("model", model, work)
        workspace.flush()
        artifact = workspace.find(key)
        assert artifact is not None and (artifact.files / "model.txt").read_text() == "weights\n"
        assert f"ac/{key}" in memory.objects


def test_what_a_worker_left_comes_here_when_it_is_read(project: FakeProject, monkeypatch: pytest.MonkeyPatch) -> None:
    """Described by its entry alone; its files are compared with their digests as they come."""
    monkeypatch.setattr(worker, "_VISIBLE_TIMEOUT", 0)
    memory = Memory()
    elsewhere = Store(project.root / "elsewhere")

    def write(out: Path, log: Callable[[str], None]) -> None:
        (out / "large.bin").write_bytes(bytes(1000))
        log("says hello")

    remote_artifact, _ = elsewhere.make({"stage": "emit"}, write, recipe="")
    remote = memory.remote(elsewhere)
    assert remote.send(remote_artifact).result() == "sent"
    with project.workspace() as workspace:
        vars(workspace)["remote"] = memory.remote(workspace.store)
        work = replace(_work(workspace, workspace.plan("demo")["import"]), key=remote_artifact.key)
        worker_artifact = result_of("a", work, Local().make, cached=False)
        assert worker_artifact is not None and (worker_artifact.content, worker_artifact.log) == (
            remote_artifact.content,
            "says hello\n",
        )
        assert (
            workspace.find(remote_artifact.key) is worker_artifact and workspace.store.find(remote_artifact.key) is None
        )
        assert (worker_artifact.files / "large.bin").read_bytes() == bytes(1000)
        fetched = workspace.find(remote_artifact.key)
        assert (
            fetched is not worker_artifact
            and workspace.store.find(remote_artifact.key) is not None
            and workspace.fetched_keys == set()
        )


@pytest.mark.parametrize(
    ("trouble", "why"),
    [("altered", "has an altered copy"), ("lost", "has lost a part of it"), ("given up", "is disabled after failures")],
)
def test_what_a_worker_left_is_made_here_when_the_remote_store_has_it_no_more(
    project: FakeProject, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, trouble: str, why: str
) -> None:
    """At once, with what it reads, and sending it again; so it is for other recipes that have the stage in common."""
    memory = Memory()
    elsewhere = clone(project, project.root / "elsewhere")
    with elsewhere.workspace() as workspace:
        plan = workspace.plan("demo")
        imported, _ = Local().make(_work(workspace, plan["import"]))
        emitted, _ = Local().make(_work(workspace, plan["emit"], imported))
        remote = memory.remote(workspace.store)
        assert [remote.send(artifact).result() for artifact in (imported, emitted)] == ["sent"] * 2
    executor = _executor()
    project.ran()
    with project.workspace() as workspace:
        vars(workspace)["remote"] = memory.remote(workspace.store)
        plan = workspace.plan("demo")
        first = result_of("a", _work(workspace, plan["import"]), executor._make_here, cached=False)
        assert first is not None
        second = result_of("a", _work(workspace, plan["emit"], first), executor._make_here, cached=False)
        assert second is not None
        before = dict(memory.objects)
        blobs = [name for name in before if name.startswith("cas/")]
        if trouble == "altered":
            memory.objects.update({name: before[name][:-1] + b"x" for name in blobs})
        elif trouble == "lost":
            for name in blobs:
                del memory.objects[name]
        else:
            assert workspace.remote is not None
            for _ in range(3):
                workspace.remote._health.failed(RemoteError("503"))
        began = time.monotonic()
        assert (second.files / "src/model.c").read_text() == (emitted.files / "src/model.c").read_text()
        assert time.monotonic() - began < worker._VISIBLE_TIMEOUT / 2, "nobody waits for what will not come"
        assert project.ran() == ["import", "emit"] and workspace.worker_artifacts == {}
        assert f"after worker a had made it: the remote store http://memory {why}" in capsys.readouterr().out
        workspace.flush()
        assert second.files == second.files and project.ran() == []
        for key in (first.key, second.key):
            stored = workspace.find(key)
            assert stored is not None and stored.content == {first.key: first, second.key: second}[key].content
    if trouble != "given up":
        third = clone(project, project.root / "third")
        with third.workspace() as workspace:
            vars(workspace)["remote"] = memory.remote(workspace.store)
            stored = workspace.find(second.key)
            assert stored is not None and stored.content == second.content


def _executor() -> DaskExecutor:
    """One without a scheduler."""
    executor = object.__new__(DaskExecutor)
    executor._lock, executor._shared = threading.Lock(), set()
    executor._local_slots, executor._only_local = threading.Semaphore(1), False
    return executor


def _work(workspace: Workspace, action: Action, *inputs: Artifact) -> Work:
    artifacts = dict(zip(action.link.inputs, inputs, strict=True))
    ingredients = action.consuming({kind: artifact.content for kind, artifact in artifacts.items()})
    return Work(
        action=action,
        artifacts=artifacts,
        ingredients=ingredients,
        key=digest_of(ingredients),
        workspace=workspace,
        shared=True,
        force=False,
        convert_errors=contextlib.nullcontext,
        log=print,
        log_name="log.txt",
        progress=lambda *progress: None,
    )
