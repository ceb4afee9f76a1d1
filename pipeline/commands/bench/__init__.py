"""`doit bench`: measure models on targets and compare with stored figures.

suite.yaml declares the measurements, docs/bench.json stores the figures. docs/reference/figures.md shows all of them,
README.md some.
"""
