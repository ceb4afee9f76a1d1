"""Build the TFLite file of mfcc."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from stages.ir.models.chain.frontends.base import Features
from stages.ir.models.chain.frontends.mel_operators import mel_file
from stages.ir.models.chain.frontends.mfcc import Mfcc


def build(options: Mfcc, features: Features) -> bytes:
    """Return the file, as build_frontend."""
    return mel_file(options, cosines(options), features)


def cosines(options: Mfcc) -> npt.NDArray[np.float64]:
    """Return the DCT-II with its lifter, float64[coefficients, mels]."""
    mels = options.mels
    n = np.arange(options.coefficients)
    matrix: npt.NDArray[np.float64] = 2 * np.cos(np.pi * np.outer(n, 2 * np.arange(mels) + 1) / (2 * mels))
    if options.dct_norm == "ortho":
        matrix *= np.sqrt(0.5 / mels)
        matrix[0] *= np.sqrt(0.5)
    if options.lifter:
        matrix *= (1 + options.lifter / 2 * np.sin(np.pi * (n + 1) / options.lifter)).reshape(-1, 1)
    return matrix
