"""Shapes that broadcast, for all operators of two inputs: what repeats along which axes, in rows of any length."""

Shape = tuple[int, ...]

# The first has all of the output's elements.
ONE_SIDE: tuple[tuple[Shape, Shape], ...] = (
    *(((9, 9, 4), (4,)), ((5, 5, 55), (1, 1, 55)), ((7, 21, 6), (6,)), ((4, 6, 8), (8,)), ((2, 2, 333), (333,))),
    *(((5, 5, 4), (5, 5, 1)), ((3, 36, 12), (3, 36, 1)), ((9, 31, 2), (9, 31, 1)), ((11, 13, 3), (11, 13, 1))),
    *(((201, 5), (201, 1)), ((67, 9), (67, 1)), ((40, 16), (40, 1)), ((9, 66), (9, 1)), ((3, 514), (3, 1))),
    *(((6, 7, 10), (7, 1)), ((6, 7, 10), (7, 10)), ((6, 7, 10), (6, 1, 10)), ((5, 2, 44), (5, 1, 44))),
    *(((3, 20, 10), (3, 1, 10)), ((9, 40, 3), (9, 1, 3)), ((7, 2, 8), (7, 1, 8)), ((6, 30, 3), (30, 1))),
    *(((2, 8, 5, 3), (2, 1, 5, 1)), ((2, 16, 5, 3), (2, 1, 1, 3)), ((3, 5, 3, 7), (3, 1, 3, 7))),
)
BOTH_SIDES: tuple[tuple[Shape, Shape], ...] = (
    *(((1, 7, 10), (6, 1, 1)), ((10,), (6, 7, 1)), ((6, 1, 3), (1, 90, 3)), ((3, 1, 5, 1), (1, 4, 1, 7))),
    *(((5, 1, 6), (1, 9, 1)), ((1, 33, 1), (20, 1, 5))),
)


def pairs() -> tuple[tuple[Shape, Shape], ...]:
    """Either input is the one that broadcasts, or both are."""
    swapped = tuple((second, first) for first, second in ONE_SIDE[::3])
    return (*ONE_SIDE, *swapped, *BOTH_SIDES)
