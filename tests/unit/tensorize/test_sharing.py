"""Which tensors become parts of larger ones, and which are copied as before."""

from collections.abc import Sequence

from stages.ir.graph import Activation, Concatenation, Graph, Layer, Layout, Move, Tensor
from stages.lower.arena import liveness, plan
from stages.tensorize.sharing import renames_only, share

RELU, ROWS = Activation(function="relu"), Concatenation(axis=1)
Step = tuple[object, str, str]  # operator, inputs, output


def shared(one: Graph, scratch: dict[int, dict[str, int]] | None = None, overlaid: Sequence[int] = ()) -> Graph:
    return share(one, lambda: scratch or {}, frozenset(overlaid))


def graph(steps: Sequence[Step], shapes: dict[str, tuple[int, ...]], inputs: str, outputs: str) -> Graph:
    """A graph of int8 tensors; names are separated by spaces."""
    tensors = {name: Tensor(name=name, shape=shape, dtype="int8") for name, shape in shapes.items()}
    layers = [
        Layer(index=i, name=out, op=op, inputs=tuple(ins.split()), outputs=(out,))  # type: ignore[arg-type]
        for i, (op, ins, out) in enumerate(steps)
    ]
    return Graph(tensors, layers, inputs.split(), outputs.split())


def cut(begin: int, size: int, kind: str = "slice") -> Move:
    return Move(kind=kind, params={"begin": [0, begin, 0], "stride": [1, 1, 1], "size": [1, size, 8]})  # type: ignore[arg-type]


def placed(found: Graph) -> dict[str, tuple[str, int]]:
    return {name: (t.alias_of, t.offset) for name, t in found.tensors.items() if t.alias_of is not None}


HEADS = {"x": (1, 6, 8), "a": (1, 4, 8), "b": (1, 2, 8), "y": (1, 6, 8)}


def test_tensors_are_written_where_they_are_joined() -> None:
    found = shared(graph([(RELU, "x", "a"), (RELU, "x", "b"), (ROWS, "a b", "y")], HEADS, "x", "y"))
    assert placed(found) == {"a": ("y", 0), "b": ("y", 32)}
    lives = liveness(found)
    assert {name: (lives.home[name], lives.offset[name]) for name in "aby"} == {
        "a": ("y", 0),
        "b": ("y", 32),
        "y": ("y", 0),
    }
    assert {b.name: (b.first, b.last, b.bytes) for b in lives.buffers} == {"x": (0, 1, 48), "y": (0, 2, 48)}
    assert renames_only(found, found.layers[2])
    assert not renames_only(found, found.layers[0])


def test_slices_are_read_where_they_lie() -> None:
    shapes = {"x": (1, 6, 8), "a": (1, 4, 8), "b": (1, 2, 8), "y": (1, 2, 8)}
    steps: list[Step] = [(cut(0, 4), "x", "a"), (cut(4, 2, "split"), "x", "b"), (RELU, "b", "y")]
    found = shared(graph(steps, shapes, "x", "a y"))
    assert placed(found) == {"a": ("x", 0), "b": ("x", 32)}
    assert [renames_only(found, layer) for layer in found.layers] == [True, True, False]


def test_what_is_in_less_than_bytes_is_copied() -> None:
    """Element 64 of a tensor of 4 bits is byte 32."""
    shapes = {"x": (1, 1, 1, 8), "whole": (4, 1, 1, 64), "a": (1, 1, 1, 64), "y": (1, 1, 1, 64)}
    cutting = Move(kind="slice", params={"begin": [1, 0, 0, 0], "stride": [1] * 4, "size": [1, 1, 1, 64]})
    one = graph([(RELU, "x", "whole"), (cutting, "whole", "a"), (RELU, "a", "y")], shapes, "x", "y whole")
    assert placed(shared(one)) == {"a": ("whole", 64)}
    for name in ("whole", "a"):
        one.tensors[name] = one.tensors[name].model_copy(update={"layout": Layout("NHWC:4")})
    assert placed(shared(one)) == {}


def test_memory_is_not_shared_where_the_arena_would_grow() -> None:
    """A small slice that is needed long after a large tensor would keep all of it alive."""
    shapes = {"x": (1, 2, 8), "big": (1, 64, 8), "a": (1, 2, 8), "c": (1, 64, 8), "d": (1, 2, 8), "y": (1, 4, 8)}
    steps: list[Step] = [
        (RELU, "x", "big"),
        (cut(0, 2), "big", "a"),
        (RELU, "a", "c"),
        (RELU, "c", "d"),
        (ROWS, "d a", "y"),
    ]
    found = shared(graph(steps, shapes, "x", "y"))
    assert found.tensors["a"].alias_of != "big"
    assert plan(liveness(found).buffers).total == 64 * 8 + 2 * 8 * 2


def test_what_is_no_single_run_of_aligned_bytes_is_copied() -> None:
    columns = graph([(RELU, "x", "a"), (Concatenation(axis=2), "a a2", "y")], {}, "x", "y")
    for name, width in (("x", 8), ("a", 8), ("a2", 8), ("y", 16)):
        columns.tensors[name] = Tensor(name=name, shape=(1, 6, width), dtype="int8")
    columns.layers.insert(1, Layer(index=1, name="a2", op=RELU, inputs=("x",), outputs=("a2",)))
    columns.layers[2] = columns.layers[2].model_copy(update={"index": 2})
    assert placed(shared(columns)) == {}
    odd = {"x": (1, 2, 8), "a": (1, 3, 8), "b": (1, 3, 8), "y": (1, 6, 8)}
    steps: list[Step] = [(RELU, "x", "a"), (RELU, "x", "b"), (ROWS, "a b", "y")]
    found = shared(graph(steps, odd, "x", "y"))
    assert placed(found) == {"a": ("y", 0)}  # b would begin at byte 24
    assert not renames_only(found, found.layers[2])


def test_inputs_constants_and_tensors_joined_before_are_copied() -> None:
    shapes = {"x": (1, 2, 8), "k": (1, 2, 8), "a": (1, 2, 8), "y": (1, 8, 8), "z": (1, 4, 8)}
    made = graph([(RELU, "x", "a"), (ROWS, "a x k a", "y"), (ROWS, "a a", "z")], shapes, "x", "y z")
    made.tensors["k"] = made.tensors["k"].model_copy(update={"constant": True})
    found = shared(made)
    assert placed(found) == {"a": ("y", 0)}
    assert [renames_only(found, layer) for layer in found.layers] == [False, False, False]
