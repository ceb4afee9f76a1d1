"""Stage simulate: run the firmware on a simulator or a board."""

from stages.simulate.config import InputsConfig, SimulateConfig
from stages.simulate.stage import STAGE, SimulateStage

__all__ = ["STAGE", "InputsConfig", "SimulateConfig", "SimulateStage"]
