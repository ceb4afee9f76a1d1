"""TFLite files of several graphs, and with composites, as other exporters write them."""

from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from tests.support.malformed import Alteration, altered


def together(*files: bytes, signatures: dict[str, int] | None = None) -> bytes:
    """One file of the graphs of several, and its signatures by name with the number of their graph."""

    def join(model: Any, graph: Any) -> None:
        for data in files[1:]:
            other = schema.ModelT.InitFromPackedBuf(data)
            for added in other.subgraphs:
                for tensor in added.tensors:
                    tensor.buffer += len(model.buffers)
                for operator in added.operators:
                    operator.opcodeIndex += len(model.operatorCodes)
            model.subgraphs += other.subgraphs
            model.buffers += other.buffers
            model.operatorCodes += other.operatorCodes
        model.signatureDefs = [
            schema.SignatureDefT(inputs=[], outputs=[], signatureKey=name, subgraphIndex=number)
            for name, number in (signatures or {}).items()
        ]

    return altered(files[0], join)


def composite(name: str, subgraph: int, at: tuple[int, int]) -> Alteration:
    """The operator `at` (graph, number) becomes a composite that the graph of that number stands for."""

    def change(model: Any, graph: Any) -> None:
        code, operator = schema.BuiltinOperator.STABLEHLO_COMPOSITE, model.subgraphs[at[0]].operators[at[1]]
        model.operatorCodes.append(schema.OperatorCodeT(builtinCode=code, deprecatedBuiltinCode=127, version=1))
        operator.opcodeIndex = len(model.operatorCodes) - 1
        operator.builtinOptions, operator.builtinOptionsType = None, 0
        operator.builtinOptions2Type = schema.BuiltinOptions2.StableHLOCompositeOptions
        operator.builtinOptions2 = schema.StableHLOCompositeOptionsT(
            name=name, decompositionSubgraphIndex=subgraph, compositeAttributes=np.zeros(0, np.uint8)
        )

    return change
