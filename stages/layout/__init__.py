"""layout: which layout each operator reads and writes, by the recipe's rules."""

from stages.layout.stage import STAGE

__all__ = ["STAGE"]
