"""C declarations of CMSIS-NN's arguments (Include/arm_nn_types.h)."""


def dims(name: str, n: int, h: int, w: int, c: int) -> str:
    """Return the declaration of a shape; `n`, `h`, `w`, `c` as the function names them."""
    return f"const cmsis_nn_dims {name} = {{.n = {n}, .h = {h}, .w = {w}, .c = {c}}};"


def context(size: str) -> list[str]:
    """Return C for scratch of `size` bytes (a C expression) that returns if it does not fit."""
    return [
        f"const cmsis_nn_context context = {{scratch, {size}}};",
        "if (context.size > SCRATCH)",
        "    return NO_ROOM;",
    ]


def tile(pair: tuple[int, ...]) -> str:
    """Return the initializer of a pair [height, width]."""
    return f"{{.w = {pair[1]}, .h = {pair[0]}}}"
