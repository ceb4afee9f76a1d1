"""`like:` in pipeline.yaml: a core or board that is another one but for what it says.

    cores:
      my-core: {like: cortex-m4, compiler: {flags: ["-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=soft"]}, fpu: false}

Mappings are merged, anything else is replaced, `null` leaves a key out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stages.messages.wording import did_you_mean
from stages.options.strict_model import mistake

LIKE = "like"
KINDS = {"cores": "core", "boards": "board"}


def written_out(data: Any) -> Any:
    """The content of pipeline.yaml without `like`: each entry has all that it is. What is no mapping stays as it is.

    Raises what `mistake` makes, for a name that is unknown or leads back to the entry.
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
    chain, at = [entries[name]], name
    seen = {name}
    while isinstance(chain[-1], Mapping) and LIKE in chain[-1]:
        where, at = (kind, at, LIKE), chain[-1][LIKE]
        if not isinstance(at, str) or at not in entries:
            raise mistake(f"unknown {KINDS[kind]} '{at}'{did_you_mean(str(at), entries)}", *where)
        if at in seen:
            raise mistake(f"{KINDS[kind]} '{at}' is like itself", *where)
        seen.add(at)
        chain.append(entries[at])
    made = chain.pop()
    for over in reversed(chain):
        made = _merged(made, {key: value for key, value in over.items() if key != LIKE})
    return made


def _merged(base: Any, over: Any) -> Any:
    if not isinstance(base, Mapping) or not isinstance(over, Mapping):
        return over
    merged = {key: _merged(base.get(key), value) for key, value in over.items()}
    return {key: value for key, value in ({**base, **merged}).items() if value is not None}
