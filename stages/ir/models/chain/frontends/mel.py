"""Options of log-mel features, common to log_mel and mfcc.

    frame -> pre-emphasis -> window -> FFT -> |X| ** power -> filters -> logarithm -> (DCT) -> (f - mean) / std

docs/how-to/audio.md has the names that librosa and Edge Impulse use.
The integer formulas are in stages/ir/arithmetic/mel.py and stages/ir/operators/log_mel.py.
"""

from math import ceil, floor, log, log10
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from stages.ir.models.chain.frontends.base import Frontend
from stages.support.options.strict_model import mistake

_LEAST_FFT, _MOST_FFT = 16, 8192
Hertz = Annotated[float, Field(ge=0, le=96_000)]
Values = float | tuple[float, ...]
Positive = Annotated[float, Field(gt=0)]
Samples = Annotated[int, Field(ge=1, le=_MOST_FFT)]


class MelFrontend(Frontend):
    """Options of log-mel features.

    window_samples, step_samples  frame and step in samples, instead of window_ms and step_ms
    fft_length    power of two; None: the least that holds a frame. Zeros follow the frame
    window        hann, hamming or none; `symmetric`: as for filter design, else periodic
    pre_emphasis  c of x[i] - c * x[i - 1], over all samples
    mels          number of filters from lower_hz to upper_hz (None: half the sample rate)
    mel_scale     slaney or htk
    norm          slaney: filters of equal area; none: of equal height
    edges         exact: corners at their frequencies; edge_impulse: at bins floor((fft_length / 2 + 2) * hz / rate)
    power         2: energies; 1: magnitudes
    per_point     divide the spectrum's power by the FFT length
    full_scale    real value of a sample of 32,768
    log           natural, log10 or db: 10 * log10 (power 1: 20 * log10)
    floor         least value before the logarithm
    offset        added before the logarithm
    mean, std     features are (f - mean) / std; one value, or one per feature
    """

    window_samples: Samples | None = None
    step_samples: Samples | None = None
    fft_length: Annotated[int, Field(ge=_LEAST_FFT, le=_MOST_FFT)] | None = None
    window: Literal["hann", "hamming", "none"] = "hann"
    symmetric: bool = False
    pre_emphasis: Annotated[float, Field(ge=0, le=1)] = 0.0
    mels: Annotated[int, Field(ge=1, le=256)] = 40
    lower_hz: Hertz = 0.0
    upper_hz: Hertz | None = None
    mel_scale: Literal["slaney", "htk"] = "slaney"
    norm: Literal["slaney", "none"] = "slaney"
    edges: Literal["exact", "edge_impulse"] = "exact"
    power: Literal[1, 2] = 2
    per_point: bool = False
    full_scale: Annotated[float, Field(gt=0, le=1e6)] = 1.0
    log: Literal["natural", "log10", "db"] = "db"
    floor: Annotated[float, Field(ge=1e-30, le=1e30)] = 1e-10
    offset: Annotated[float, Field(ge=0, le=1e30)] = 0.0
    mean: Values = 0.0
    std: Positive | tuple[Positive, ...] = 1.0

    @property
    def frame_size(self) -> int:
        """Samples of a frame."""
        return self.window_samples or round(self.window_ms * self.sample_rate / 1000)

    @property
    def frame_step(self) -> int:
        """Samples from one frame to the next."""
        return self.step_samples or round(self.step_ms * self.sample_rate / 1000)

    @property
    def points(self) -> int:
        """Points of the FFT."""
        return self.fft_length or max(_LEAST_FFT, 1 << (self.frame_size - 1).bit_length())

    @property
    def corners_hz(self) -> list[float]:
        """Frequencies of the filters' corners, mels + 2.

        Filter m rises from corner m, and ends at corner m + 2.
        """
        top = self.sample_rate / 2 if self.upper_hz is None else self.upper_hz
        low, high = (_to_mel(hertz, self.mel_scale) for hertz in (self.lower_hz, top))
        steps = self.mels + 1
        return [_to_hertz(low + (high - low) * at / steps, self.mel_scale) for at in range(steps + 1)]

    @property
    def corners(self) -> list[float]:
        """The corners in bins of the spectrum."""
        if self.edges == "edge_impulse":
            return [float(floor((self.points // 2 + 2) * hertz / self.sample_rate)) for hertz in self.corners_hz]
        return [hertz * self.points / self.sample_rate for hertz in self.corners_hz]

    @property
    def first_bins(self) -> list[int]:
        """The first bin at or after each corner, from 1 to points / 2."""
        return [min(max(ceil(corner), 1), self.points // 2) for corner in self.corners]

    @model_validator(mode="after")
    def _check(self) -> Self:
        self._check_samples("window")
        self._check_samples("step")
        if self.frame_step > self.frame_size:
            key = "step_ms" if self.step_samples is None else "step_samples"
            message = f"the step of {self.frame_step} samples is longer than the frame of {self.frame_size} samples"
            raise mistake(message, key if key in self.model_fields_set else "window_ms")
        self._check_fft()
        self._check_filters()
        for name in ("mean", "std"):
            values = getattr(self, name)
            if isinstance(values, tuple) and len(values) != self.feature_channels:
                raise mistake(f"has {len(values)} values for {self.feature_channels} features", name)
        return self

    def _check_samples(self, name: str) -> None:
        """Raise an error for a duration in two units, or that is not a whole number of samples."""
        key, exact = f"{name}_ms", getattr(self, f"{name}_ms") * self.sample_rate / 1000
        samples = getattr(self, f"{name}_samples")
        if samples is not None and key in self.model_fields_set:
            raise mistake(f"states the {name} a second time; remove it or {key}", f"{name}_samples", beside=(key,))
        if samples is None and (exact < 1 or abs(exact - round(exact)) > 1e-6):
            message = f"is {exact:g} samples at {self.sample_rate} Hz; set {name}_samples: {max(round(exact), 1)}"
            raise mistake(message, key)

    def _check_fft(self) -> None:
        points = self.points
        if points & (points - 1) or not _LEAST_FFT <= points <= _MOST_FFT:
            key = "fft_length" if self.fft_length else "window_ms"
            raise mistake(f"{points} FFT points; it must be a power of two from {_LEAST_FFT} to {_MOST_FFT:,}", key)
        if self.frame_size > points:
            message = f"{points} is less than the frame of {self.frame_size} samples"
            raise mistake(message, "fft_length")

    def _check_filters(self) -> None:
        half = self.sample_rate / 2
        top = half if self.upper_hz is None else self.upper_hz
        if top > half:
            raise mistake(f"{top:g} Hz is above half the sample rate, {half:g} Hz", "upper_hz")
        if top <= self.lower_hz:
            raise mistake(f"{top:g} Hz is not above lower_hz, {self.lower_hz:g} Hz", "upper_hz")
        corners = self.corners
        for number, (low, high) in enumerate(zip(corners, corners[2:], strict=False)):
            first = max(floor(low) + 1, 1)
            if first >= min(high, self.points / 2):
                low_hz, high_hz = self.corners_hz[number], self.corners_hz[number + 2]
                raise mistake(
                    f"filter {number} of {self.mels}, {low_hz:.0f} to {high_hz:.0f} Hz, has no bin above 0 Hz; "
                    f"bins are {self.sample_rate / self.points:.1f} Hz apart. Use fewer filters or a longer FFT",
                    "mels",
                )

    @property
    def filter_gains(self) -> list[float]:
        """Factor of each filter by its norm."""
        hertz = self.corners_hz
        if self.norm == "none":
            return [1.0] * self.mels
        return [2 / (high - low) for low, high in zip(hertz, hertz[2:], strict=False)]

    @property
    def log_factor(self) -> float:
        """Logarithm of 2 in the feature's unit."""
        decibels = 10.0 if self.power == 2 else 20.0
        return {"natural": log(2), "log10": log10(2), "db": decibels * log10(2)}[self.log]


class LogMel(MelFrontend):
    """Log-mel spectrum, `frontend: {kind: log_mel}`: librosa's melspectrogram, power_to_db.

    A frame has `mels` features.
    """

    kind: Literal["log_mel"] = "log_mel"

    @property
    def feature_channels(self) -> int:
        """Features of a frame."""
        return self.mels


class Mfcc(MelFrontend):
    """Mel-frequency cepstral coefficients: `frontend: {kind: mfcc}`, as librosa's mfcc.

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


def _to_mel(hertz: float, scale: str) -> float:
    if scale == "htk":
        return 2595 * log10(1 + hertz / 700)
    return 3 * hertz / 200 if hertz < 1000 else 15 + 27 * log(hertz / 1000) / log(6.4)


def _to_hertz(mel: float, scale: str) -> float:
    if scale == "htk":
        return float(700 * (10 ** (mel / 2595) - 1))
    return 200 * mel / 3 if mel < 15 else float(1000 * 6.4 ** ((mel - 15) / 27))
