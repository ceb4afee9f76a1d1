"""Lifetimes: inputs from the start, outputs to the end, aliases as one buffer, in-place layers only where safe."""

import pytest

from stages.ir.graph import Activation, Graph, Layer, Tensor
from stages.lower.arena import liveness
from stages.lower.streaming.plan import StreamedGroup
from stages.lower.streaming.row_window import RowWindow
from stages.lower.streaming.schedule import RowLayer, RowTensor


def tensor(name: str, size: int = 64, **more: object) -> Tensor:
    return Tensor(name=name, shape=(1, size), dtype="int8", **more)  # type: ignore[arg-type]


def network(*layers: tuple[str, str], outputs: list[str], aliases: dict[str, str] | None = None) -> Graph:
    """Layers as (inputs, output), names separated by spaces; the first input is the model's."""
    names = dict.fromkeys(name for ins, out in layers for name in (*ins.split(), out))
    tensors = {name: tensor(name, alias_of=(aliases or {}).get(name)) for name in names}
    made = [
        Layer(index=i, name=out, op=Activation(function="relu"), inputs=tuple(ins.split()), outputs=(out,))
        for i, (ins, out) in enumerate(layers)
    ]
    return Graph(tensors, made, [layers[0][0].split()[0]], outputs)


def spans(graph: Graph, **more: object) -> dict[str, tuple[int, int]]:
    return {b.name: (b.first, b.last) for b in liveness(graph, **more).buffers}  # type: ignore[arg-type]


def test_a_tensor_lives_from_its_writer_to_its_last_reader() -> None:
    graph = network(("x", "a"), ("a", "b"), ("b", "c"), ("a c", "y"), outputs=["y"])
    assert spans(graph) == {"x": (0, 0), "a": (0, 3), "b": (1, 2), "c": (2, 3), "y": (3, 3)}


def test_an_early_output_lives_to_the_end_and_a_late_input_from_the_start() -> None:
    graph = network(("x", "early"), ("x", "a"), ("a z", "y"), outputs=["early", "y"])
    graph.inputs.append("z")
    found = spans(graph)
    assert found["early"] == (0, 2)
    assert found["z"] == (0, 2)


def test_aliases_share_one_buffer_with_the_union_of_their_lives() -> None:
    graph = network(("x", "a"), ("a", "flat"), ("flat", "y"), outputs=["y"], aliases={"flat": "a"})
    found = liveness(graph)
    assert found.home["flat"] == "a"
    assert spans(graph) == {"x": (0, 0), "a": (0, 2), "y": (2, 2)}


def test_an_in_place_layer_takes_over_a_dying_input() -> None:
    graph = network(("x", "a"), ("a", "b"), ("b", "y"), outputs=["y"])
    found = liveness(graph, may_overlay=frozenset({1}))
    assert found.in_place == {1: 0}
    assert found.home["b"] == "a"
    assert {b.name: (b.first, b.last) for b in found.buffers} == {"x": (0, 0), "a": (0, 2), "y": (2, 2)}


@pytest.mark.parametrize(
    ("layers", "overlaid", "outputs", "aliases", "sizes"),
    [
        # The input is still needed: it is read later, is an output, or has an alias that is read later.
        ([("x", "a"), ("a", "b"), ("a b", "y")], 1, "y", {}, {}),
        ([("x", "a"), ("a", "y")], 1, "a y", {}, {}),
        ([("x", "a"), ("a", "flat"), ("a", "b"), ("flat b", "y")], 2, "y", {"flat": "a"}, {}),
        # Sizes differ.
        ([("x", "a"), ("a", "y")], 1, "y", {}, {"y": 128}),
        # A part of a larger tensor, which would no longer be whole, or is written over itself.
        ([("x", "a"), ("a", "y")], 1, "y", {"y": "joined"}, {"joined": 128}),
        ([("x", "whole"), ("a", "y")], 1, "y", {"a": "whole"}, {"whole": 128}),
        # The output is alive before.
        ([("x", "a"), ("a", "b"), ("b", "y")], 2, "y", {"y": "a"}, {}),
    ],
)
def test_in_place_is_refused(
    layers: list[tuple[str, str]], overlaid: int, outputs: str, aliases: dict[str, str], sizes: dict[str, int]
) -> None:
    graph = network(*layers, outputs=outputs.split(), aliases=aliases)
    graph.tensors |= {name: tensor(name, size) for name, size in sizes.items()}
    assert liveness(graph, may_overlay=frozenset({overlaid})).in_place == {}


def test_in_place_is_refused_while_a_part_of_the_input_is_broadcast_or_there_are_two_outputs() -> None:
    graph = network(("x", "a"), ("a row", "y"), outputs=["y"])
    assert liveness(graph, may_overlay=frozenset({1})).in_place == {1: 0}
    graph.tensors["row"] = tensor("row", 16, alias_of="a", offset=16)
    assert liveness(graph, may_overlay=frozenset({1})).in_place == {}
    graph = network(("x", "a"), ("a", "y"), outputs=["y"])
    graph.tensors["z"] = tensor("z")
    graph.layers[1] = graph.layers[1].model_copy(update={"outputs": ("y", "z")})
    assert liveness(graph, may_overlay=frozenset({1})).in_place == {}


def test_a_tensor_begins_at_a_multiple_of_16_bytes_below_its_rows_of_padding() -> None:
    """Kernels that write it as a whole image, or write over it, need that."""
    graph = network(("x", "a"), ("a", "b"), ("b", "y"), outputs=["y"])
    tensors = {"b": RowTensor("b", 6, 1, 1, 0, 10, True), "y": RowTensor("y", 6, 0, 0, 0, 10, True)}
    layers = (RowLayer(2, RowWindow(3, 1, 1), ("b",), "y", 6, 1),)
    group = StreamedGroup(first=2, end=3, layers=layers, tensors=tensors, capacity={})
    found = liveness(graph, may_overlay=frozenset({1}), groups=(group,))
    assert found.home["b"] == "a" and found.offset["a"] == found.offset["b"] == 16
    assert next(b.bytes for b in found.buffers if b.name == "a") == 16 + 70
