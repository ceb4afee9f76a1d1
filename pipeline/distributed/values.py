"""Values that go to a worker: pickled, but for targets, which have what goes with them where that lies there."""

from __future__ import annotations

import io
import pickle
import sys
from collections.abc import Callable
from typing import Any

from pydantic import BaseModel

from stages.backends.targets.spec import Target


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

    def reducer_override(self, value: Any) -> Any:
        """Models of classes that were made for a project, which pickle does not find, go as those of their base.

        What only their own class has is that of the project there: `pipeline.recipes.recipe.rebind_plugin_model`.
        """
        if not isinstance(value, BaseModel) or _is_found(type(value)):
            return NotImplemented
        base = next(cls for cls in type(value).__mro__ if _is_found(cls))
        return _constructed, (base, dict(value), value.model_fields_set)


def _is_found(cls: type) -> bool:
    return getattr(sys.modules.get(cls.__module__), cls.__name__, None) is cls or "." in cls.__qualname__


def _constructed(cls: type[BaseModel], values: dict[str, Any], given: set[str]) -> BaseModel:
    return cls.model_construct(given, **values)


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
