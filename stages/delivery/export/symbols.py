"""Global names that C and assembly files define."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stages.backends.targets.runtime import runtime_for
from stages.backends.toolchain.compiler import compile_sources
from stages.compile.firmware import model_sources
from stages.compile.symbols import Symbols
from stages.support.system.scratch import temporary_folder

if TYPE_CHECKING:
    from stages.backends.targets.spec import Target


# Names with two leading underscores are the compiler's.
_IDENTIFIER = re.compile(r"(?!__)[A-Za-z_]\w*")


def defined(src: Path, listed: Mapping[str, Any], target: Target) -> set[str]:
    """Compile the sources in `src` for the target and return their global names. Raises StageError.

    listed  files as in `sources` of model.json
    """
    with temporary_folder("export") as folder:
        flags = tuple(flag for flag in target.compiler.flags if "-fsanitize" not in flag)
        plain = target.model_copy(update={"compiler": target.compiler.model_copy(update={"flags": flags})})
        options = ("-std=c11", "-O1")
        sources = model_sources(src, listed)
        objects = compile_sources(plain, runtime_for(target), sources, folder, flags=options, include=(src,))
        return {name for path in objects for name in Symbols.of(path).defined if _IDENTIFIER.fullmatch(name)}
