"""Values that code forgets: the ends of number types, numbers that are none, and texts that are more than letters."""

from random import Random

INTEGERS = (
    0, 1, -1, 2, 3, 4, 5, 7, 13, 64, 127, 128, -128, 255, 256, 32767, 65535, 65536, 2**30, 2**31 - 1, -(2**31), 2**31,
    2**32, 2**63 - 1, -(2**63), 2**63, 2**64, 10**30,
)  # fmt: skip
INT32 = tuple(value for value in INTEGERS if -(2**31) <= value < 2**31)
FLOATS = (
    0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 0.004, 1e-45, 1e-38, 1e-10, 1e10, 3e38, -3e38, 65504.0, float("inf"), float("-inf"),
    float("nan"),
)  # fmt: skip

TEXTS = (
    "", " ", "a", ".", "..", "/", "//", "~", "~nouser/x", "$HOME", "*", "/**", "**/*", "[", "{", "{0}", "%s", "%n",
    "a/b/c", "a\\b", "'", '"', "`id`", "$(id)", ";", "a;b", "a,b", "a:b", "a=b", "*/", "/*", "//x", "??/", "#define x",
    "\\u0000", "</td>", "|", "a|b", "[red]", "[/]", "[link=x]y[/link]", ":smile:", "-", "--", "-x", "--help", "@file",
    "null", "true", "1e3", "0x10", "1_000", "NaN", "\x00", "a\x00b", "\x1b[31mred", "\x1b]0;title\x07", "\x1b[2J",
    "a\nb", "a\rb", "a\tb", "\x7f", "\x08\x08\x08", "\u202eabc", "\u2028", "\ufeff", "\u200b", "é", "日本語", "🙂",
    "x" * 5000, "word " * 400, "line\n" * 30, "/dev/null", "/dev/zero", "/proc/self/mem", "/nonexistent/x",
    "../../../../etc/passwd", "recipes", "import", "host", "conv2d",
)  # fmt: skip


def text(rng: Random) -> str:
    """One of TEXTS, or two of them joined."""
    return rng.choice(TEXTS) if rng.random() < 0.8 else rng.choice(TEXTS) + rng.choice(TEXTS)
