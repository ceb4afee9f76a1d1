"""Build the TFLite file of a front end."""

from __future__ import annotations

from importlib import import_module
from typing import cast

from stages.ir.models.chain.frontends.base import Features, Frontend


def build_frontend(options: Frontend, features: Features) -> bytes:
    """Return a TFLite file: int16[1, frames * frame_step] to [frames, channels] features.

    The module of a kind, `<kind>_operators`, has `build`. Samples before the first one are 0. Raises StageError
    if the features cannot have the wanted type.
    """
    module = import_module(f"{__package__}.{options.kind}_operators")
    return cast(bytes, module.build(options, features))
