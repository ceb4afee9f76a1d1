"""Values that go to a worker: pickled, but for targets, which have what goes with them where that lies there."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from typing import Any

from stages.targets.spec import Target


class _Pickler(pickle.Pickler):
    def __init__(self, stream: io.BytesIO) -> None:
        super().__init__(stream)
        self.targets: dict[bytes, Target] = {}

    def persistent_id(self, value: Any) -> bytes | None:
        if not isinstance(value, Target):
            return None
        name = pickle.dumps(value)
        self.targets[name] = value
        return name


class _Unpickler(pickle.Unpickler):
    def __init__(self, stream: io.BytesIO, at_home: Callable[[Target], Target]) -> None:
        super().__init__(stream)
        self._at_home = at_home
        self.targets: dict[bytes, Target] = {}

    def persistent_load(self, name: bytes) -> Target:
        if name not in self.targets:
            self.targets[name] = self._at_home(pickle.loads(name))
        return self.targets[name]


def written(value: Any) -> tuple[bytes, list[Target]]:
    """The bytes of a value, and the targets in it."""
    stream = io.BytesIO()
    pickler = _Pickler(stream)
    pickler.dump(value)
    return stream.getvalue(), [*pickler.targets.values()]


def read(data: bytes, at_home: Callable[[Target], Target]) -> tuple[Any, list[Target]]:
    """The value of these bytes, with `at_home` of each target in it, and these. Raises what Python raises."""
    unpickler = _Unpickler(io.BytesIO(data), at_home)
    return unpickler.load(), [*unpickler.targets.values()]
