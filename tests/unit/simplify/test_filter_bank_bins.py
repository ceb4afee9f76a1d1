"""A filter bank reads the energies where they are computed, if the copies before it only cut and pad."""

import numpy as np
import pytest

from stages.ir.models.tflite_writer import TFLiteWriter
from stages.ir.reference.integer import run_graph
from stages.lower.simplify.simplify import simplified
from tests.support.integer import integer_graph

BINS = 20
WIDTHS = (0, 4, 3, 5)  # of the sections, which are side by side
COPIES = ["cast", "slice", "concatenation", "cast"]


def front_end(frames: tuple[int, ...], begin: int, before: int, first: int, *, fill: int = 0, kept: int = 14) -> bytes:
    """A bank of sections from bin `first` on, behind bins [begin, begin + kept) with `fill` before and behind them."""
    from flatbuffers import flexbuffers

    draw = np.random.default_rng(5)
    writer = TFLiteWriter()
    x = writer.input("x", (*frames, BINS), "uint32")
    signed = writer.tensor("signed", x.shape, "int32")
    writer.operator("CAST", [x], [signed], "CastOptions")
    part = writer.tensor("part", (*frames, kept), "int32")
    bounds = [np.array(values, np.int32) for values in ([*(0 for _ in frames), begin], [*frames, kept])]
    writer.operator(
        "SLICE", [signed, *(writer.constant("bounds", values) for values in bounds)], [part], "SliceOptions"
    )
    behind = BINS - before - kept
    padding = [writer.constant("fill", np.full((*frames, count), fill, np.int32)) for count in (before, behind)]
    padded = writer.tensor("padded", x.shape, "int32")
    writer.operator("CONCATENATION", [padding[0], part, padding[1]], [padded], "ConcatenationOptions", {"axis": -1})
    energies = writer.tensor("energies", x.shape, "uint32")
    writer.operator("CAST", [padded], [energies], "CastOptions")
    starts = np.cumsum(WIDTHS) - WIDTHS
    weights = draw.integers(1, 4096, (2, sum(WIDTHS)))
    weights[:, [0, -1]] = 0  # the bins at both ends are not used
    arrays = (*weights, first + starts, starts, np.array(WIDTHS))
    constants = [writer.constant("bank", array.astype(np.int16)) for array in arrays]
    y = writer.tensor("y", (*frames, len(WIDTHS) - 1), "uint64")
    options = bytes(flexbuffers.Dumps({"num_channels": len(WIDTHS) - 1}))
    writer.operator("CUSTOM:SignalFilterBank", [energies, *constants], [y], custom=options)
    writer.output(y)
    return writer.build()


@pytest.mark.parametrize(
    ("frames", "fields", "copies"),
    [
        ((), {"begin": 3, "before": 3, "first": 4}, []),  # where they were, as in TFLM's audio preprocessor
        ((), {"begin": 3, "before": 3, "first": 2}, []),  # the first bin of a section is padding, of weight 0
        ((), {"begin": 1, "before": 4, "first": 5}, []),  # elsewhere
        ((2,), {"begin": 4, "before": 2, "first": 3}, []),
        ((), {"begin": 3, "before": 3, "first": 2, "fill": 1}, COPIES),  # not padded with zeros
        ((), {"begin": 3, "before": 3, "first": 1}, COPIES),  # a weight of a bin that is zero
        ((), {"begin": 3, "before": 3, "first": 7}, COPIES),  # the same at the other end
    ],
)
def test_energies_are_read_where_they_are(frames: tuple[int, ...], fields: dict[str, int], copies: list[str]) -> None:
    graph = integer_graph(front_end(frames, **fields))
    shorter, _ = simplified(graph)
    assert [layer.kind for layer in shorter.layers] == [*copies, "signal_filter_bank"]
    x = np.random.default_rng(6).integers(0, 1 << 32, (*frames, BINS), np.uint32)
    results = [run_graph(each, [x])[each.outputs[0]] for each in (graph, shorter)]
    assert np.array_equal(*results)
