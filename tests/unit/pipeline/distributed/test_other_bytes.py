"""Two machines on which a stage leaves other bytes under the same key: this one, and a worker in this process."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from pipeline.runs.session import Session
from pipeline.runs.workspace import Workspace
from tests.unit.pipeline.conftest import FakeProject
from tests.unit.pipeline.fake_stages import FakeEmit, FakeReport
from tests.unit.pipeline.remote.conftest import ALL, clone
from tests.unit.pipeline.remote.memory import Memory

pytest.importorskip("distributed", reason="needs the group dask: ./bootstrap --with dask")

from pipeline.distributed import worker
from pipeline.distributed.dask_executor import DaskExecutor


class OneWorker(DaskExecutor):
    """An executor without a scheduler: its worker `a` works in a clone of the project, and imports a model its way."""

    def __init__(self, project: FakeProject, memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
        self._lock, self._own, self._alone = threading.Lock(), threading.Semaphore(1), False
        self._shared, self._waiting = set(), {}
        self._shown = self._topic = "one worker"
        self.clone = clone(project, project.root / "a")
        self.before: Callable[[str], None] = lambda kind: None
        self._patch = monkeypatch
        monkeypatch.setattr(worker, "_SEEN", 0)
        monkeypatch.setattr(worker, "_Progress", lambda *names: lambda *said: None)
        monkeypatch.setattr(worker, "_workspace", lambda: served(self.clone, memory))
        monkeypatch.setattr(worker, "_registry", lambda workspace: workspace.registry)

    def _answer(
        self, function: Callable[..., Any], request: Any, task: str, kind: str, without: str = ""
    ) -> tuple[worker.Answer, str]:
        self.before(kind)
        with self._patch.context() as there:
            there.setenv("FAKE_MOOD", "own")
            there.setenv("FAKE_RAN", str(self.clone.root / "ran.txt"))
            return function(request), "a"

    def forget(self) -> None:
        """The worker's disk is another."""
        shutil.rmtree(self.clone.store / "artifacts")


@pytest.fixture
def memory() -> Memory:
    return Memory()


@pytest.fixture
def there(project: FakeProject, memory: Memory, monkeypatch: pytest.MonkeyPatch) -> OneWorker:
    return OneWorker(project, memory, monkeypatch)


def served(project: FakeProject, memory: Memory) -> Workspace:
    workspace = project.workspace()
    vars(workspace)["remote"] = memory.remote(workspace.store)
    return workspace


@contextmanager
def session_of(project: FakeProject, memory: Memory, executor: DaskExecutor | None = None) -> Iterator[Session]:
    with served(project, memory) as workspace:
        workspace.executor = executor or workspace.executor
        session = Session(workspace, workspace.plan("demo"))
        try:
            yield session
        finally:
            session.close()


def lose_own(memory: Memory) -> None:
    """The remote store loses what has the bytes of the worker."""
    own = [name for name, data in memory.objects.items() if data.endswith(b"own weights\n")]
    assert own
    for name in own:
        del memory.objects[name]


def kinds_run(session: Session, *kinds: str) -> None:
    for kind in kinds:
        session.run(session.plan[kind])


def check_result(session: Session, project: FakeProject, memory: Memory) -> None:
    """That the build folder is of what this machine has, and so are the keys that the run tells."""
    session.publish()
    session.close()
    assert (session.folder / "firmware.elf").read_text() == "O2 4 weights\n"
    with session_of(project, memory) as again:
        kinds_run(again, *ALL)
        assert [(one.key, one.cached) for one in again.results.values()] == [
            (one.key, True) for one in session.results.values()
        ]
    assert project.ran() == []


@pytest.mark.parametrize("has_its_own", [False, True])
def test_what_was_made_again_is_consumed_as_it_is(
    project: FakeProject, memory: Memory, there: OneWorker, has_its_own: bool
) -> None:
    """On a worker that has it from here; here where the worker's own has other bytes, which runs no stage there."""
    with session_of(project, memory, there) as session:
        kinds_run(session, "import")
        lose_own(memory)
        if not has_its_own:
            there.forget()
        kinds_run(session, "emit", "compile", "report")
        here = ["emit", "report"] if has_its_own else []
        assert project.ran() == ["import", *here], "what reads what the worker has otherwise"
        assert there.clone.ran() == [kind for kind in ALL if kind not in here]
        log = (session.folder / "log.txt").read_text()
        assert "import    | it has other bytes than those that worker a had left" in log
        said = "emit      | worker a has other bytes of what it reads (import); the stage runs here"
        assert (said in log) == has_its_own
        check_result(session, project, memory)


@pytest.mark.parametrize("shared", [True, False])
def test_what_is_made_again_when_its_consumer_was_given_away(
    project: FakeProject, memory: Memory, there: OneWorker, monkeypatch: pytest.MonkeyPatch, shared: bool
) -> None:
    """Lost after the consumer's key was known, which runs here then; or it is no worker's affair to begin with."""
    monkeypatch.setattr(FakeReport, "foresee", lambda *given: None)
    if not shared:
        monkeypatch.setattr(FakeEmit, "shared", lambda self, config: False)

    def lose(kind: str) -> None:
        there.forget()
        lose_own(memory)
        there.before = lambda kind: None

    with session_of(project, memory, there) as session:
        kinds_run(session, "import")
        if shared:
            there.before = lose
        else:
            lose("emit")
        kinds_run(session, "emit", "compile", "report")
        assert project.ran() == ["import", "emit", *([] if shared else ["compile", "report"])]
        check_result(session, project, memory)


def test_what_is_made_again_for_the_build_folder_has_the_key_that_is_told(
    project: FakeProject, memory: Memory, there: OneWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeReport, "foresee", lambda *given: None)
    with session_of(project, memory, there) as session:
        kinds_run(session, *ALL)
        before = session.results["compile"].key
        lose_own(memory)
        there.forget()
        session.publish()
        key = session.results["compile"].key
        found = session.workspace.store.find(key)
        assert found is not None and (found.files / "firmware.elf").read_text() == "O2 4 weights\n"
        assert key != before and project.ran() == ["import", "emit", "compile"]
