"""The C front end of TensorFlow's micro_speech.

Micro wake word and most keyword networks are trained with it. `frontend: {kind: microfrontend}`. All arithmetic is in
integers:

    window -> FFT -> energy -> mel filter bank -> square root -> noise reduction -> PCAN gain -> log

TFLM's signal operators compute the same steps, so the file has these. A feature f stands for f / 25.6.
Without the logarithm, features are floats.
"""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from stages.ir.models.chain.frontends.base import Frontend
from stages.support.options.strict_model import StrictModel, mistake

FILTER_BITS, SNR_BITS = 12, 12  # after the point, of the filters' weights and of PCAN's ratio of signal to noise
_LARGEST_LOG_SHIFT = 10  # the largest logarithm is 22.2, and features have 15 bits
Unit = Annotated[float, Field(ge=0, le=1)]


class NoiseReduction(StrictModel):
    """Subtraction of the estimated noise.

    `even_smoothing` and `odd_smoothing` are for even and odd channels.
    """

    smoothing_bits: Annotated[int, Field(ge=0, le=16)] = 10
    even_smoothing: Unit = 0.025
    odd_smoothing: Unit = 0.06
    min_signal_remaining: Unit = 0.05


class Pcan(StrictModel):
    """Per-channel gain: (noise + offset) ** -strength, with `gain_bits` bits after the point."""

    strength: Annotated[float, Field(ge=0, le=4)] = 0.95
    offset: Annotated[float, Field(gt=0, le=1e6)] = 80.0
    gain_bits: Annotated[int, Field(ge=15, le=30)] = 21


class MicroFrontend(Frontend):
    """Options of microfrontend, with the defaults of micro wake word.

    channels, lower_hz, upper_hz  of the mel filter bank
    pcan                          false: no gain control
    log                           false: features are min(x, 65535) / out_scale
    log_shift                     with log, features are log(x) * 2**log_shift
    conversion                    of features to int8: `tflm`, (256 f + 333) / 666 - 128; `scale`, f / 25.6 by the
                                  network's scale; `auto`: `tflm` if the network's scale is that of TFLM's conversion
    """

    kind: Literal["microfrontend"] = "microfrontend"
    channels: Annotated[int, Field(ge=1, le=256)] = 40
    lower_hz: Annotated[float, Field(ge=0, le=96_000)] = 125.0
    upper_hz: Annotated[float, Field(gt=0, le=96_000)] = 7500.0
    noise_reduction: NoiseReduction = NoiseReduction()
    pcan: Pcan | Literal[False] = Pcan()
    log: bool = True
    log_shift: Annotated[int, Field(ge=0, le=_LARGEST_LOG_SHIFT)] = 6
    out_scale: Annotated[float, Field(gt=0, le=1e9)] = 1.0
    conversion: Literal["auto", "tflm", "scale"] = "auto"

    @model_validator(mode="after")
    def _check(self) -> Self:
        self.check_frame()
        if self.upper_hz <= self.lower_hz:
            raise mistake(f"{self.upper_hz:g} Hz is not above lower_hz, {self.lower_hz:g} Hz", "upper_hz")
        if 2 * self.upper_hz >= self.sample_rate:
            raise mistake(
                f"{self.upper_hz:g} Hz must be below half the sample rate, {self.sample_rate / 2:g} Hz", "upper_hz"
            )
        unused = ("out_scale",) if self.log else ("log_shift", "conversion")
        for key in sorted(self.model_fields_set.intersection(unused)):
            raise mistake(f"has no effect with `log: {str(self.log).lower()}`", key, beside=("log",))
        if not 33 <= self.frame_size <= 2048:
            message = f"{self.window_ms:g} ms is a frame of {self.frame_size} samples; it must have 33 to 2,048"
            raise mistake(message, "window_ms", beside=("sample_rate",))
        if self.pcan and self.noise_reduction.smoothing_bits < self.correction_bits:
            raise mistake(
                f"must be at least {self.correction_bits} for an FFT of {self.fft_length} points",
                "noise_reduction",
                "smoothing_bits",
            )
        if self.pcan and self.snr_shift(self.pcan) < 0:
            raise mistake(f"{self.pcan.gain_bits} gain bits are too few for an FFT of {self.fft_length} points", "pcan")
        return self

    @property
    def fft_length(self) -> int:
        """The smallest power of two that is not less than the frame."""
        return 1 << (self.frame_size - 1).bit_length()

    @property
    def feature_channels(self) -> int:
        """Features of a frame."""
        return self.channels

    @property
    def correction_bits(self) -> int:
        """Bits that bring a filter's square root to the scale of the samples' amplitude."""
        return self.fft_length.bit_length() - 1 - FILTER_BITS // 2

    def snr_shift(self, pcan: Pcan) -> int:
        """Return the shift of signal times gain to SNR_BITS."""
        return pcan.gain_bits - self.correction_bits - SNR_BITS
