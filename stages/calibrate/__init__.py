"""Measuring what kernels cost: `doit calibrate` writes the tables that tensorize chooses by.

Nothing here is part of a recipe's run; a table is (stages.tensorize.costs).
"""
