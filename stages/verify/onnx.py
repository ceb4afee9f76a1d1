"""Check networks from ONNX against ONNX Runtime: end to end, if necessary by layer."""

from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from stages.base import StageError
from stages.ir.reference.onnx_runtime import OnnxReference
from stages.ir.reference.partitions import PartitionedReference
from stages.verify.checker import LiteRT, check, with_rest_of_sequences
from stages.verify.float_ties import rounds_floats
from stages.verify.onnx_layers import OnnxLayers, counted
from stages.verify.records import Records
from stages.verify.whole_window import WholeWindow

DESCRIPTION = "tensors.json"


class ChainLayers(PartitionedReference):
    """The reference of a chain, whose networks from ONNX are `OnnxLayers`."""

    def __init__(self, theirs: PartitionedReference, imported: Path, quantized: Path) -> None:
        self.layers: list[OnnxLayers] = []
        for partition, network in theirs.networks:
            assert isinstance(network, OnnxReference)
            operators = {operator.index for operator in partition.operators}
            self.layers.append(OnnxLayers(quantized, imported / DESCRIPTION, network, operators))
        partitions = [partition for partition, _ in theirs.networks]
        super().__init__(theirs.model, name=theirs.name, networks=list(zip(partitions, self.layers, strict=True)))


def check_onnx(
    load: Callable[[], LiteRT],
    imported: Path,
    quantized: Path,
    records: Records,
    tolerance: float,
    begins: Callable[[int], None],
    without: Collection[int] = (),
    window: WholeWindow | None = None,
) -> dict[str, Any]:
    """Check as `verify.checker.check`, and add `near_ties` (None without float sums).

    load  returns a new reference of the network, or of a chain with networks from ONNX

    If the outputs differ because near ties round differently, the firmware is compared with the integer graph, bit
    for bit. `distance` is then the distance from ONNX Runtime. Any other difference raises StageError.
    """
    theirs, other = load(), load()
    layered: OnnxLayers | ChainLayers
    if isinstance(other, OnnxReference):
        layered = OnnxLayers(quantized, imported / DESCRIPTION, other)
        networks = [layered]
    else:
        assert isinstance(other, PartitionedReference)
        layered = ChainLayers(other, imported, quantized)
        networks = layered.layers
    is_needed = any(layers.is_needed for layers in networks)
    rounds = any(rounds_floats(operator, layers.info) for layers in networks for operator in layers.info.operators)
    if not is_needed and not rounds:
        return {**check(theirs, records, tolerance, begins, without, window=window), "near_ties": None}
    try:
        result = check(theirs, records, tolerance, begins, without, window=window)
    except StageError:
        result = check(layered, records, tolerance, begins, without, litert=theirs, networks=networks)
        if not any(ties.differing for layers in networks for ties in layers.ties.values()):
            raise
    else:
        skipped = with_rest_of_sequences(records, without)
        for index in sorted({*range(records.inputs.count)} - skipped) if is_needed else ():
            if records.is_first(index):
                layered.reset()
            layered.run(records.inputs_of(index))
    return {**result, "near_ties": counted(networks)}
