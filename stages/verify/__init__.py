"""verify: compares the firmware's outputs and traces with the reference."""

from stages.verify.stage import STAGE

__all__ = ["STAGE"]
