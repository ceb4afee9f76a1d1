"""A measurement elsewhere is one by this machine's code, of Firmline and of plug-ins, and by the worker's own files."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pipeline.errors import PipelineError
from pipeline.project import project_of
from pipeline.recipes.targets import load_targets
from stages.backends.targets.spec import Target
from tests.unit.pipeline.conftest import FakeProject
from tests.unit.pipeline.remote.conftest import clone

pytest.importorskip("distributed", reason="needs the group dask: ./bootstrap --with dask")

from pipeline.distributed import dask_executor, worker
from pipeline.distributed.code import installed_code
from pipeline.distributed.dask_executor import DaskExecutor

Begin = Callable[[str, tuple[Any, ...]], Callable[[], Any]]


class _Done:
    def __init__(self, answer: worker.Answer) -> None:
        self._answer = answer

    def result(self) -> tuple[worker.Answer, str]:
        return self._answer, "other"


class _Direct(DaskExecutor):
    """Has its one worker in this process, at work when a task is given away."""

    def __init__(self) -> None:
        self._code = installed_code()

    def _submit(self, function: Callable[..., Any], request: Any, task: str) -> Any:
        return _Done(function(request))


@pytest.fixture
def remote_project(project: FakeProject, tmp_path_factory: pytest.TempPathFactory) -> FakeProject:
    """The worker's project, with a folder of kernels of a plug-in as the client's."""
    project.write("plugins/kernels/acme/__init__.py", "FOLDER = None\n")
    project.write("plugins/kernels/acme/add.c", "int add;\n")
    return clone(project, tmp_path_factory.mktemp("there"))


@pytest.fixture
def begin(project: FakeProject, remote_project: FakeProject, monkeypatch: pytest.MonkeyPatch) -> Iterator[Begin]:
    monkeypatch.setattr(dask_executor, "current_project", lambda: project_of(project.root))
    monkeypatch.setattr(worker, "current_project", lambda: project_of(remote_project.root))
    monkeypatch.setattr(worker, "_workspace", remote_project.workspace)
    monkeypatch.setattr(worker, "load_targets", lambda project_there: {"rv64-rvp": with_acme(project_there.root)})
    calls = _Direct().remote_calls({})
    assert calls is not None
    yield calls


def with_acme(root: Path) -> Target:
    target = load_targets(project_of(root))["rv64-rvp"]
    places = {"kernels/acme": root / "plugins/kernels/acme"}
    return target.model_copy(update={"kernels": (*target.kernels, "acme"), "places": places})


def places(targets: list[Target]) -> list[Path]:
    """What is measured here."""
    return [path for target in targets for path in target.places.values()]


PLACES = f"{__name__}:places"


def test_targets_are_at_home_wherever_they_are_among_the_values(
    project: FakeProject, remote_project: FakeProject, begin: Begin
) -> None:
    target = with_acme(project.root)
    assert begin(PLACES, ([target, target],))() == [remote_project.root / "plugins/kernels/acme"] * 2


def test_kernels_of_plug_ins_are_compared(project: FakeProject, remote_project: FakeProject, begin: Begin) -> None:
    (remote_project.root / "plugins/kernels/acme/add.c").write_text("int sub;\n")
    with pytest.raises(PipelineError) as refused:
        begin(PLACES, ([with_acme(project.root)],))()
    assert str(refused.value).startswith(
        "measuring: worker other would make another result: plug-in kernels/acme/add.c: "
    )
