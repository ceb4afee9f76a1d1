"""Several threads, and several processes of one store, that send and fetch at a time."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pipeline.artifacts.store import Artifact, Store
from tests.unit.pipeline.remote.memory import Memory


@pytest.fixture
def memory() -> Iterator[Memory]:
    made = Memory()
    yield made
    made.gate.set()


def made(store: Store, number: int) -> Artifact:
    ingredients = {"stage": "emit", "number": number}
    return store.make(ingredients, lambda out, _: _written(out / "a.txt", number), recipe="")[0]


def _written(path: Path, number: int) -> None:
    path.write_text(f"bytes of {number}\n")


def test_each_thread_waits_until_its_own_is_there(tmp_path: Path, memory: Memory) -> None:
    """What one thread waits for is not another's to forget."""
    store = Store(tmp_path)
    remote = memory.remote(store)
    one, other = made(store, 1), made(store, 2)
    memory.hold()
    remote.send(one)
    remote.send(other)
    there: list[bool] = []

    def wait(*keys: str) -> None:
        remote.flush(keys=keys or None)
        there.append(all(f"ac/{key}" in memory.objects for key in keys or (one.key, other.key)))

    with ThreadPoolExecutor(6) as pool:
        waiting = [pool.submit(wait, *keys) for keys in ((), (), (one.key,), (one.key,), (other.key,), (other.key,))]
        time.sleep(0.2)
        assert not any(each.done() for each in waiting)
        memory.gate.set()
        for each in waiting:
            each.result(30)
    assert there == [True] * 6
    remote.flush()
    assert remote.traffic.sent == 2


def test_two_that_fetch_the_same_both_have_it(tmp_path: Path, memory: Memory) -> None:
    """As two workers in one clone do: the second waits for the first, and takes what that brought."""
    source = Store(tmp_path / "source")
    sent = made(source, 1)
    remote = memory.remote(source)
    remote.send(sent)
    remote.flush()
    memory.hold(f"cas/{sent.manifest['files']['a.txt']['sha256']}")
    stores = [Store(tmp_path / "shared") for _ in range(2)]
    remotes = [memory.remote(store) for store in stores]
    found: list[Artifact | None] = []
    threads = [threading.Thread(target=lambda one=one: found.append(one.fetch(sent.key))) for one in remotes]
    threads[0].start()
    assert memory.moving.acquire(timeout=30)
    threads[1].start()
    time.sleep(0.3)
    assert found == []
    memory.gate.set()
    for thread in threads:
        thread.join(30)
    assert [one and one.content for one in found] == [sent.content] * 2
    assert sorted(one.traffic.fetched for one in remotes) == [0, 1]
