"""What the machine that gives stages away and those that run them see of each other's artifacts."""

import contextlib
import threading

import pytest

from pipeline.artifacts.digest import digest_of
from pipeline.artifacts.store import Artifact
from pipeline.errors import InputChanged
from pipeline.keys.planner import Action
from pipeline.runs.executor import Work
from pipeline.runs.workspace import Workspace
from tests.unit.pipeline.conftest import FakeProject
from tests.unit.pipeline.remote.memory import Memory

pytest.importorskip("distributed", reason="needs the group dask: ./bootstrap --with dask")

from pipeline.distributed.dask_executor import DaskExecutor


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
