"""TFLM's signal operators: their layers against TFLM's own interpreter, over several runs with their state."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import flatbuffers
import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema

from stages.import_model.checks import check_operator
from stages.ir.models.chain.frontends.base import Features
from stages.ir.models.chain.frontends.build import build_frontend
from stages.ir.models.chain.frontends.microfrontend import MicroFrontend
from stages.ir.models.chain.frontends.microfrontend_tables import gains
from stages.ir.models.operators import build
from stages.ir.models.signal_operators import CODES
from stages.ir.models.spec import OpModel
from stages.ir.models.tflite_reader import read
from stages.ir.models.tflite_writer import TFLiteWriter
from stages.ir.operators.table import OPERATORS
from stages.ir.reference.integer import run_graph
from stages.ir.reference.interpreter import random_inputs
from stages.ir.reference.partitions import PartitionedReference, Reference, reference_of
from stages.support.messages.operator_error import OperatorError
from tests.conformance.draw import Draw
from tests.conformance.operators.signal import signals
from tests.support.integer import integer_graph
from tests.support.optional import needs
from tests.support.stages_run import verified

TYPES = {"float32": 0, "int32": 2, "int16": 7}
Shaped = tuple[tuple[int, ...], str]


def network(
    code: str,
    inputs: Sequence[Shaped],
    outputs: Sequence[Shaped],
    constants: Sequence[np.ndarray] = (),
    options: dict[str, Any] | None = None,
) -> bytes:
    """A TFLite file of one signal operator."""
    from flatbuffers import flexbuffers

    writer = TFLiteWriter()
    tensors = [writer.input(f"x{number}", *shaped) for number, shaped in enumerate(inputs)]
    tensors += [writer.constant(f"constant{number}", array) for number, array in enumerate(constants)]
    results = [writer.tensor(f"y{number}", *shaped) for number, shaped in enumerate(outputs)]
    writer.operator(f"CUSTOM:{code}", tensors, results, custom=bytes(flexbuffers.Dumps(options)) if options else b"")
    writer.output(*results)
    return writer.build()


def _window(draw: Draw, frames: tuple[int, ...]) -> bytes:
    x = ((*frames, draw.integer(1, 500)), "int16")
    return network("SignalWindow", [x], [x], [draw.array(x[0][-1:], "int16")], {"shift": draw.integer(0, 31)})


def _auto_scale(draw: Draw, frames: tuple[int, ...]) -> bytes:
    x = ((*frames, draw.integer(1, 500)), "int16")
    return network("SignalFftAutoScale", [x], [x, (frames, "int32")])


def _rfft(draw: Draw, frames: tuple[int, ...]) -> bytes:
    length, dtype = draw.choose(4, 6, 8, 10, 30, 36, 100, 128, 480, 512, 1024), draw.choose(*TYPES, "int16")
    x, y = ((*frames, draw.integer(1, length)), dtype), ((*frames, length + 2), dtype)
    return network("SignalRfft", [x], [y], (), {"T": TYPES[dtype], "fft_length": length})


def _irfft(draw: Draw, frames: tuple[int, ...]) -> bytes:
    length, dtype = draw.choose(4, 6, 8, 10, 30, 36, 100, 128, 480, 512, 1024), draw.choose(*TYPES, "int16")
    x, y = ((*frames, length + 2), dtype), ((*frames, length), dtype)
    return network("SignalIrfft", [x], [y], (), {"T": TYPES[dtype], "fft_length": length})


def _energy(draw: Draw, frames: tuple[int, ...]) -> bytes:
    bins = draw.integer(1, 300)
    start = draw.integer(0, bins)
    options = {"start_index": start, "end_index": draw.integer(start, bins)}
    return network("SignalEnergy", [((*frames, 2 * bins), "int16")], [((*frames, bins), "uint32")], (), options)


def _bank(draw: Draw, frames: tuple[int, ...]) -> bytes:
    channels, bins = draw.integer(1, 60), draw.integer(20, 300)
    widths = draw.rng.integers(0, 13, channels + 1)
    weights = draw.rng.integers(draw.choose(0, -(1 << 15)), 1 << 15, (2, 900))
    places = [draw.rng.integers(0, most - widths + 1) for most in (bins, 900)]
    constants = [array.astype(np.int16) for array in (*weights, *places, widths)]
    x, y = ((*frames, bins), "uint32"), ((*frames, channels), "uint64")
    return network("SignalFilterBank", [x], [y], constants, {"num_channels": channels})


def _root(draw: Draw, frames: tuple[int, ...]) -> bytes:
    shape = (*frames, draw.integer(1, 60))
    return network("SignalFilterBankSquareRoot", [(shape, "uint64"), (frames, "int32")], [(shape, "uint32")])


def _subtraction(draw: Draw, frames: tuple[int, ...]) -> bytes:
    names = ("alternate_one_minus_smoothing", "alternate_smoothing", "min_signal_remaining", "one_minus_smoothing")
    most = draw.choose((1 << 14) - 1, (1 << 31) - 1)
    x = ((*frames, draw.integer(1, 60)), "uint32")
    options: dict[str, Any] = {name: draw.integer(0, most) for name in (*names, "smoothing")}
    options |= {"smoothing_bits": draw.choose(10, draw.integer(0, 31)), "clamping": bool(draw.integer(0, 1))}
    options |= {"spectral_subtraction_bits": draw.choose(14, draw.integer(0, 63)), "num_channels": x[0][-1]}
    return network("SignalFilterBankSpectralSubtraction", [x], [x, x], (), options)


def _pcan(draw: Draw, frames: tuple[int, ...]) -> bytes:
    x = ((*frames, draw.integer(1, 60)), "uint32")
    tables = [draw.choose(gains(0.95, 80.0, 21, 7), draw.array((125,), "int16"))]
    return network("SignalPCAN", [x, x], [x], tables, {"snr_shift": draw.choose(6, draw.integer(0, 63))})


def _log(draw: Draw, frames: tuple[int, ...]) -> bytes:
    scale, bits = draw.choose((64, 3), (draw.integer(0, (1 << 31) - 1), draw.integer(0, 31)))
    shape = (*frames, draw.integer(1, 60))
    options = {"output_scale": scale, "input_correction_bits": bits}
    return network("SignalFilterBankLog", [(shape, "uint32")], [(shape, "int16")], (), options)


def _framer(draw: Draw, streams: tuple[int, ...]) -> bytes:
    step, frames, prefill = draw.integer(1, 200), draw.integer(1, 3), bool(draw.integer(0, 1))
    size = draw.integer(step if prefill else 1, 500)
    outputs: list[Shaped] = [((*streams, frames, size), "int16"), ((), "bool")]
    options = {"frame_size": size, "frame_step": step, "prefill": prefill}
    return network("SignalFramer", [((*streams, frames * step), "int16")], outputs, (), options)


def _overlap_add(draw: Draw, streams: tuple[int, ...]) -> bytes:
    size, frames, dtype = draw.integer(1, 300), draw.integer(1, 3), draw.choose("int16", "float32")
    step = draw.integer(1, size)
    x, y = ((*streams, frames, size), dtype), ((*streams, frames * step), dtype)
    return network("SignalOverlapAdd", [x], [y], (), {"T": TYPES[dtype], "frame_step": step})


def _delay(draw: Draw, streams: tuple[int, ...]) -> bytes:
    x = ((*streams, draw.integer(1, 200)), "int16")
    return network("SignalDelay", [x], [x], (), {"delay_length": draw.choose(0, draw.integer(1, 400))})


def _stacker(draw: Draw, rows: tuple[int, ...]) -> bytes:
    channels, left, right = draw.integer(1, 50), draw.integer(0, 3), draw.integer(0, 3)
    stack = left + right + 1
    options = {"num_channels": channels, "stacker_left_context": left, "stacker_right_context": right}
    outputs: list[Shaped] = [((*rows, channels * stack), "int16"), (rows, "bool")]
    x = ((*rows, channels), "int16")
    return network("SignalStacker", [x], outputs, (), {**options, "stacker_step": draw.integer(1, stack)})


BUILDERS: dict[str, Callable[[Draw, tuple[int, ...]], bytes]] = {
    "SignalDelay": _delay,
    "SignalEnergy": _energy,
    "SignalFftAutoScale": _auto_scale,
    "SignalFilterBank": _bank,
    "SignalFilterBankLog": _log,
    "SignalFilterBankSpectralSubtraction": _subtraction,
    "SignalFilterBankSquareRoot": _root,
    "SignalFramer": _framer,
    "SignalIrfft": _irfft,
    "SignalOverlapAdd": _overlap_add,
    "SignalPCAN": _pcan,
    "SignalRfft": _rfft,
    "SignalStacker": _stacker,
    "SignalWindow": _window,
}


def drawn_networks(code: str, count: int) -> Iterator[tuple[bytes, list[tuple[np.ndarray, ...]]]]:
    """Files of the operator with drawn shapes and options, each with inputs of its runs: every signal once."""
    for number in range(count):
        draw = Draw(number, "int16")
        data = BUILDERS[code](draw, draw.choose((), (1,), (3,)))
        tensors = read(data, code)
        columns = []
        for index in tensors.inputs:
            tensor = tensors.tensors[index]
            if tensor.dtype == "int32" and code == "SignalFilterBankSquareRoot":
                columns.append([draw.rng.integers(0, 16, tensor.shape).astype(np.int32) for _ in range(30)])
            else:
                columns.append(signals(draw, tensor.shape, tensor.dtype))
        first, *others = columns
        yield data, [(x, *(draw.choose(*column) for column in others)) for x in first]


def assert_equal(data: bytes, reference: Reference, runs: Iterable[Sequence[np.ndarray]]) -> Sequence[np.ndarray]:
    """Compare every output of every run with the reference; return those of the last run."""
    graph, states = integer_graph(data), None
    for number, arrays in enumerate(runs):
        values, expected = run_graph(graph, arrays, states=states), reference.run(arrays)
        states = {name: values[name] for name, tensor in graph.tensors.items() if tensor.state}
        for name, array in zip(graph.outputs, expected, strict=True):
            np.testing.assert_array_equal(values[name], array, f"{name} of run {number}")
    return expected


@needs("tflite_micro", "audio")
@pytest.mark.parametrize("code", CODES)
def test_layers_equal_tflm(code: str) -> None:
    """In every output of every run, and again after a reset."""
    for data, inputs in drawn_networks(code, 12):
        reference = reference_of(data)
        assert "TFLM 0." in reference.described
        for part in (inputs[: len(inputs) // 2], inputs[len(inputs) // 2 :]):
            reference.reset()
            assert_equal(data, reference, part)


SHAPES = {"irfft": [66], "overlap_add": [2, 48], "framer": [96]}


@needs("tflite_micro", "audio")
@pytest.mark.parametrize("code", CODES)
def test_each_is_a_model_of_its_own(code: str) -> None:
    """With random inputs, which reach many of its values."""
    kind = OPERATORS[f"CUSTOM:{code}"].kind
    shape = SHAPES.get(kind.removeprefix("signal_"), [64])
    data = build(OpModel.model_validate({"op": kind, "shape": shape, "batch": 2}))
    reference = reference_of(data)
    runs = [random_inputs(reference.info, seed) for seed in range(3)]
    last = assert_equal(data, reference, [[x & 15 if x.dtype == np.int32 else x for x in run] for run in runs])
    assert len(np.unique(last[0])) > 20


def test_every_signal_operator_is_known_to_planning() -> None:
    declared = {name.removeprefix("CUSTOM:") for name, operator in OPERATORS.items() if operator.litert.tflm}
    assert declared == set(CODES) == set(BUILDERS)


@needs("tflite_micro", "audio")
def test_the_partitions_of_a_front_end_equal_tflm_running_all_of_it(tmp_path: Path) -> None:
    from tflite_micro import runtime

    frontend = build_frontend(MicroFrontend(conversion="tflm"), Features(1, "int8", 0.102, -128))
    data, draw = _with_tflms_scale(frontend), Draw(1)
    reference, whole = reference_of(data), runtime.Interpreter.from_bytes(data, arena_size=1 << 18)
    assert isinstance(reference, PartitionedReference)
    for samples in signals(draw, (1, 160), "int16") * 2:
        whole.set_input(samples, 0)
        whole.invoke()
        np.testing.assert_array_equal(reference.run([samples])[0], whole.get_output(0))
    inputs = {"random": 2, "seed": 1, "extremes": True}
    result = verified(data, "host", tmp_path, {"simulate": {"inputs": inputs}})
    assert (result["mismatches"], result["layers_checked"]) == (0, 14)
    assert "TFLM 0." in result["reference"] and result["reference"].endswith("for 10 of 19 operators")


def _with_tflms_scale(data: bytes) -> bytes:
    """The file with TFLM's auto scale, which TFLM's interpreter has, in the place of microfrontend's."""
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(data, 0))
    for code in model.operatorCodes:
        if code.customCode == b"FirmlineFftAutoScale":
            code.customCode = "SignalFftAutoScale"
    builder = flatbuffers.Builder(len(data))
    builder.Finish(model.Pack(builder), file_identifier=b"TFL3")
    return bytes(builder.Output())


