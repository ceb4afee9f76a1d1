"""Origin of recipe values: the file, an extended file, the matrix, or the command line."""

from dataclasses import dataclass
from typing import Any

from pipeline.documents.document import Document, YamlPath
from pipeline.documents.overrides import Override, OverridePathError
from pipeline.errors import RecipeError, StageFailed
from stages.base import StageError
from stages.support.messages import escape


@dataclass(frozen=True)
class Sources:
    """Origins of a recipe's values.

    documents: the recipe, then the recipes it extends, nearest first.
    overrides: take precedence over all documents.
    targets: the documents that declare cores and boards.
    """

    documents: tuple[Document, ...]
    overrides: tuple[Override, ...] = ()
    targets: tuple[Document, ...] = ()

    def error(self, message: str, path: YamlPath, *, key: bool = False, hint: str = "") -> RecipeError:
        """Return the error for the value (or key) at `path`, with its override or file position."""
        for override in reversed(self.overrides):
            if path[: len(override.path)] == override.path:
                if override.matrix_path:
                    return self._in_matrix(override, message, path, key, hint)
                return RecipeError(f"{override.display_text}: {escape.line(message)}", hint=hint)
        # The value is from a file, but an override changed a part of it.
        changed = [override.display_text for override in self.overrides if path and override.path[: len(path)] == path]
        hint = "\n".join(line for line in (hint, f"together with {', '.join(changed)}" if changed else "") if line)
        for length in range(len(path), -1, -1):
            for document in self.documents:
                if _contains(document.data, path[:length]):
                    return document.error(message, path[:length], key=key and length == len(path), hint=hint)
        return RecipeError(message, hint=hint)

    def location(self, path: YamlPath) -> str:
        """Return the origin of a value: `recipes/a.yaml:4:8`, or the override as typed."""
        error = self.error("", path)
        if error.line:
            return f"{error.file}:{error.line}:{error.column}"
        return error.file or error.message.rpartition(":")[0]

    def file_location(self, path: YamlPath) -> str:
        """As `location`, but '' for a value of the command line."""
        return self.location(path) if self.error("", path).file else ""

    def stage_failure(self, name: str, error: StageError, kind: str = "") -> StageFailed:
        """Return a stage's error with the position of the value that it refers to.

        name: the stage's name in the recipe; kind: its own kind, if different. The value is in the recipe, or for an
        `at` that starts with `cores` in a file that declares cores. An option that the stage takes from
        the recipe's `memory` is located there.
        """
        if error.at[:2] == ("stages", kind):
            error.at = ("stages", name, *error.at[2:])
        in_rules = ("stages", name, "memory_rules", *error.at[2:]) if error.at[:2] == ("memory", "rules") else error.at
        candidates = (error.at, in_rules, ("memory", *error.at[-1:]), error.at[:-1], error.at[:-2])
        places = Sources(self.targets) if error.at[:1] == ("cores",) else self
        at = next((path for path in candidates if len(path) > 0 and places._written(path)), None)
        if at is None:
            return StageFailed(name, error)
        first, *rest = error.message.splitlines() or [""]
        located = places.error(f"{name}: {first}", at, hint="\n".join([*rest, *error.hint.splitlines()]))
        return StageFailed(name, error, located)

    def override_error(self, error: OverridePathError) -> RecipeError:
        """Return the error for an override with an invalid path; for a matrix value, at its axis."""
        axis_path = error.override.matrix_path
        if not axis_path:
            return error
        return self.error(error.reason, axis_path if axis_path[1] == "include" else axis_path[:2], key=True)

    def _written(self, path: YamlPath) -> bool:
        overridden = any(path[: len(override.path)] == override.path for override in self.overrides)
        return overridden or any(_contains(document.data, path) for document in self.documents)

    def _in_matrix(self, override: Override, message: str, path: YamlPath, key: bool, hint: str) -> RecipeError:
        """Return the error for a matrix value, or for the dotted path of its axis."""
        typed = Sources(self.documents, tuple(item for item in self.overrides if not item.matrix_path))
        if path[: len(override.requested_path)] == override.requested_path:
            return typed.error(message, override.matrix_path + path[len(override.requested_path) :], key=key, hint=hint)
        included = override.matrix_path[1] == "include"
        return typed.error(message, override.matrix_path if included else override.matrix_path[:2], key=True, hint=hint)


def has_part(data: Any, part: str | int) -> bool:
    """Return whether a mapping has the key, or a list the index, `part`."""
    if isinstance(data, list):
        return isinstance(part, int) and part < len(data)
    return isinstance(data, dict) and part in data


def _contains(data: Any, path: YamlPath) -> bool:
    for part in path:
        if not has_part(data, part):
            return False
        data = data[part]
    return True
