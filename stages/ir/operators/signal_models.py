"""Models of a single TFLM signal operator, with seeded constants."""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from stages.ir.arithmetic.exact import random_bytes
from stages.ir.model_info import FileTensor
from stages.ir.operators.operation import Shape
from stages.ir.operators.single_operator import SingleOperatorBuilder, SingleOperatorModel
from stages.support.lazy import np

_TYPES = {"float32": 0, "int32": 2, "int16": 7}  # the option T
_CHANNELS, _GAINS = 40, 125
Shaped = tuple[Shape, str]


def _signal(
    model: SingleOperatorBuilder, code: str, inputs: Sequence[FileTensor], outputs: Sequence[Shaped], **options: Any
) -> list[FileTensor]:
    """Append the operator; return its results."""
    from flatbuffers import flexbuffers

    results = [model.builder.tensor(f"y{number}", *shaped) for number, shaped in enumerate(outputs)]
    custom = bytes(flexbuffers.Dumps(options)) if options else b""
    model.builder.operator(f"CUSTOM:Signal{code}", inputs, results, custom=custom)
    return results


def _constant(model: SingleOperatorBuilder, name: str, values: Any) -> FileTensor:
    tensor: FileTensor = model.builder.constant(name, np.asarray(values).astype(np.int16))
    return tensor


def _positive(model: SingleOperatorBuilder, count: int, bits: int) -> Any:
    """Seeded numbers from 0 to 2^bits - 1."""
    return random_bytes(model.spec.seed, "constants", 2 * count).view("<u2") >> (16 - bits)


def _window(model: SingleOperatorBuilder, x: FileTensor) -> list[FileTensor]:
    weights = _constant(model, "weights", _positive(model, x.shape[-1], 12))
    return _signal(model, "Window", [x, weights], [(x.shape, "int16")], shift=model.spec.shift)


def _auto_scale(model: SingleOperatorBuilder, x: FileTensor) -> list[FileTensor]:
    return _signal(model, "FftAutoScale", [x], [(x.shape, "int16"), (x.shape[:-1], "int32")])


def _rfft(model: SingleOperatorBuilder, x: FileTensor) -> list[FileTensor]:
    length = model.spec.fft_length or max(4, 1 << (x.shape[-1] - 1).bit_length())
    output = (*x.shape[:-1], length + 2), x.dtype
    return _signal(model, "Rfft", [x], [output], T=_TYPES[x.dtype], fft_length=length)


def _irfft(model: SingleOperatorBuilder, x: FileTensor) -> list[FileTensor]:
    length = max(1, x.shape[-1] - 2)
    output = (*x.shape[:-1], length), x.dtype
    return _signal(model, "Irfft", [x], [output], T=_TYPES[x.dtype], fft_length=length)


