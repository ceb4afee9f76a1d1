"""Apply the rules: at most a line for each costly layer, and one each for RAM and ROM."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from stages.report.advice.facts import Advice, Facts
from stages.report.advice.memory_rules import RAM_RULES, ROM_RULES
from stages.report.advice.region_rules import slow_memory
from stages.report.advice.time_rules import LAYER_RULES, LEAST, NETWORK_RULES
from stages.support.messages import escape

_LAYERS = 3  # expensive layers that get a line
_FEW = 3  # lines of the terminal


def advise(facts: Facts) -> list[dict[str, Any]]:
    """Return `advice` of report.json: about time, then RAM, then ROM.

    A command about time is listed once, for the first layer that needs it.
    """
    lines = list(_time(facts))
    commands = [line.command for line in lines]
    first = [line for number, line in enumerate(lines) if not line.command or line.command not in commands[:number]]
    memory = (_first(facts, rules) for rules in (RAM_RULES, ROM_RULES))
    return [line.as_dict() for line in (*first, *filter(None, memory))]


def few(advice: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return at most three entries: one about time, RAM and ROM each, then more about time."""
    about = {entry["about"]: entry for entry in reversed(advice)}
    chosen = [*about.values(), *(entry for entry in advice if entry not in about.values())][:_FEW]
    return [entry for entry in advice if entry in chosen]


def advice_line(entry: Mapping[str, Any]) -> str:
    """Return the sentence, and what the change saves: `…. Up to 1,234 bytes less.`."""
    saves = entry["saves"]
    saved = f" Up to {saves['amount']:,} {saves['unit']} less." if saves else ""
    return f"{escape.line(entry['what'])}.{saved}"


def _time(facts: Facts) -> Iterator[Advice]:
    for network_rule in (*NETWORK_RULES, slow_memory):
        if advice := network_rule(facts):
            yield advice
    for index in facts.expensive(_LAYERS):
        if facts.total and facts.share(index) < LEAST:
            continue
        if advice := next(filter(None, (rule(facts, index) for rule in LAYER_RULES)), None):
            yield advice


def _first(facts: Facts, rules: Sequence[Any]) -> Advice | None:
    return next(filter(None, (rule(facts) for rule in rules)), None)
