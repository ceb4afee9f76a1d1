"""Figures on pages of docs/ that runs give and docs/bench.json has not: `python -m tests.pages` writes them."""
