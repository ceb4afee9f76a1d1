"""Declarations of the operators of TFLite's schema, for all stages.

    stages.ir.operators.table.OPERATORS["PRELU"]     its declaration (stages.ir.operators.declaration.Operator)
    stages.ir.operators.table.layers()               the operators of the integer graph
    (stages.ir.layers.LayerOp)

A module holds one operator or several similar ones. `OPERATORS` declares the forms that a file may contain, and
subclasses of `LayerOp` define the layers of the integer graph, with their arithmetic. Modules in this folder are loaded
by themselves. They import numpy and tvm only inside functions, to stay light.
"""
