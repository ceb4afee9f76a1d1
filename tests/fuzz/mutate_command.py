"""Command lines: verbs, options and values that belong together, or nearly."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from tests.fuzz import hostile

VERBS = (
    "run", "run", "run", "run", "list", "explain", "explain", "gc", "matrix-json", "schema", "bench",
    "help", "runn", "lst", "explian", "", "clean", "forget", "ignore", "info", "reset-dep", "dumpdb", "tabcompletion",
    "strace",
)  # fmt: skip
OPTIONS = (
    "-n", "-a", "-v", "-f", "-o", "-r", "-k", "-c", "-s", "-d", "-P", "-h", "-x", "-p", "-q", "--all", "--check",
    "--days", "--size", "--only", "--targets", "--db-file", "--file", "--dir", "--help", "--version", "--continue",
    "--single", "--pdb", "--update", "--seek-file", "--output-file", "--reporter", "--process", "--verbosity",
    "--backend", "--auto-delayed-regex", "--private", "--status", "--template", "--always", "--nope",
)  # fmt: skip
RECIPES = (
    "tiny", "tiny", "tiny", "tiny:import", "tiny:emit", "tiny:publish", "tiny:nope", "tinny", "pair", "pair:*",
    "pair:relu", "pair:relu:import", "pair:x", "base", "*", "t*", "tiny.yaml", "recipes/tiny.yaml",
    "/nonexistent/x.yaml", "layers/x",
)  # fmt: skip
VALUES = (
    "1",
    "2",
    "0",
    "-1",
    "3.5",
    "1e9",
    "99999999999999999999",
    "9" * 5000,
    "2G",
    "-2G",
    "10x",
    "host",
    "nope",
    "/dev/null",
)
NAMES = ("recipe", "target", "model", "set", "recpe", "targets", "x", "")
MODELS = (
    "zoo:nope",
    "zoo:",
    "nope.tflite",
    "recipes",
    "recipes/tiny.yaml",
    "~nouser/x",
    "https://x/y",
    "/dev/null",
    "zoo:*",
)
SETTINGS = (
    "stages.simulate.inputs.seed=3", "stages.nope=1", "stages.emit.prefix=9", "memory.arena_limit=1", "name=x",
    "stages.compile.optimize=-O9", "stages.0=1", "a.b.c.d=[1", "=1", "x", "stages=", "model.op=relu6", "matrix=1",
    "matrix.target=[host,host]", "stages.simulate.inputs.random=99999999999999999999", "schema=2", "target=host",
)  # fmt: skip
STREAMS = ("read", "read", "read", "read", "full", "closed", "gone")


@dataclass(frozen=True)
class Mutant:
    """The arguments of `doit`, and what becomes of its standard output: read, on a full disk, closed, or gone."""

    arguments: tuple[str, ...]
    stream: str

    @property
    def made(self) -> str:
        """For a person to read."""
        return f"doit {' '.join(map(repr, self.arguments))} (output {self.stream})"


def command_mutant(seed: int, index: int) -> Mutant:
    """Mutant `index` of a seed; the same numbers give the same words."""
    rng = Random(f"commands {seed} {index}")
    words: list[str] = []
    verb = rng.choice(VERBS) if rng.random() < 0.95 else hostile.text(rng)
    for _ in range(rng.choice([0, 1, 1, 2, 2, 3])):
        kind = rng.random()
        if kind < 0.35:
            option = rng.choice(OPTIONS)
            words += [option] if rng.random() < 0.4 else [option, _value(rng)]
            if rng.random() < 0.1:
                words[-2:] = [f"{option}={_value(rng)}"]
        elif kind < 0.65:
            words.append(rng.choice(RECIPES) if rng.random() < 0.9 else hostile.text(rng))
        else:
            words.append(_variable(rng))
    if verb == "bench":
        # Its whole work takes minutes.
        words.append(rng.choice(["--nope", "target=nope", "recipe=nope", "--only=nope", "--targets=nope", "nope"]))
    stream = rng.choice(STREAMS)
    return Mutant(tuple(word.replace("\0", "") for word in ([verb, *words] if verb else words)), stream)


def _value(rng: Random) -> str:
    return rng.choice(VALUES) if rng.random() < 0.7 else hostile.text(rng)


def _variable(rng: Random) -> str:
    name = rng.choice(NAMES)
    known = {"recipe": RECIPES, "model": MODELS, "set": SETTINGS}
    value = rng.choice(known[name]) if name in known and rng.random() < 0.8 else _value(rng)
    return f"{name}={value}"
