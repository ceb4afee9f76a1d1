"""Type of a recipe's `model:` entry: a network or a chain."""

from collections.abc import Sequence

from stages.ir.models.chain.spec import ChainModel
from stages.ir.models.spec import NetworkSource

ModelSource = NetworkSource | ChainModel


def networks_of(model: ModelSource) -> Sequence[NetworkSource]:
    """Return the networks of a chain, else the model."""
    return [*model.networks.values()] if isinstance(model, ChainModel) else [model]
