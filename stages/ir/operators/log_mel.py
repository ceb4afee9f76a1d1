"""Firmline's audio operators: CUSTOM:FirmlineLogMel and CUSTOM:FirmlineMelFeatures.

Their formulas are the reference. `stages/ir/models/chain/frontends/mel_operators.py` makes their constants.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from stages.ir.layers import Array, LayerOp, LayerView
from stages.ir.model_info import TensorInfo
from stages.ir.naming import named
from stages.ir.operators.declaration import EIGHT_BITS, Legalization, LiteRT, Operator, Quantization, Tensors, Weights
from stages.ir.operators.operation import Operation, Refused, Shape, listed
from stages.support.lazy import np

if TYPE_CHECKING:
    from stages.ir.arithmetic.mel import LogMel

_ROLES = ("window", "edges", "ramps", "bias", "offset")
_TYPES = {"window": "int32", "edges": "int32", "ramps": "int32", "bias": "int32", "offset": "int32"}
_MOST_VALUES = 4096  # of a spectrum: with weights of 16 bits and values of 32, below the bias of 2**61
FFT_LENGTHS = tuple(1 << bits for bits in range(4, 14))


class LogMelSpectrum(LayerOp):
    """Log-mel spectrum of frames; the formula is in stages/ir/arithmetic/mel.py.

    Input int16[..., samples], output int32[..., mels] with 16 bits after the point. Constants: window int32[frame]
    of 30 bits, edges int32[mels + 2], ramps int32[bins] of 16 bits, bias int32[mels], offset int32[2, mels] (optional).

    With pre-emphasis a frame begins with the sample before it.
    """

    op: Literal["log_mel"] = "log_mel"
    any_type: ClassVar[bool] = True
    fft_length: int
    pre_emphasis: int | None
    power: Literal[1, 2]
    floor: int

    def formula(self, constants: dict[str, Any]) -> LogMel:
        """Return the formula with its constants, by role."""
        from stages.ir.arithmetic.mel import LogMel

        return LogMel(**{"offset": None, **self.model_dump(exclude={"op"}), **constants})

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        """Return the spectrum."""
        return _spectrum(self.formula({role: view.constant(role) for role in view.layer.constants}), inputs[0])


class MelFeatures(LayerOp):
    """Features of a log-mel spectrum: sums of its values, or each value scaled.

    Input x int32[..., mels], output int8, uint8 or int16[..., channels]. Constants: weights int16[channels, depth],
    bias int64[channels], right_shift int32[channels] from 1 to 62. For channel c:

      y[c] = clamp((bias[c] + sum over m of weights[c, m] * x[m]) >> right_shift[c])     depth = mels: a DCT
      y[c] = clamp((bias[c] + weights[c, 0] * x[c]) >> right_shift[c])                   depth = 1

    `bias` has the zero point and the half that rounds. Sums have 64 bits; the shift is a floor.
    """

    op: Literal["mel_features"] = "mel_features"
    any_type: ClassVar[bool] = True
    low: int
    high: int

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        """Return the features."""
        weights, bias, shift = (view.constant(role) for role in ("weights", "bias", "right_shift"))
        return _features(inputs[0], weights, bias, shift, view.outputs[0].dtype)


def _spectrum(formula: LogMel, x: Array) -> Array:
    return formula.of(x.reshape(-1, x.shape[-1])).reshape(*x.shape[:-1], len(formula.bias))


def _features(x: Array, weights: Array, bias: Array, shift: Array, dtype: str) -> Array:
    values, factors = x.astype(np.int64), weights.astype(np.int64)
    sums = values * factors[:, 0] if is_diagonal(x.shape, factors.shape) else values @ factors.T
    limits = np.iinfo(dtype)
    return np.clip((bias + sums) >> shift.astype(np.int64), limits.min, limits.max).astype(dtype)


def is_diagonal(x: Shape, weights: Shape) -> bool:
    """Return whether each feature is one value of the spectrum."""
    return weights == (x[-1], 1)


def log_mel_of(options: Any) -> LogMelSpectrum:
    """Return the layer of an operator with these options. Raises Refused."""
    fields = {name: options.get(name) for name in ("fft_length", "pre_emphasis", "power", "floor")}
    if not all(type(value) is int for name, value in fields.items() if name != "pre_emphasis" or value is not None):
        raise Refused(f"has options {fields}, which are not integers")
    if fields["fft_length"] not in FFT_LENGTHS:
        raise Refused(f"has an FFT of {fields['fft_length']} points; it must be a power of two from 16 to 8,192")
    if fields["power"] not in (1, 2):
        raise Refused(f"has the power {fields['power']}; it must be 1 or 2")
    if fields["pre_emphasis"] is not None and not 0 <= fields["pre_emphasis"] <= 1 << 15:
        raise Refused(f"has the pre-emphasis {fields['pre_emphasis']}; it must be 0 to {1 << 15}")
    if abs(fields["floor"]) > 1 << 30:
        raise Refused(f"has the floor {fields['floor']}, beyond 2**30")
    return LogMelSpectrum(**fields)


def _log_mel_shapes(operation: Operation) -> list[Shape]:
    options = operation.flexbuffer
    if not isinstance(options, dict):
        raise Refused("has options that are not a dictionary")
    op, x, constants = log_mel_of(options), operation.input(0), _constants(operation, _ROLES, _TYPES)
    if x.dtype != "int16" or not x.shape:
        raise Refused(f"reads {named(x)} {x.dtype}{listed(x.shape)}; it must be int16 frames")
    frame, mels = x.shape[-1] - (op.pre_emphasis is not None), constants["bias"].size
    if constants["bias"].shape != (mels,) or not mels:
        raise Refused(f"has the bias {listed(constants['bias'].shape)}; it must be a list of one value per filter")
    window, edges, ramps = (constants[role] for role in ("window", "edges", "ramps"))
    if window.shape != (frame,) or not 1 <= frame <= op.fft_length:
        raise Refused(f"needs a window of {frame} values, at most {op.fft_length}; it has {listed(window.shape)}")
    if (abs(window.astype(np.int64)) > 1 << 30).any():
        raise Refused("has window values beyond 2**30")
    if edges.shape != (mels + 2,) or (edges[1:] < edges[:-1]).any() or edges[0] < 1 or 2 * edges[-1] > op.fft_length:
        raise Refused(f"has edges {listed(edges.reshape(-1))} of {mels} filters, which are not rising bins")
    if ramps.shape != (edges[-1] - edges[0],):
        raise Refused(f"has weights {listed(ramps.shape)}; one for each of {edges[-1] - edges[0]} bins is needed")
    if (ramps < 0).any() or (ramps >> 16).any():
        raise Refused("has weights outside of 0 to 65,535")
    offset = constants.get("offset")
    if offset is not None and (offset.shape != (2, mels) or (offset[0] < 0).any() or (abs(offset[1]) > 1024).any()):
        raise Refused("has offsets that are not mantissas from 0 and exponents within 1,024")
    if (abs(constants["bias"].astype(object)) > 1 << 30).any():
        raise Refused("has a bias beyond 2**30")
    return [(*x.shape[:-1], mels)]


def _features_shapes(operation: Operation) -> list[Shape]:
    x, constants = operation.input(0), _constants(operation, *_FEATURES)
    if x.dtype != "int32" or not x.shape:
        raise Refused(f"reads {named(x)} {x.dtype}{listed(x.shape)}; it must be an int32 spectrum")
    weights, bias, shift = constants.values()
    channels = weights.shape[0] if weights.ndim == 2 else 0
    if not channels or (weights.shape[1] != x.shape[-1] and not is_diagonal(x.shape, weights.shape)):
        raise Refused(f"has weights {listed(weights.shape)}, which do not fit spectra of {x.shape[-1]} values")
    if x.shape[-1] > _MOST_VALUES:
        raise Refused(f"sums {x.shape[-1]:,} values; at most {_MOST_VALUES:,} fit 64 bits")
    if bias.shape != (channels,) or shift.shape != (channels,) or (shift < 1).any() or (shift > 62).any():
        raise Refused(f"needs a bias and a shift from 1 to 62 for each of {channels} channels")
    if (abs(bias.astype(object)) > 1 << 61).any():
        raise Refused("has a bias beyond 2**61")
    return [(*x.shape[:-1], channels)]


_FEATURES: Any = (("weights", "bias", "right_shift"), {"weights": "int16", "bias": "int64", "right_shift": "int32"})


def _constants(operation: Operation, roles: tuple[str, ...], types: dict[str, str]) -> dict[str, Array]:
    """Return constant inputs from position 1 on, by role.

    Raises Refused for computed inputs and other types.
    """
    arrays = {}
    for position, role in enumerate(roles, 1):
        tensor: TensorInfo | None = operation.inputs[position] if position < len(operation.inputs) else None
        if tensor is None and role == "offset":
            continue
        tensor = operation.input(position)
        if tensor.data is None or tensor.dtype != types[role]:
            state = "computed" if tensor.data is None else tensor.dtype
            raise Refused(f"has the {role} {named(tensor)}, which is {state}; it must be a constant {types[role]}")
        arrays[role] = tensor.values()
    return arrays


def _log_mel_reference(operation: Operation, x: Array, *constants: Array | None) -> list[Array]:
    return [_spectrum(log_mel_of(operation.flexbuffer).formula(dict(zip(_ROLES, constants, strict=False))), x)]


def _features_reference(operation: Operation, x: Array, weights: Array, bias: Array, shift: Array) -> list[Array]:
    return [_features(x, weights, bias, shift, operation.outputs[0].dtype)]


OPERATORS = (
    Operator(
        "CUSTOM:FirmlineLogMel",
        _log_mel_shapes,
        Tensors((5, 6), types=("int16",), results=("int32",)),
        weights=Weights(own=(1, 2, 3, 4, 5)),
        quantization=Quantization(scales="any"),
        legalization=Legalization((LogMelSpectrum,), opaque=True),
        litert=LiteRT(reference=_log_mel_reference),
        limits="log-mel spectrum of frames; its formula is the reference",
    ),
    Operator(
        "CUSTOM:FirmlineMelFeatures",
        _features_shapes,
        Tensors((4, 4), types=("int32",), results=(*EIGHT_BITS, "int16")),
        weights=Weights(own=(1, 2, 3)),
        quantization=Quantization(scales="any"),
        legalization=Legalization((MelFeatures,), opaque=True),
        litert=LiteRT(reference=_features_reference),
        limits="MFCC or scaled log-mel features; its formula is the reference",
    ),
)
