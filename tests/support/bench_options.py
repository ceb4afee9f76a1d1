"""Options of `doit bench` as its command gives them."""

from typing import Any

BENCH_OPTIONS: dict[str, Any] = {
    **dict.fromkeys(("only", "targets", "models", "recipe", "peer", "json", "markdown"), ""),
    **dict.fromkeys(("check", "update", "times", "fit"), False),
    "jobs": 1,
}
