"""TFLM's signal operators: the same arithmetic, with state tensors as memory."""

from math import prod
from typing import Any

from stages.ir.graph import Tensor
from stages.ir.layers import LayerOp
from stages.ir.operators.signal_filter_bank import CONSTANTS, FilterBank, Log, Pcan, SquareRoot, subtraction_options
from stages.ir.operators.signal_memory import Delay, OverlapAdd, framer_layers, stacker_layers
from stages.ir.operators.signal_spectrum import Energy, Irfft, Rfft, ScaleBits, ScaleUp, Window
from stages.quantize.operator import Operator
from stages.quantize.patterns.operand import operands
from stages.quantize.writer import GraphWriter


def window(operator: Operator, writer: GraphWriter) -> None:
    """SignalWindow."""
    op = Window(shift=operator.flexbuffer["shift"])
    writer.layer(op, operands(operator, writer, 1), operator.outputs[0], {"weights": operator.known(1)})


def auto_scale(operator: Operator, writer: GraphWriter) -> None:
    """SignalFftAutoScale: the bits of each frame, then its shift."""
    _auto_scale(operator, writer, ScaleBits())


def microfrontend_scale(operator: Operator, writer: GraphWriter) -> None:
    """FirmlineFftAutoScale: as auto_scale, but -2^15 does not count."""
    _auto_scale(operator, writer, ScaleBits(ignores_lowest=True))


def _auto_scale(operator: Operator, writer: GraphWriter, bits_layer: ScaleBits) -> None:
    (x,), (scaled, bits) = operands(operator, writer, 1), operator.outputs
    writer.layer(bits_layer, [x], bits)
    writer.layer(ScaleUp(), [x, bits], scaled)


def rfft(operator: Operator, writer: GraphWriter) -> None:
    """SignalRfft."""
    _plain(operator, writer, Rfft(length=operator.flexbuffer["fft_length"]))


def irfft(operator: Operator, writer: GraphWriter) -> None:
    """SignalIrfft."""
    _plain(operator, writer, Irfft(length=operator.flexbuffer["fft_length"]))


def energy(operator: Operator, writer: GraphWriter) -> None:
    """SignalEnergy."""
    options = operator.flexbuffer
    _plain(operator, writer, Energy(start=options["start_index"], end=options["end_index"]))


def filter_bank(operator: Operator, writer: GraphWriter) -> None:
    """SignalFilterBank."""
    constants = {role: operator.known(position) for position, role in enumerate(CONSTANTS, 1)}
    writer.layer(FilterBank(), operands(operator, writer, 1), operator.outputs[0], constants)


def square_root(operator: Operator, writer: GraphWriter) -> None:
    """SignalFilterBankSquareRoot."""
    writer.layer(SquareRoot(), operands(operator, writer), operator.outputs[0])


def subtract_noise(operator: Operator, writer: GraphWriter) -> None:
    """SignalFilterBankSpectralSubtraction: the noise, which is a state, then the difference."""
    (x,), (difference, noise) = operands(operator, writer, 1), operator.outputs
    estimate, subtraction = subtraction_options(operator.flexbuffer)
    writer.layer(estimate, [x], noise, state=[_state(writer, noise.name, x.shape[-1:], "uint32")])
    writer.layer(subtraction, [x, noise], difference)


def pcan(operator: Operator, writer: GraphWriter) -> None:
    """SignalPCAN."""
    op = Pcan(snr_shift=operator.flexbuffer["snr_shift"])
    writer.layer(op, operands(operator, writer, 2), operator.outputs[0], {"gains": operator.known(2)})


def log(operator: Operator, writer: GraphWriter) -> None:
    """SignalFilterBankLog."""
    options = operator.flexbuffer
    _plain(operator, writer, Log(scale=options["output_scale"], correction_bits=options["input_correction_bits"]))


def framer(operator: Operator, writer: GraphWriter) -> None:
    """SignalFramer: frames, and whether they are valid."""
    (x,), (frames, valid) = operands(operator, writer, 1), operator.outputs
    streams, samples = prod(x.shape[:-1]), x.shape[-1]
    framer, framer_valid = framer_layers(operator.flexbuffer, samples)
    kept = [_state(writer, frames.name, (streams, framer.kept), "int16")] if framer.kept else []
    writer.layer(framer, [x], frames, state=[*kept, *_count(writer, frames.name, framer.unset)])
    writer.layer(framer_valid, [x], valid, state=_count(writer, valid.name, framer.unset))


def overlap_add(operator: Operator, writer: GraphWriter) -> None:
    """SignalOverlapAdd."""
    (x,), out = operands(operator, writer, 1), operator.outputs[0]
    op = OverlapAdd(step=operator.flexbuffer["frame_step"])
    shape = (prod(x.shape[:-2]), x.shape[-1] - op.step)
    writer.layer(op, [x], out, state=[_state(writer, out.name, shape, x.dtype)] if shape[1] else [])


def delay(operator: Operator, writer: GraphWriter) -> None:
    """SignalDelay."""
    (x,), out = operands(operator, writer, 1), operator.outputs[0]
    op = Delay(length=operator.flexbuffer["delay_length"])
    shape = (prod(x.shape[:-1]), op.length)
    writer.layer(op, [x], out, state=[_state(writer, out.name, shape, "int16")] if op.length else [])


def stacker(operator: Operator, writer: GraphWriter) -> None:
    """SignalStacker: stacks, and whether they are valid."""
    (x,), (stacks, valid) = operands(operator, writer, 1), operator.outputs
    stacker, stacker_valid = stacker_layers(operator.flexbuffer)
    rows = [_state(writer, stacks.name, (stacker.rows - 1, x.shape[-1]), "int16")] if stacker.rows > 1 else []
    writer.layer(stacker, [x], stacks, state=[*rows, *_count(writer, stacks.name, 1)])
    writer.layer(stacker_valid, [x], valid, state=_count(writer, valid.name, 1))


def _count(writer: GraphWriter, name: str, needed: int) -> list[Tensor]:
    """Return the state of a count, unless it would always be 0."""
    return [_state(writer, f"{name}/count", (1,), "int32")] if needed else []


def _plain(operator: Operator, writer: GraphWriter, op: LayerOp) -> None:
    writer.layer(op, operands(operator, writer), operator.outputs[0])


def _state(writer: GraphWriter, name: str, shape: tuple[int, ...], dtype: Any) -> Tensor:
    return writer.tensor(Tensor(name=f"{name}/state", shape=shape, dtype=dtype, state=True))


PATTERNS = {
    "CUSTOM:SignalWindow": window,
    "CUSTOM:SignalFftAutoScale": auto_scale,
    "CUSTOM:FirmlineFftAutoScale": microfrontend_scale,
    "CUSTOM:SignalRfft": rfft,
    "CUSTOM:SignalIrfft": irfft,
    "CUSTOM:SignalEnergy": energy,
    "CUSTOM:SignalFilterBank": filter_bank,
    "CUSTOM:SignalFilterBankSquareRoot": square_root,
    "CUSTOM:SignalFilterBankSpectralSubtraction": subtract_noise,
    "CUSTOM:SignalPCAN": pcan,
    "CUSTOM:SignalFilterBankLog": log,
    "CUSTOM:SignalFramer": framer,
    "CUSTOM:SignalOverlapAdd": overlap_add,
    "CUSTOM:SignalDelay": delay,
    "CUSTOM:SignalStacker": stacker,
}
