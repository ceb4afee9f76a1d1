"""The stages, and what they share: kernels, targets, simulators, models, the reference."""

from stages.system.loaded_code import install

install()
