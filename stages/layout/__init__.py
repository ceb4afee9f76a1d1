"""Stage layout: assign a layout to each operator by the recipe's rules."""

from stages.layout.stage import STAGE

__all__ = ["STAGE"]