def _energy(model: SingleOperatorBuilder, x: FileTensor) -> list[FileTensor]:
    bins = max(1, x.shape[-1] // 2)
    return _signal(model, "Energy", [x], [((*x.shape[:-1], bins), "uint32")], start_index=0, end_index=bins)


def _filter_bank(model: SingleOperatorBuilder, x: FileTensor) -> list[FileTensor]:
    """Sections of equal width that cover the bins."""
    channels, bins = model.spec.out_channels or _CHANNELS, x.shape[-1]
    bounds = np.arange(channels + 2) * bins // (channels + 1)
    weights = _positive(model, bins, 12)
    tables = [weights, (1 << 12) - weights, bounds[:-1], bounds[:-1], np.diff(bounds)]
    constants = [_constant(model, f"filters{number}", table) for number, table in enumerate(tables)]
    output = (*x.shape[:-1], channels), "uint64"
    return _signal(model, "FilterBank", [x, *constants], [output], num_channels=channels)


def _square_root(model: SingleOperatorBuilder, x: FileTensor) -> list[FileTensor]:
    bits = model.builder.input("bits", x.shape[:-1], "int32")
    return _signal(model, "FilterBankSquareRoot", [x, bits], [(x.shape, "uint32")])


def _subtraction(model: SingleOperatorBuilder, x: FileTensor) -> list[FileTensor]:
    """The defaults of TFLM's audio preprocessor."""
    smoothing = {"smoothing": 409, "one_minus_smoothing": 15975}
    alternate = {"alternate_smoothing": 983, "alternate_one_minus_smoothing": 15401}
    more = {"min_signal_remaining": 819, "smoothing_bits": 10, "spectral_subtraction_bits": 14, "clamping": False}
    outputs = [(x.shape, "uint32")] * 2
    options = {**smoothing, **alternate, **more, "num_channels": x.shape[-1]}
    return _signal(model, "FilterBankSpectralSubtraction", [x], outputs, **options)


def _pcan(model: SingleOperatorBuilder, x: FileTensor) -> list[FileTensor]:
    noise, gains = (
        model.builder.input("noise", x.shape, x.dtype),
        _constant(model, "gains", _positive(model, _GAINS, 13)),
    )
    return _signal(model, "PCAN", [x, noise, gains], [(x.shape, "uint32")], snr_shift=6)


def _log(model: SingleOperatorBuilder, x: FileTensor) -> list[FileTensor]:
    return _signal(model, "FilterBankLog", [x], [(x.shape, "int16")], input_correction_bits=3, output_scale=64)


def _framer(model: SingleOperatorBuilder, x: FileTensor) -> list[FileTensor]:
    step = model.spec.frame_step or x.shape[-1]
    size = model.spec.frame_size or 3 * step
    outputs: list[Shaped] = [((*x.shape[:-1], x.shape[-1] // step, size), "int16"), ((), "bool")]
    return _signal(model, "Framer", [x], outputs, frame_size=size, frame_step=step, prefill=model.spec.prefill)


def _overlap_add(model: SingleOperatorBuilder, x: FileTensor) -> list[FileTensor]:
    step = model.spec.frame_step or x.shape[-1]
    output = (*x.shape[:-2], prod(x.shape[-2:-1]) * step), x.dtype
    return _signal(model, "OverlapAdd", [x], [output], T=_TYPES[x.dtype], frame_step=step)


def _delay(model: SingleOperatorBuilder, x: FileTensor) -> list[FileTensor]:
    return _signal(model, "Delay", [x], [(x.shape, "int16")], delay_length=model.spec.delay_length)


def _stacker(model: SingleOperatorBuilder, x: FileTensor) -> list[FileTensor]:
    spec = model.spec
    rows = spec.left_context + spec.right_context + 1
    outputs: list[Shaped] = [((*x.shape[:-1], rows * x.shape[-1]), "int16"), (x.shape[:-1], "bool")]
    options = {"stacker_left_context": spec.left_context, "stacker_right_context": spec.right_context}
    options |= {"stacker_step": spec.stacker_step, "num_channels": x.shape[-1]}
    return _signal(model, "Stacker", [x], outputs, **options)


def _model(
    build: Callable[[SingleOperatorBuilder, FileTensor], list[FileTensor]], *options: str
) -> SingleOperatorModel:
    return SingleOperatorModel(build, frozenset(options))


MODELS = {
    "Delay": _model(_delay, "delay_length"),
    "Energy": _model(_energy),
    "FftAutoScale": _model(_auto_scale),
    "FilterBank": _model(_filter_bank, "out_channels"),
    "FilterBankLog": _model(_log),
    "FilterBankSpectralSubtraction": _model(_subtraction),
    "FilterBankSquareRoot": _model(_square_root),
    "Framer": _model(_framer, "frame_size", "frame_step", "prefill"),
    "Irfft": _model(_irfft),
    "OverlapAdd": _model(_overlap_add, "frame_step"),
    "PCAN": _model(_pcan),
    "Rfft": _model(_rfft, "fft_length"),
    "Stacker": _model(_stacker, "left_context", "right_context", "stacker_step"),
    "Window": _model(_window, "shift"),
}
