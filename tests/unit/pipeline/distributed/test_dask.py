"""Stages on a scheduler's workers, each a process with a folder and a store of its own, and a remote store between."""

import copy
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from pipeline.api import RunResult, run_recipe
from pipeline.artifacts.inventory import inventory
from pipeline.artifacts.store import Store
from pipeline.commands.executor import selected_executor
from pipeline.distributed.choice import executor_of
from pipeline.errors import PipelineError
from pipeline.remote.health import MOST_FAILURES
from pipeline.remote.transport import RemoteError
from pipeline.runs.executor import Work
from stages.support.messages.stage_error import DoesNotFit
from stages.support.system.installation import INSTALLATION
from tests.support.optional import needs
from tests.support.processes import wait_until
from tests.support.servers import free_port
from tests.unit.pipeline.conftest import Doit, FakeProject
from tests.unit.pipeline.fake_stages import FakeEmit, FakeReport
from tests.unit.pipeline.remote.conftest import ALL, clone

pytestmark = [
    needs("distributed", "dask"),
    # Sockets of clients that are closed while another thread still writes to them.
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]


@dataclass
class Cluster:
    """A scheduler and workers, each in a clone of the project."""

    address: str
    folder: Path
    project: FakeProject
    stack: ExitStack
    workers: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    clones: dict[str, FakeProject] = field(default_factory=dict)

    def worker(self, name: str, *edits: tuple[str, str, str], mood: str = "") -> None:
        """Start one; its clone differs by `edits`."""
        worker_clone = self.clones[name] = clone(self.project, self.folder / name)
        for edit in edits:
            worker_clone.edit(*edit)
        environment = {
            **os.environ,
            "FAKE_MOOD": mood,
            "FAKE_RAN": str(worker_clone.root / "ran.txt"),
            "PATH": f"{worker_clone.root / 'bin'}:{os.environ['PATH']}",
            "PYTHONPATH": str(INSTALLATION),
        }
        command = ["distributed.cli.dask_worker", self.address, "--nthreads", "1", "--name", name, "--no-dashboard"]
        command += [
            "--no-nanny",
            "--preload",
            "tests.support.fake_worker",
            "--local-directory",
            str(worker_clone.root / "tmp"),
        ]
        self.workers[name] = self.stack.enter_context(process(command, worker_clone.root, environment))

    def run(self, **overrides: str) -> RunResult:
        executor = executor_of(self.address.replace("tcp:", "dask:"))
        try:
            project = self.project
            return run_recipe(
                "demo", overrides, root=project.root, registry=project.registry, store=project.store, executor=executor
            )
        finally:
            executor.close()

    def ran(self) -> dict[str, list[str]]:
        return {name: worker_clone.ran() for name, worker_clone in self.clones.items()}


@contextmanager
def process(words: list[str], folder: Path, environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    with (folder / "output.txt").open("wb") as output:
        command = [sys.executable, "-m", *words]
        started = subprocess.Popen(command, cwd=folder, env=environment, stdout=output, stderr=output)
        try:
            yield started
        finally:
            started.kill()
            started.wait()


@pytest.fixture
def cluster(
    request: pytest.FixtureRequest,
    project: FakeProject,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Cluster]:
    """A scheduler over plain TCP, or over the protocol that a test's parameter names."""
    folder = tmp_path_factory.mktemp("cluster")
    monkeypatch.setenv("FIRMLINE_REMOTE", f"file://{folder}/shared")
    monkeypatch.setenv("DASK_DISTRIBUTED__ADMIN__LARGE_GRAPH_WARNING_THRESHOLD", "1GB")
    protocol = getattr(request, "param", "tcp")
    if protocol == "tls":
        request.getfixturevalue("certificates")
    address = f"{protocol}://127.0.0.1:{free_port()}"
    command = ["distributed.cli.dask_scheduler", "--host", address, "--no-dashboard"]
    with ExitStack() as stack:
        stack.enter_context(process([*command, "--dashboard-address", "127.0.0.1:0"], folder, {**os.environ}))
        # On a slow machine it takes longer to start than an executor waits for it.
        wait_until(lambda: _listens(int(address.rpartition(":")[2])))
        yield Cluster(address, folder, project, stack)


def _listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=10):
        return True
    return False


