"""Type of a recipe's `model:` entry: a network or a chain."""

from stages.ir.models.chain.spec import ChainModel
from stages.ir.models.spec import NetworkSource

ModelSource = NetworkSource | ChainModel
