"""Where each value of a recipe was written: in its file, in one it extends, in its matrix, on the command line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pipeline.documents.document import Document, YamlPath
from pipeline.documents.overrides import Override, OverridePathError
from pipeline.errors import RecipeError, StageFailed
from stages.base import StageError
from stages.messages import escape


@dataclass(frozen=True)
class Sources:
    """Where each value of a recipe was written.

    `documents` has the recipe first, then what it extends, nearest first; an override beats them all.
    """

    documents: tuple[Document, ...]
    overrides: tuple[Override, ...] = ()

    def error(self, message: str, path: YamlPath, *, key: bool = False, hint: str = "") -> RecipeError:
        """A RecipeError at the value (or the key) at `path`: its override, or its file, line and column."""
        for override in reversed(self.overrides):
            if path[: len(override.path)] == override.path:
                if override.matrix_path:
                    return self._in_matrix(override, message, path, key, hint)
                return RecipeError(f"{override.display_text}: {escape.line(message)}", hint=hint)
        # The value is the file's, but an override changed something in it.
        changed = [override.display_text for override in self.overrides if path and override.path[: len(path)] == path]
        hint = "\n".join(line for line in (hint, f"together with {', '.join(changed)}" if changed else "") if line)
        for length in range(len(path), -1, -1):
            for document in self.documents:
                if _contains(document.data, path[:length]):
                    return document.error(message, path[:length], key=key and length == len(path), hint=hint)
        return RecipeError(message, hint=hint)

    def location(self, path: YamlPath) -> str:
        """Where the value at `path` was written, for a message: `recipes/a.yaml:4:8`, or what the user typed."""
        found = self.error("", path)
        if found.line:
            return f"{found.file}:{found.line}:{found.column}"
        return found.file or found.message.rpartition(":")[0]

    def file_location(self, path: YamlPath) -> str:
        """As `place`, '' for a value that is in no file, but typed."""
        return self.location(path) if self.error("", path).file else ""

    def stage_failure(self, name: str, error: StageError, kind: str = "") -> StageFailed:
        """A stage's error, with the file, line and column of what it blames, if that is a value the recipe has.

        `name` is what the recipe calls the stage, `kind` what it calls itself, if that is another. An option that the
        recipe's `memory` sets for the stage is found there.
        """
        if error.at[:2] == ("stages", kind):
            error.at = ("stages", name, *error.at[2:])
        own = ("stages", name, "memory_rules", *error.at[2:]) if error.at[:2] == ("memory", "rules") else error.at
        places = (error.at, own, ("memory", *error.at[-1:]), error.at[:-1], error.at[:-2])
        at = next((place for place in places if len(place) > 0 and self._written(place)), None)
        if at is None:
            return StageFailed(name, error)
        first, *rest = error.message.splitlines() or [""]
        located = self.error(f"{name}: {first}", at, hint="\n".join([*rest, *error.hint.splitlines()]))
        return StageFailed(name, error, located)

    def override_error(self, error: OverridePathError) -> RecipeError:
        """The error for a value whose path leads nowhere, at its axis when the matrix gives it."""
        place = error.override.matrix_path
        if not place:
            return error
        return self.error(error.reason, place if place[1] == "include" else place[:2], key=True)

    def _written(self, path: YamlPath) -> bool:
        overridden = any(path[: len(one.path)] == one.path for one in self.overrides)
        return overridden or any(_contains(document.data, path) for document in self.documents)

    def _in_matrix(self, override: Override, message: str, path: YamlPath, key: bool, hint: str) -> RecipeError:
        """An error in a value of the matrix, or in the dotted path of its axis."""
        given = Sources(self.documents, tuple(one for one in self.overrides if not one.matrix_path))
        if path[: len(override.requested_path)] == override.requested_path:
            return given.error(message, override.matrix_path + path[len(override.requested_path) :], key=key, hint=hint)
        included = override.matrix_path[1] == "include"
        return given.error(message, override.matrix_path if included else override.matrix_path[:2], key=True, hint=hint)


def has_part(data: Any, part: str | int) -> bool:
    if isinstance(data, list):
        return isinstance(part, int) and part < len(data)
    return isinstance(data, dict) and part in data


def _contains(data: Any, path: YamlPath) -> bool:
    for part in path:
        if not has_part(data, part):
            return False
        data = data[part]
    return True
