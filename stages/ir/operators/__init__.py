"""Each operator of TFLite's schema, declared once: what every stage knows of it.

    stages.ir.operators.table.OPERATORS["PRELU"]     its declaration (stages.ir.operators.declaration.Operator)
    stages.ir.operators.table.layers()               the operators of the integer graph
    (stages.ir.operators.layer.LayerOp)

A module here is an operator or a family of them: its `OPERATORS` say what a file may hold, its subclasses of `LayerOp`
what the integer graph does, with the arithmetic. A module that joins the folder is found. All are light: numpy and tvm
are imported by the functions that need them.
"""
