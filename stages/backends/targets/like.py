"""`like:` in YAML: a core, board or timing model that inherits from another entry.

    cores:
      my-core: {like: cortex-m4, compiler: {flags: ["-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=soft"]}, fpu: false}

Mappings are merged, anything else is replaced, `null` leaves a key out.
"""

from collections.abc import Mapping
from typing import Any

from stages.support.messages.wording import as_yaml, did_you_mean
from stages.support.options.strict_model import mistake

LIKE = "like"
MOST_LIKE = 16  # entries, one like the other
KINDS = {"cores": "core", "boards": "board", "timings": "timing model"}


def written_out(data: Any) -> Any:
    """Return the content with every `like` resolved.

    Values that are not mappings are returned unchanged.
    Raises the error of `mistake` for an unknown name, for a circle, and for a chain of more than MOST_LIKE entries.
    """
    if not isinstance(data, Mapping):
        return data
    return {
        **data,
        **{
            kind: {name: _written_out(kind, name, data[kind]) for name in data[kind]}
            for kind in KINDS
            if isinstance(data.get(kind), Mapping)
        },
    }


def _written_out(kind: str, name: str, entries: Mapping[str, Any]) -> Any:
    chain, names, at = [entries[name]], [name], name
    seen = {name}
    while isinstance(chain[-1], Mapping) and LIKE in chain[-1]:
        where, at = (kind, at, LIKE), chain[-1][LIKE]
        if not isinstance(at, str):
            raise mistake(f"should be the name of a {KINDS[kind]}, is {as_yaml(at)}", *where)
        if len(chain) > MOST_LIKE:
            raise mistake(f"more than {MOST_LIKE} {KINDS[kind]}s in a chain of like:", kind, name, LIKE)
        if at not in entries:
            raise mistake(f"unknown {KINDS[kind]} '{at}'{did_you_mean(at, entries)}", *where)
        if at in seen:
            raise mistake(f"{KINDS[kind]} '{at}' refers to itself", *where)
        seen.add(at)
        chain.append(entries[at])
        names.append(at)
    made = chain.pop()
    for over, called, other in zip(reversed(chain), reversed(names[:-1]), reversed(names[1:]), strict=True):
        _refuse_misspelt(made, over, other, (kind, called))
        made = _merged(made, {key: value for key, value in over.items() if key != LIKE})
    return made


def _refuse_misspelt(base: Any, over: Any, other: str, at: tuple[str, ...]) -> None:
    """Refuse a new entry that looks like a misspelt one: a close name, and common keys missing."""
    if not isinstance(base, Mapping) or not isinstance(over, Mapping):
        return
    beside = {key: value for key, value in base.items() if isinstance(value, Mapping)}
    for key, value in over.items():
        if key in base:
            _refuse_misspelt(base[key], value, other, (*at, key))
        elif isinstance(value, Mapping) and beside:
            lacks = set.intersection(*(set(one) for one in beside.values())) - value.keys()
            guess = did_you_mean(str(key), beside)
            if lacks and guess:
                raise mistake(f"there is no '{key}' in {other}{guess}", *at, key, key=True)


def _merged(base: Any, over: Any) -> Any:
    if not isinstance(base, Mapping) or not isinstance(over, Mapping):
        return over
    merged = {key: _merged(base.get(key), value) for key, value in over.items()}
    return {key: value for key, value in ({**base, **merged}).items() if value is not None}
