"""The tables of the checks cover what can be imported, and say the same as LiteRT's own models."""

from __future__ import annotations

import numpy as np
import pytest

from stages.import_model.checks.operation import Operation
from stages.import_model.checks.shapes import infer, known
from stages.import_model.checks.shapes.elementwise import broadcast
from stages.import_model.checks.signatures import SIGNATURES
from stages.import_model.operators import FLOAT
from stages.models.operator_options import defaults
from stages.models.tflite_reader import read
from tests.support.shared_models import shared_models


def test_every_operator_has_a_signature_and_a_rule_for_its_shape() -> None:
    assert set(SIGNATURES) == FLOAT == known()


def test_every_table_of_options_that_is_named_is_read() -> None:
    for op, signature in SIGNATURES.items():
        if signature.table:
            assert defaults(signature.table).fields, op


@pytest.mark.parametrize(
    ("left", "right"),
    [((2, 3), (3,)), ((2, 1), (1, 4)), ((), (5,)), ((2, 3), (2,)), ((4,), (1, 4, 1)), ((0, 2), (1, 2))],
)
def test_broadcast_is_that_of_numpy(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    try:
        wanted = np.broadcast_shapes(left, right)
    except ValueError:
        wanted = None
    assert broadcast(left, right) == wanted


def test_shapes_of_real_models_are_those_of_their_files() -> None:
    operators = 0
    for path in shared_models("**/*.tflite"):
        info = read(path.read_bytes(), path.name)
        for operator in info.operators:
            operation = Operation.of(operator, info)
            assert infer(operation) == [tensor.shape for tensor in operation.outputs], (path.name, operator.index)
            operators += 1
    assert operators > 100
