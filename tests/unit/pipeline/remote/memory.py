"""A remote store in memory, whose bytes come and go when a test lets them."""

import threading
from collections.abc import Callable
from pathlib import Path

from pipeline.artifacts.store import Store
from pipeline.remote.health import Health
from pipeline.remote.remote import Remote
from pipeline.remote.settings import RemoteSettings


class Memory:
    """A transport; `moving` is released when the bytes of what is held begin to move, which then wait for `gate`."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.gate = threading.Event()
        self.gate.set()
        self.moving = threading.Semaphore(0)
        self._held = ""

    def hold(self, name: str = "cas/") -> None:
        """Let no object whose name begins so move from now on, until `gate` is set."""
        self._held = name
        self.gate.clear()

    def _wait(self, name: str) -> None:
        if self._held and name.startswith(self._held):
            self.moving.release()
            assert self.gate.wait(30)

    def read(self, name: str, take: Callable[[bytes], None]) -> bool:
        if name not in self.objects:
            return False
        self._wait(name)
        take(self.objects[name])
        return True

    def has(self, name: str, size: int | None = None) -> bool:
        return name in self.objects

    def write(self, name: str, content: Path | bytes) -> None:
        self._wait(name)
        self.objects[name] = content if isinstance(content, bytes) else content.read_bytes()

    def remote(self, store: Store) -> Remote:
        """A remote store of this transport beside `store`."""
        settings = RemoteSettings("http://memory")
        return Remote(settings, store, lambda _: self, Health(settings, print))
