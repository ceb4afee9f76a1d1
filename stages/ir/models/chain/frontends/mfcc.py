"""Mel-frequency cepstral coefficients: `frontend: {kind: mfcc}`, as librosa's mfcc."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from stages.ir.models.chain.frontends.mel import MelFrontend
from stages.support.options.strict_model import mistake


class Mfcc(MelFrontend):
    """Options of mfcc, beside those of MelFrontend.

    coefficients  of the DCT-II of the log-mel spectrum, from 0 on
    dct_norm      ortho or none
    lifter        L: coefficient n is multiplied by 1 + L / 2 * sin(pi * (n + 1) / L); 0: none
    """

    kind: Literal["mfcc"] = "mfcc"
    coefficients: Annotated[int, Field(ge=1, le=256)] = 13
    dct_norm: Literal["ortho", "none"] = "ortho"
    lifter: Annotated[float, Field(ge=0, le=1000)] = 0.0

    @property
    def feature_channels(self) -> int:
        """Features of a frame."""
        return self.coefficients

    @model_validator(mode="after")
    def _check_coefficients(self) -> Self:
        if self.coefficients > self.mels:
            raise mistake(f"{self.coefficients} coefficients of {self.mels} mels; at most {self.mels}", "coefficients")
        return self
