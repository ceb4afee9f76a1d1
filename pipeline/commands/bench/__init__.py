"""`doit bench`: a suite of networks on targets, their instructions, RAM and ROM, and what they were before.

suite.yaml declares what is measured; docs/bench.json keeps the figures.
docs/reference/figures.md shows all of them, README.md some.
"""
