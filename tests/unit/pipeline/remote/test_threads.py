"""Several threads, and several processes of one store, that send and fetch at a time."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.artifacts.store import Artifact, Store
from tests.unit.pipeline.remote.memory import Memory


@pytest.fixture
def memory() -> Iterator[Memory]:
    memory_store = Memory()
    yield memory_store
    memory_store.gate.set()


def make_artifact(store: Store, number: int) -> Artifact:
    ingredients = {"stage": "emit", "number": number}
    return store.make(ingredients, lambda out, _: _written(out / "a.txt", number), recipe="")[0]


def _written(path: Path, number: int) -> None:
    path.write_text(f"bytes of {number}\n")


def test_two_that_fetch_the_same_both_have_it(tmp_path: Path, memory: Memory) -> None:
    """As two workers in one clone do: the second waits for the first, and takes what that brought."""
    source = Store(tmp_path / "source")
    sent = make_artifact(source, 1)
    remote = memory.remote(source)
    remote.send(sent)
    remote.flush()
    memory.hold(f"cas/{sent.manifest['files']['a.txt']['sha256']}")
    stores = [Store(tmp_path / "shared") for _ in range(2)]
    remotes = [memory.remote(store) for store in stores]
    fetched: list[Artifact | None] = []
    threads = [
        threading.Thread(target=lambda remote=remote: fetched.append(remote.fetch(sent.key))) for remote in remotes
    ]
    threads[0].start()
    assert memory.moving.acquire(timeout=30)
    threads[1].start()
    time.sleep(0.3)
    assert fetched == []
    memory.gate.set()
    for thread in threads:
        thread.join(30)
    assert [remote and remote.content for remote in fetched] == [sent.content] * 2
    assert sorted(remote.traffic.fetched for remote in remotes) == [0, 1]
