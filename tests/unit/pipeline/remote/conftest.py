"""Two clones of one project, and servers that they share."""

import hashlib
import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from pipeline.artifacts.digest import digest_of
from pipeline.artifacts.store import Artifact
from pipeline.remote import health
from pipeline.remote.entry import Blob, read_entry, write_entry
from tests.support.servers import NGINX, nginx
from tests.unit.pipeline.conftest import FakeProject


@pytest.fixture(autouse=True)
def no_remote(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is known of any remote store, and the environment names none."""
    monkeypatch.setattr(health, "_known", {})
    for name in ("", "_READ_ONLY", "_USER", "_PASSWORD", "_TOKEN", "_HOST"):
        monkeypatch.delenv(f"FIRMLINE_REMOTE{name}", raising=False)


@dataclass
class Server:
    """A server on files: `data` has its ac/ and cas/."""

    url: str
    data: Path

    def names(self) -> list[str]:
        """All objects that it has."""
        return sorted(path.relative_to(self.data).as_posix() for path in self.data.rglob("*") if path.is_file())

    def blob(self, stage: str, file: str) -> Path:
        """The object with the bytes of a file of a stage's artifact."""
        for entry in (self.data / "ac").iterdir():
            files = read_entry(entry.read_bytes())
            manifest = json.loads((self.data / "cas" / files["manifest.json"].sha256).read_bytes())
            if manifest["stage"] == stage:
                return self.data / "cas" / files[file].sha256
        raise AssertionError(stage)

    def check(self) -> None:
        """Every blob is what its name says, and every entry has its blobs."""
        for path in (self.data / "cas").iterdir():
            assert hashlib.sha256(path.read_bytes()).hexdigest() == path.name
        for path in (self.data / "ac").iterdir():
            for blob in read_entry(path.read_bytes()).values():
                assert (self.data / "cas" / blob.sha256).stat().st_size == blob.size


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """nginx, which the environment names."""
    if NGINX is None:
        pytest.skip("needs nginx: ./bootstrap --with servers")
    folder = tmp_path_factory.mktemp("nginx")
    with nginx(folder) as url:
        monkeypatch.setenv("FIRMLINE_REMOTE", url)
        yield Server(url, folder / "data")


@pytest.fixture
def other(project: FakeProject, tmp_path_factory: pytest.TempPathFactory) -> FakeProject:
    """A clone of the project elsewhere, with a store of its own."""
    return clone(project, tmp_path_factory.mktemp("other"))


def clone(project: FakeProject, place: Path) -> FakeProject:
    """A copy of the project without its store and its results."""
    shutil.copytree(project.root, place, ignore=shutil.ignore_patterns("store", "build"), dirs_exist_ok=True)
    return FakeProject(place, project.registry)


def how(project: FakeProject) -> dict[str, str]:
    """What a run does for each stage: `ran`, `cached`, `remote`."""
    stages = project.run().stages
    return {stage.kind: "remote" if stage.remote else "cached" if stage.cached else "ran" for stage in stages}


def found_elsewhere(
    project: FakeProject,
    server: Server,
    files: dict[str, bytes],
    sizes: dict[str, object] | None = None,
    seconds: object = 1,
) -> Artifact | None:
    """What a project takes of an artifact that somebody else has put on the server."""

    def put(data: bytes) -> Blob:
        blob = Blob(hashlib.sha256(data).hexdigest(), len(data))
        (server.data / "cas").mkdir(exist_ok=True)
        (server.data / "cas" / blob.sha256).write_bytes(data)
        return blob

    ingredients = {"stage": "emit", "files": [*files, *map(str, (sizes or {}).values()), str(seconds)]}
    key = digest_of(ingredients)
    blobs = {name: put(data) for name, data in files.items()}
    listed = {
        name: {"sha256": blob.sha256, **({"size": blob.size} if sizes is None else sizes)}
        for name, blob in blobs.items()
    }
    manifest = {"format": 1, "key": key, "stage": "emit", "recipe": "x", "created": "", "seconds": seconds}
    text = json.dumps({**manifest, "ingredients": ingredients, "files": listed}).encode()
    entry = {"manifest.json": put(text), "log.txt": put(b"")} | {f"files/{name}": blob for name, blob in blobs.items()}
    (server.data / "ac").mkdir(exist_ok=True)
    (server.data / "ac" / key).write_bytes(write_entry(entry))
    with project.workspace() as workspace:
        return workspace.find(key)


ALL = ("import", "emit", "compile", "report")


def all_of(word: str) -> dict[str, str]:
    return dict.fromkeys(ALL, word)
