"""Iterations of loops over vectors, for cost estimates."""

from stages.backends.targets.spec import Target


def turns(target: Target, elements: int, item_bytes: int = 1) -> int:
    """Return the iterations over `elements` of `item_bytes`, eight registers at a time."""
    return -(-elements * item_bytes // (target.vlen or 128))
