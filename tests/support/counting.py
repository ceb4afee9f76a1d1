"""Calls of layers, costs as a test says them, and a cache in a folder."""

import json
import shutil
from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from stages.backends.targets.spec import Target
from stages.delivery.bench.choice_quality import all_calls
from stages.delivery.bench.networks import setting_of
from stages.ir.graph import Graph
from stages.ir.models.operators import build
from stages.ir.models.spec import OpModel
from stages.tensorize import TensorizeConfig
from stages.tensorize.costs import Costs, KernelCall
from tests.support.integer import integer_graph


class Folders:
    """stages.base.Cache in a folder."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def find(self, ingredients: Mapping[str, Any]) -> Path | None:
        folder = self._place(ingredients)
        return folder if folder.is_dir() else None

    def get(self, ingredients: Mapping[str, Any], write: Callable[[Path], None]) -> Path:
        folder = self._place(ingredients)
        if not folder.is_dir():
            folder.mkdir(parents=True)
            try:
                write(folder)
            except BaseException:
                shutil.rmtree(folder)
                raise
        return folder

    def _place(self, ingredients: Mapping[str, Any]) -> Path:
        return self.root / sha256(json.dumps(ingredients, sort_keys=True).encode()).hexdigest()


def layer_graph(**options: object) -> Graph:
    """The integer graph of one layer."""
    return integer_graph(build(OpModel.model_validate(options)))


def calls_of(graph: Graph, target: Target) -> list[KernelCall]:
    """All calls that can compute a network's layers, each once."""
    found = {call.key: call for call in all_calls(graph, setting_of(target, TensorizeConfig()))}
    return list(found.values())


def costs_of(calls: Iterable[KernelCall], count: Callable[[KernelCall], int]) -> Costs:
    """Counts of these calls as `count` says."""
    counts: dict[str, dict[str, int]] = {}
    for call in calls:
        counts.setdefault(call.signature, {})[call.variant] = count(call)
    return Costs(counts, lower_bounds=True)