@pytest.fixture
def certificates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Dask's settings for TLS, of this process and of those it starts: those of docs/how-to/distributed.md."""
    import dask.config
    from distributed.security import Security

    page = (INSTALLATION / "docs/how-to/distributed.md").read_text()
    (block,) = re.findall(r"^```yaml\n(distributed:\n.*?)^```", page, re.MULTILINE | re.DOTALL)
    security = Security.temporary()
    (tmp_path / "cluster.crt").write_text(security.tls_client_cert)
    (tmp_path / "cluster.key").write_text(security.tls_client_key)
    settings = tmp_path / "dask.yaml"
    settings.write_text(block.replace("/etc/firmline/", f"{tmp_path}/"))
    monkeypatch.setenv("DASK_CONFIG", str(settings))
    config, before = dask.config.config, copy.deepcopy(dask.config.config)
    dask.config.update(config, yaml.safe_load(settings.read_text()))
    yield
    config.clear()
    config.update(before)


def test_stages_run_on_workers_and_are_shared(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    project = cluster.project
    monkeypatch.setattr(FakeReport, "preflight", lambda *arguments: None)
    cluster.worker("a")
    cluster.worker("b")
    result = cluster.run()
    assert [(stage.kind, stage.cached, stage.remote) for stage in result.stages] == [
        (kind, False, False) for kind in ALL
    ]
    assert project.ran() == []
    assert sorted(kind for kinds in cluster.ran().values() for kind in kinds) == sorted(ALL)
    assert (result.folder / "firmware.elf").read_text() == "O2 4 weights\n"
    log = (result.folder / "log.txt").read_text()
    assert "import    | import says hello" in log and "made by worker " in log
    # Here is what the build folder has, and what was sent from here; what nothing reads stays where it is.
    assert {stage.stage for stage in inventory(Store(project.store))} == {"file", "emit", "compile", "report"}
    assert (result.artifacts["import"] / "module.json").read_text() == "weights\n", "fetched as it is read"
    # A second run does nothing; what the recipe's author edits reaches the workers, whose clones are as before.
    assert all(stage.cached for stage in cluster.run().stages) and not any(cluster.ran().values())
    project.write("model.txt", "other weights\n")
    project.edit("recipes/demo.yaml", "opt: O2", "opt: O3")
    assert [stage.cached for stage in cluster.run().stages] == [False] * 4
    assert (result.folder / "firmware.elf").read_text() == "O3 4 other weights\n"
    # What was made there and then is found without any workers.
    separate = clone(project, cluster.folder / "own")
    stages = separate.run().stages
    assert all(stage.remote for stage in stages)


@pytest.mark.parametrize("cluster", ["tls"], indirect=True)
def test_stages_run_over_tls(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the settings of docs/how-to/distributed.md; nobody without the cluster's certificate gets in."""
    from distributed import Client
    from distributed.security import Security

    cluster.worker("a")
    assert [stage.cached for stage in cluster.run().stages] == [False] * 4
    assert sorted(cluster.ran()["a"]) == sorted(ALL)
    executor_of(cluster.address.replace("tls:", "dask:")).close()
    with pytest.raises(OSError, match="TLS certificate does not match"):
        Client(cluster.address, security=Security.temporary(), timeout=10, set_as_default=False)
    monkeypatch.setattr("pipeline.distributed.dask_executor._CONNECT", 1)
    with pytest.raises(PipelineError, match="no Dask scheduler answers there"):
        executor_of(cluster.address.replace("tls:", "tcp:"))


def test_errors_arrive_as_from_here(cluster: Cluster) -> None:
    project = cluster.project
    cluster.worker("a")
    project.edit("recipes/demo.yaml", "unroll: 4", "unroll: 13")
    with pytest.raises(PipelineError) as remote_error:
        cluster.run()
    with pytest.raises(PipelineError) as here:
        project.run()
    assert type(remote_error.value) is type(here.value) and str(remote_error.value) == str(here.value)
    assert "recipes/demo.yaml:6:18: emit: 13 times is unlucky" in str(remote_error.value)
    assert type(remote_error.value.__cause__) is type(here.value.__cause__) is DoesNotFit


def test_other_tools_are_refused_with_both(cluster: Cluster) -> None:
    cluster.worker("other", ("bin/fakecc", "13.2.0", "14.1.0"))
    with pytest.raises(PipelineError) as refused:
        cluster.run()
    message = "compile: worker other would make another result: tool fakecc: 14.1.0 there, 13.2.0 here\n"
    assert str(refused.value).startswith(message) and str(refused.value).count("\n") == 1


def _replace_at_work(cluster: Cluster, name: str, by: str) -> None:
    """Once a worker is in the middle of emit another comes, and it goes: kill -9."""
    ran = cluster.clones[name].root / "ran.txt"
    wait_until(lambda: ran.exists() and "emit" in ran.read_text().split())
    cluster.worker(by)
    cluster.workers[name].send_signal(signal.SIGKILL)


def test_a_matrix_whose_worker_is_killed_is_that_of_one_machine(
    cluster: Cluster, doit: Doit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four recipes side by side: the same keys with the same bytes as without workers, and each stage once."""
    project = cluster.project
    matrix = "matrix: {target: [rv64-rvp, host], stages.emit.unroll: [3, 5]}\n"
    project.recipe(f"schema: 1\nname: grid\nmodel: {{file: model.txt}}\n{matrix}", "grid")
    cluster.worker("slow", mood="hang")
    with ThreadPoolExecutor(1) as pool:
        replaced = pool.submit(_replace_at_work, cluster, "slow", "quick")
        with selected_executor({"executor": cluster.address.replace("tcp:", "dask:")}):
            code, _, err = doit("run", "-n", "4", "recipe=grid")
        replaced.result()
    assert (code, err, project.ran()) == (0, "", [])
    ran, built = cluster.ran(), _files(project.root / "build/grid")
    monkeypatch.setenv("FIRMLINE_STORE", "alone")
    with monkeypatch.context() as without:
        without.setenv("FIRMLINE_REMOTE", "off")
        assert doit("run", "recipe=grid")[0] == 0
    once = sorted(project.ran())
    assert sorted([*ran["slow"], *ran["quick"]]) == sorted([*once, "emit"]), "the one that was killed began with one"
    assert _files(project.root / "build/grid") == built and len(built) > 8
    alone, elsewhere = Store(project.root / "alone"), clone(project, cluster.folder / "elsewhere")
    with elsewhere.workspace() as workspace:
        for key in [entry.key for entry in inventory(alone)]:
            artifact, local = workspace.find(key), alone.find(key)
            assert artifact is not None and local is not None and artifact.content == local.content


def test_a_run_goes_on_alone_when_the_remote_store_is_given_up(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from pipeline.distributed.dask_executor import DaskExecutor

    cluster.worker("a")
    performed = DaskExecutor._perform

    def failing(executor: DaskExecutor, request: Any, work: Work) -> Any:
        answer = performed(executor, request, work)
        remote = work.workspace.remote
        if work.action.kind == "compile" and remote is not None:
            for _ in range(MOST_FAILURES):
                remote._health.failed(RemoteError("503 Service Unavailable"))
        return answer

    monkeypatch.setattr(DaskExecutor, "_perform", failing)
    result = cluster.run()
    assert cluster.ran() == {"a": ["import", "emit", "compile"]}
    assert cluster.project.ran() == ["emit", "compile", "report"], "import came for early checks"
    assert (result.folder / "firmware.elf").read_text() == "O2 4 weights\n"
    log = (result.folder / "log.txt").read_text()
    assert (
        f"worker a made the artifact, but the remote store file://{cluster.folder}/shared is disabled after failures; "
        in log
    )
    warnings = [line for line in capsys.readouterr().err.splitlines() if "warning" in line]
    assert len(warnings) == 1 and "fails: 503 Service Unavailable; missing artifacts are made here" in warnings[0]


def _files(folder: Path) -> dict[str, bytes]:
    """What a run leaves, but for its log and pages, which say when and where."""
    names = ("firmware.elf", "model.c", "model.h")
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.name in names}


def test_a_stage_of_this_process_runs_here_and_others_there(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """As simulate on a board, whose key has a moment that no worker knows, and what is made of that."""
    monkeypatch.setattr(FakeEmit, "shared", lambda self, config: False)
    monkeypatch.setattr(FakeEmit, "parameters", lambda self, config: {"moment": "now"})
    cluster.worker("a")
    result = cluster.run()
    assert cluster.project.ran() == ["emit", "compile", "report"]
    assert cluster.ran() == {"a": ["import"]}
    assert (result.folder / "firmware.elf").read_text() == "O2 4 weights\n"