def _of(code: str, x: Shaped, y: Shaped, constants: Sequence[np.ndarray] = (), **options: Any) -> bytes:
    return network(f"Signal{code}", [x], [y], constants, options)


X, ONES = ((1, 8), "int16"), np.ones(8, np.int16)
BANK = [
    np.ones(8, np.int16),
    np.ones(8, np.int16),
    *(np.array(places, np.int16) for places in ([0, 6], [0, 4], [4, 4])),
]
STACK = {"num_channels": 8, "stacker_left_context": 1, "stacker_right_context": 0}
BAD: dict[str, tuple[bytes, str]] = {
    "an option's value": (
        _of("Window", X, X, [ONES], shift=40),
        "the option shift = 40; it must be an integer from 0 to",
    ),
    "a real option": (_of("Window", X, X, [ONES], shift=1.5), "the option shift = 1.5; it must be an integer"),
    "an unknown option": (_of("Window", X, X, [ONES], shift=1, gain=2), "the options gain, shift; TFLM's are shift"),
    "no options": (_of("Window", X, X, [ONES]), "has the options none; TFLM's are shift"),
    "another window": (_of("Window", X, X, [ONES[1:]], shift=1), "reads 'constant0' of 7 values; it must have 8"),
    "a computed window": (
        network("SignalWindow", [X, ((8,), "int16")], [X], (), {"shift": 1}),
        "reads 'x1', a computed tensor; it must be a constant",
    ),
    "a type": (_of("Window", ((1, 8), "int8"), X, [ONES], shift=1), "has the type int8 in 'x0'; supported: int16"),
    "an output's type": (
        _of("Energy", X, ((1, 4), "int32"), start_index=0, end_index=4),
        "has the type int32 in 'y0'; supported: uint32",
    ),
    "an output's shape": (
        _of("Energy", X, ((1, 5), "uint32"), start_index=0, end_index=4),
        r"gives uint32\[1, 4\], but the file declares uint32\[1, 5\] in 'y0'",
    ),
    "a bin": (_of("Energy", X, ((1, 4), "uint32"), start_index=0, end_index=5), "end_index = 5; .* from 0 to 4"),
    "a prime": (
        _of("Rfft", X, ((1, 16), "int16"), T=7, fft_length=14),
        "fft_length = 14; half of it must be a product",
    ),
    "an odd length": (_of("Rfft", X, ((1, 11), "int16"), T=7, fft_length=9), "fft_length = 9; it must be even"),
    "a short FFT": (
        _of("Rfft", X, ((1, 6), "int16"), T=7, fft_length=4),
        "frames of 8 samples .*more than its fft_length 4",
    ),
    "another T": (_of("Rfft", X, ((1, 10), "int16"), T=2, fft_length=8), "option T = 2, but reads int16"),
    "a spectrum": (_of("Irfft", X, ((1, 8), "int16"), T=7, fft_length=8), "spectra of 8 numbers .*it takes 10"),
    "a section": (
        _of("FilterBank", ((8,), "uint32"), ((1,), "uint64"), BANK, num_channels=1),
        "reads bins 6 to 9 for section 1; there are 8",
    ),
    "channels": (
        _of("FilterBank", ((8,), "uint32"), ((3,), "uint64"), BANK, num_channels=3),
        "reads 'constant2' of 2 values; it must have 4",
    ),
    "bits": (
        network("SignalFilterBankSquareRoot", [((2, 8), "uint64"), ((), "int32")], [((2, 8), "uint32")]),
        r"reads 'x1', int32\[\]; it must be int32\[2\]",
    ),
    "a short table": (
        network("SignalPCAN", [((8,), "uint32")] * 2, [((8,), "uint32")], [ONES], {"snr_shift": 6}),
        "reads 'constant0' of 8 values; it must have at least 125",
    ),
    "steps": (
        network(
            "SignalFramer",
            [X],
            [((1, 2, 4), "int16"), ((), "bool")],
            (),
            {"frame_size": 4, "frame_step": 3, "prefill": 1},
        ),
        "reads 8 samples of 'x0', not a multiple of its frame_step 3",
    ),
    "an overlap": (_of("OverlapAdd", X, ((9,), "int16"), T=7, frame_step=9), "frame_step = 9, more than the 8 samples"),
    "a stack": (
        network("SignalStacker", [X], [((1, 16), "int16"), ((1,), "bool")], (), {**STACK, "stacker_step": 3}),
        "stacker_step = 3, more than the 2 rows of a stack",
    ),
}


@pytest.mark.parametrize(("data", "message"), BAD.values(), ids=list(BAD))
def test_a_wrong_operator_is_named_with_its_value(data: bytes, message: str) -> None:
    info = read(data, "model")
    with pytest.raises(OperatorError, match=message) as error:
        check_operator(info.operators[0], info)
    assert str(error.value).startswith("operator 0 (CUSTOM:Signal") and len(str(error.value).splitlines()) <= 5


def test_options_that_are_no_flexbuffer_are_refused() -> None:
    info = read(BAD["an option's value"][0], "model")
    with pytest.raises(OperatorError, match="has custom options of 1 bytes that are not a flexbuffer"):
        check_operator(replace(info.operators[0], custom=b"?"), info)
