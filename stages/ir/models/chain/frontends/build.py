"""Build the TFLite file of a front end."""

from stages.ir.models.chain.frontends import mel_operators, microfrontend_operators
from stages.ir.models.chain.frontends.base import Features
from stages.ir.models.chain.frontends.mel import LogMel, Mfcc
from stages.ir.models.chain.frontends.microfrontend import MicroFrontend


def build_frontend(options: MicroFrontend | LogMel | Mfcc, features: Features) -> bytes:
    """Return a TFLite file: int16[1, frames * frame_step] to [frames, channels] features.

    Samples before the first one are 0. Raises StageError if the features cannot have the wanted type.
    """
    if isinstance(options, MicroFrontend):
        return microfrontend_operators.build(options, features)
    return mel_operators.build(options, features)
