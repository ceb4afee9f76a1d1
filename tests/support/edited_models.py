"""TFLite files changed in ways that no builder should offer: as other exporters write them, and as none should."""

from collections.abc import Callable
from typing import Any

import numpy as np


def edited(data: bytes, change: Callable[[Any, Any], None]) -> bytes:
    """The file after `change(model, schema)`, where `model` is the schema's `ModelT`."""
    import flatbuffers
    from ai_edge_litert import schema_py_generated as schema

    model = schema.ModelT.InitFromPackedBuf(data)
    change(model, schema)
    builder = flatbuffers.Builder(len(data) + 65536)
    builder.Finish(model.Pack(builder), file_identifier=b"TFL3")
    return bytes(builder.Output())


def tensor_named(model: Any, name: str, subgraph: int = 0) -> Any:
    """The `TensorT` of that name."""
    return next(tensor for tensor in model.subgraphs[subgraph].tensors if tensor.name == name.encode())


def together(*files: bytes, signatures: dict[str, int] | None = None) -> bytes:
    """One file of the graphs of several, and its signatures by name with the number of their graph."""

    def join(model: Any, schema: Any) -> None:
        for data in files[1:]:
            other = schema.ModelT.InitFromPackedBuf(data)
            for graph in other.subgraphs:
                for tensor in graph.tensors:
                    tensor.buffer += len(model.buffers)
                for operator in graph.operators:
                    operator.opcodeIndex += len(model.operatorCodes)
            model.subgraphs += other.subgraphs
            model.buffers += other.buffers
            model.operatorCodes += other.operatorCodes
        model.signatureDefs = [
            schema.SignatureDefT(inputs=[], outputs=[], signatureKey=name, subgraphIndex=number)
            for name, number in (signatures or {}).items()
        ]

    return edited(files[0], join)


def composite(name: str, subgraph: int) -> Callable[[Any, Any, Any], None]:
    """A change of an operator (`OperatorT`): into a composite that the graph of that number stands for."""

    def change(operator: Any, model: Any, schema: Any) -> None:
        code = schema.BuiltinOperator.STABLEHLO_COMPOSITE
        model.operatorCodes.append(schema.OperatorCodeT(builtinCode=code, deprecatedBuiltinCode=127, version=1))
        operator.opcodeIndex = len(model.operatorCodes) - 1
        operator.builtinOptions, operator.builtinOptionsType = None, 0
        operator.builtinOptions2Type = schema.BuiltinOptions2.StableHLOCompositeOptions
        operator.builtinOptions2 = schema.StableHLOCompositeOptionsT(
            name=name, decompositionSubgraphIndex=subgraph, compositeAttributes=np.zeros(0, np.uint8)
        )

    return change
