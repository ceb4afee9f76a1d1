"""Estimates of kernels beside what a simulator counts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from stages.calibrate.cases import cases
from stages.calibrate.measure import measure
from stages.models.operators import build
from stages.models.spec import OpModel
from stages.targets.spec import Target
from stages.tensorize.costs import estimated
from tests.support.integer import integer_graph

Counted = dict[tuple[str, str], tuple[int, float]]


def counted(layers: Iterable[Mapping[str, Any]], target: Target, names: Collection[str]) -> Counted:
    """What each variant of these kernels takes for each layer, by its signature, and what it says it takes."""
    graphs = [integer_graph(build(OpModel.model_validate(options))) for options in layers]
    found = [one for one in cases(graphs, target) if one.kernel.name in names]
    said = {(one.signature, one.variant): estimated(one.kernel, one.view, one.params, target) for one in found}
    return {
        (one.signature, one.variant): (count, said[one.signature, one.variant] or 0.0)
        for one, count in measure(found, target)
    }
