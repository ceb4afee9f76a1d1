"""The C front end of TensorFlow's micro_speech, which micro wake word and most keyword networks are trained with.

`frontend: {kind: microfrontend}`. All arithmetic is in integers:

    window -> FFT -> energy -> mel filter bank -> square root -> noise reduction -> PCAN gain -> log

TFLM's signal operators compute the same steps, so the file has these. A feature f stands for f / 25.6.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from stages.ir.models.builder import ModelBuilder, Tensor
from stages.ir.models.chain.frontends.base import Features, Frontend
from stages.ir.models.chain.frontends.microfrontend_tables import FILTER_BITS, WINDOW_BITS, filter_bank, gains, window
from stages.support.messages.stage_error import StageError
from stages.support.options.strict_model import StrictModel, mistake

FEATURE_SCALE = 0.0390625  # 1 / 25.6, of the uint16 features
_NOISE_BITS, _SNR_BITS = 14, 12
# TFLM's conversion to int8, (256 f + 333) / 666 - 128, for networks with this input scale and zero point -128.
_TFLM_SCALES = (0.1014, 0.1021)
_LARGEST_LOG_SHIFT = 10  # the largest logarithm is 22.2, and features have 15 bits
Unit = Annotated[float, Field(ge=0, le=1)]


class NoiseReduction(StrictModel):
    """Subtraction of the estimated noise. Smoothing is that of even and of odd channels."""

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
    log_shift                     features are log(x) * 2**log_shift
    conversion                    of features to int8: `tflm`, (256 f + 333) / 666 - 128; `scale`, f / 25.6 by the
                                  network's scale; `auto`: `tflm` if the network's scale is that of TFLM's conversion
    """

    kind: Literal["microfrontend"] = "microfrontend"
    channels: Annotated[int, Field(ge=1, le=256)] = 40
    lower_hz: Annotated[float, Field(ge=0, le=96_000)] = 125.0
    upper_hz: Annotated[float, Field(gt=0, le=96_000)] = 7500.0
    noise_reduction: NoiseReduction = NoiseReduction()
    pcan: Pcan | Literal[False] = Pcan()
    log_shift: Annotated[int, Field(ge=0, le=_LARGEST_LOG_SHIFT)] = 6
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
        if not 33 <= self.frame_size <= 2048:
            message = f"{self.window_ms:g} ms is a frame of {self.frame_size} samples; it must have 33 to 2,048"
            raise mistake(message, "window_ms", beside=("sample_rate",))
        if self.pcan and self._snr_shift(self.pcan) < 0:
            raise mistake(f"{self.pcan.gain_bits} gain bits are too few for an FFT of {self.fft_length} points", "pcan")
        return self

    @property
    def fft_length(self) -> int:
        """The least power of two that holds a frame."""
        return 1 << (self.frame_size - 1).bit_length()

    @property
    def feature_channels(self) -> int:
        """Features of a frame."""
        return self.channels

    @property
    def _correction_bits(self) -> int:
        return self.fft_length.bit_length() - 1 - FILTER_BITS // 2

    def _snr_shift(self, pcan: Pcan) -> int:
        return pcan.gain_bits - self._correction_bits - _SNR_BITS

    def build(self, features: Features) -> bytes:
        """Return the TFLite file, as Frontend.build."""
        b = ModelBuilder()
        samples = b.input("samples", (1, features.frames * self.frame_step), "int16")
        logarithms = self._logarithms(b, samples, features.frames)
        b.output(self._converted(b, logarithms, features))
        return b.build()

    def _logarithms(self, b: ModelBuilder, samples: Tensor, frames: int) -> Tensor:
        """Append the operators from samples to features in int16."""
        from flatbuffers import flexbuffers

        def signal(name: str, inputs: list[Tensor], results: list[Tensor], **options: Any) -> Tensor:
            b.operator(f"CUSTOM:Signal{name}", inputs, results, custom=bytes(flexbuffers.Dumps(options)))
            return results[0]

        def rows(name: str, size: int, dtype: str) -> Tensor:
            return b.tensor(name, (*leading, size), dtype)

        size, channels, bins = self.frame_size, self.channels, self.fft_length // 2 + 1
        leading = (frames,) if frames > 1 else ()  # TFLM's own interpreter runs a file of one frame
        framed = b.tensor("framed", (1, frames, size), "int16")
        signal(
            "Framer",
            [samples],
            [framed, b.tensor("framed/valid", (), "bool")],
            frame_size=size,
            frame_step=self.frame_step,
            prefill=True,
        )
        frame = b.reshape(framed, (*leading, size), name="frames")
        windowed = signal(
            "Window", [frame, b.constant("window", window(size))], [rows("windowed", size, "int16")], shift=WINDOW_BITS
        )
        shift = b.tensor("scaled/bits", leading, "int32")
        scaled = signal("FftAutoScale", [windowed], [rows("scaled", size, "int16"), shift])
        spectrum = signal("Rfft", [scaled], [rows("spectrum", 2 * bins, "int16")], T=7, fft_length=self.fft_length)
        bank = filter_bank(channels, self.lower_hz, self.upper_hz, self.sample_rate, self.fft_length)
        energy = signal(
            "Energy", [spectrum], [rows("energy", bins, "uint32")], start_index=bank.start, end_index=bank.end
        )
        tables = [b.constant(f"filters/{name}", values) for name, values in bank.tables.items()]
        filtered = signal(
            "FilterBank", [energy, *tables], [rows("filtered", channels, "uint64")], num_channels=channels
        )
        root = signal("FilterBankSquareRoot", [filtered, shift], [rows("root", channels, "uint32")])
        noise = rows("noise", channels, "uint32")
        signal_rows = signal(
            "FilterBankSpectralSubtraction",
            [root],
            [rows("reduced", channels, "uint32"), noise],
            num_channels=channels,
            clamping=False,
            **self._noise_options(),
        )
        if self.pcan:
            point = self.noise_reduction.smoothing_bits - self._correction_bits
            table = gains(self.pcan.strength, self.pcan.offset, self.pcan.gain_bits, point)
            signal_rows = signal(
                "PCAN",
                [signal_rows, noise, b.constant("gains", table)],
                [rows("gained", channels, "uint32")],
                snr_shift=self._snr_shift(self.pcan),
            )
        logarithms = b.tensor(
            "logarithms", (*leading, channels), "int16", FEATURE_SCALE * 64 / (1 << self.log_shift), 0
        )
        return signal(
            "FilterBankLog",
            [signal_rows],
            [logarithms],
            input_correction_bits=self._correction_bits,
            output_scale=1 << self.log_shift,
        )

    def _noise_options(self) -> dict[str, int]:
        options, one = self.noise_reduction, 1 << _NOISE_BITS

        def fixed(value: float) -> int:
            return int(np.float32(value) * np.float32(one))

        even, odd = fixed(options.even_smoothing), fixed(options.odd_smoothing)
        return {
            "smoothing": even,
            "one_minus_smoothing": one - even,
            "alternate_smoothing": odd,
            "alternate_one_minus_smoothing": one - odd,
            "min_signal_remaining": fixed(options.min_signal_remaining),
            "smoothing_bits": options.smoothing_bits,
            "spectral_subtraction_bits": _NOISE_BITS,
        }

    def _converted(self, b: ModelBuilder, logarithms: Tensor, features: Features) -> Tensor:
        """Append the conversion of int16 features to the wanted type."""
        if features.dtype == "int16" and features.scale in (None, logarithms.scale[0]) and not features.zero_point:
            return logarithms
        if features.dtype == "float32":
            return b.dequantize(logarithms, name="features")
        if features.scale is None:
            raise StageError(f"microfrontend has no {features.dtype} features without a scale")
        low, high = _TFLM_SCALES
        fits = features.dtype == "int8" and features.zero_point == -128 and low <= features.scale <= high
        if self.conversion == "tflm" and not fits:
            quantization = f"{features.dtype}, scale {features.scale:g}, zero point {features.zero_point}"
            raise StageError(
                "`conversion: tflm` makes int8 features of scale 0.102 and zero point -128; "
                f"the network reads {quantization}",
                hint="conversion: scale",
            )
        if self.conversion == "scale" or not fits:
            return b.quantize(logarithms, features.dtype, (features.scale, features.zero_point), name="features")
        return _tflm_int8(b, logarithms, features.scale)


def _tflm_int8(b: ModelBuilder, features: Tensor, scale: float) -> Tensor:
    """Append (256 f + 333) / 666 - 128, as TFLM's audio preprocessor and micro wake word convert features."""

    def cast(x: Tensor, dtype: str, name: str, *quantization: Any) -> Tensor:
        result = b.tensor(name, x.shape, dtype, *quantization)
        b.operator("CAST", [x], [result])
        return result

    def step(op: str, x: Tensor, value: int, options: str) -> Tensor:
        constant = b.constant(f"features/{value}", np.array([value], np.int32))
        result = b.tensor(f"features/{op.lower()}", x.shape, "int32")
        b.operator(op, [x, constant], [result], options)
        return result

    x = cast(features, "int32", "features/int32")
    for op, value in (("MUL", 256), ("ADD", 333), ("DIV", 666), ("ADD", -128), ("MINIMUM", 127), ("MAXIMUM", -128)):
        options = "MaximumMinimumOptions" if op in ("MINIMUM", "MAXIMUM") else f"{op.capitalize()}Options"
        x = step(op, x, value, options)
    return cast(x, "int8", "features", scale, -128)
