"""Pickling of values for a worker; targets are bound to the worker's plug-ins."""

import io
import pickle
import sys
from collections.abc import Callable
from typing import Any

from pydantic import BaseModel

from stages.backends.targets.spec import Target


class _Pickler(pickle.Pickler):
    """Pickles targets by reference and collects them."""

    def __init__(self, stream: io.BytesIO) -> None:
        super().__init__(stream)
        self.targets: dict[bytes, Target] = {}

    def persistent_id(self, value: Any) -> bytes | None:
        """Return the pickle of a target, None for other values."""
        if not isinstance(value, Target):
            return None
        name = pickle.dumps(value)
        self.targets[name] = value
        return name

    def reducer_override(self, value: Any) -> Any:
        """Pickle models of dynamic classes as their base class, which pickle can import.

        The worker restores the class: `pipeline.recipes.model_entry.rebind_plugin_model`.
        """
        if not isinstance(value, BaseModel) or _is_importable(type(value)):
            return NotImplemented
        base = next(cls for cls in type(value).__mro__ if _is_importable(cls))
        return _constructed, (base, dict(value), value.model_fields_set)


def _is_importable(cls: type) -> bool:
    return getattr(sys.modules.get(cls.__module__), cls.__name__, None) is cls or "." in cls.__qualname__


def _constructed(cls: type[BaseModel], values: dict[str, Any], fields_set: set[str]) -> BaseModel:
    return cls.model_construct(fields_set, **values)


class _Unpickler(pickle.Unpickler):
    """Unpickles targets through `rebind`."""

    def __init__(self, stream: io.BytesIO, rebind: Callable[[Target], Target]) -> None:
        super().__init__(stream)
        self._rebind = rebind
        self.targets: dict[bytes, Target] = {}

    def persistent_load(self, name: bytes) -> Target:
        """Return the target of a pickle, bound to this machine."""
        if name not in self.targets:
            self.targets[name] = self._rebind(pickle.loads(name))
        return self.targets[name]


def dumps(value: Any) -> tuple[bytes, list[Target]]:
    """Return a value's pickle and the targets in it."""
    stream = io.BytesIO()
    pickler = _Pickler(stream)
    pickler.dump(value)
    return stream.getvalue(), [*pickler.targets.values()]


def loads(data: bytes, rebind: Callable[[Target], Target]) -> tuple[Any, list[Target]]:
    """Return a pickle's value and its targets, each passed through `rebind`.

    Exceptions propagate.
    """
    unpickler = _Unpickler(io.BytesIO(data), rebind)
    return unpickler.load(), [*unpickler.targets.values()]
