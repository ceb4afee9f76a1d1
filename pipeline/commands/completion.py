"""`doit completion SHELL`: a script that completes recipes, targets, stages and options.

The script calls `doit completion words …` for the possible words, which come from the commands themselves.
doit's `tabcompletion` is not used: it does not support `name=value` and fish, and its bash script executes names that
contain `$(…)` (`compgen -W`).
"""

from collections.abc import Iterable, Sequence
from typing import Any

from doit.cmd_base import NamespaceTaskLoader
from doit.plugin import PluginDict

from pipeline.commands.command import Command
from pipeline.commands.dispatch import command_classes
from pipeline.commands.help import is_key, name_of_key
from pipeline.commands.report_errors import report_errors
from pipeline.errors import PipelineError
from pipeline.project import current_project
from stages.support.messages import escape
from stages.support.messages.wording import did_you_mean
from stages.support.options.names import RECIPE_PATTERN, invalid_name

# bash splits words at `:` and `=`, so it gets the part after the last of them. bash inserts the text as it is, so the
# script quotes it; zsh (compadd without -Q) and fish quote inserted text.
_BASH = """\
_firmline() {
    local line=${COMP_LINE:0:COMP_POINT} word match quoted
    local -a words
    read -a words <<<"$line" # without -r: a typed `\\;` means `;`
    [[ $line == *[[:space:]] ]] && words+=("")
    word=${words[-1]}
    local before=${word%"${word##*[:=]}"}
    COMPREPLY=()
    while IFS= read -r match; do
        printf -v quoted %q "${match#"$before"}"
        COMPREPLY+=("$quoted")
    done < <("${words[0]}" completion words "${words[@]:1}" 2>/dev/null)
    [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[:=] ]] && compopt -o nospace
}
complete -o default -F _firmline doit firmline
"""
_ZSH = """\
#compdef doit firmline
_firmline() {
    local -a matches
    matches=("${(@f)$("${words[1]}" completion words "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    compadd -S '' -- $matches
}
compdef _firmline doit firmline
"""
_FISH = """\
function __firmline
    set -l words (commandline -opc) (commandline -ct)
    $words[1] completion words $words[2..-1] 2>/dev/null
end
complete -c doit -c firmline -a '(__firmline)'
"""
_SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}
_WORDS_ACTION = "words"


class Completion(Command):
    """`doit completion`."""

    name = "completion"
    group = "maintain"
    names_shown = "SHELL"
    examples = (("bash", "for .bashrc: source <(doit completion bash)"),)
    keys_help = (("NAME", "bash, zsh or fish"),)
    names = "a shell"
    doc_purpose = "print a script that completes recipes, targets and stages: bash, zsh, fish"
    doc_usage = "bash | zsh | fish"
    doc_description = "With zsh: source <(doit completion zsh) after compinit."

    def parse_execute(self, arguments: list[str]) -> Any:
        """Parse and run the arguments. After `words`, all belong to the line that is being typed."""
        if arguments[:1] == [_WORDS_ACTION]:
            return report_errors(lambda: _print(possible_words(arguments[1:])))
        return super().parse_execute(arguments)

    def _perform(self, named: list[str], options: dict[str, Any]) -> int:
        if len(named) != 1 or named[0] not in _SCRIPTS:
            wrong = f"'{escape.name(named[0])}'{did_you_mean(named[0], _SCRIPTS)}" if named else "nothing"
            raise PipelineError(f"doit completion: expected one of {', '.join(_SCRIPTS)}, got {wrong}")
        return _print([_SCRIPTS[named[0]].rstrip("\n")])


def _print(lines: Iterable[str]) -> int:
    for line in lines:
        print(line)
    return 0


def possible_words(words: Sequence[str]) -> list[str]:
    """Return the sorted completions of the last word after `doit`.

    A completion that ends with `=` or `:` continues.
    """
    *before, current = words or [""]
    commands = command_classes()
    command = before[0] if before and before[0] in commands else "run"
    matches: Iterable[str]
    if not before and "=" not in current and ":" not in current:
        matches = [*commands, "help", *_names("recipe")]
    elif before[:1] == ["help"]:
        matches = commands
    elif current.startswith("-"):
        command_object = commands.get_plugin(command)(task_loader=NamespaceTaskLoader(), config={}, cmds=PluginDict())
        matches = [f"--{option.long}" for option in command_object.get_options() if option.long and not is_key(option)]
    elif "=" in current:
        variable, _, value = current.partition("=")
        head = value.rpartition(",")[0]
        matches = [f"{variable}={head}{',' if head else ''}{name}" for name in _names(variable)]
    elif ":" in current:
        recipe = current.rpartition(":")[0]
        matches = [f"{recipe}:{part}" for part in _parts(recipe)]
    else:
        command_object = commands.get_plugin(command)(task_loader=NamespaceTaskLoader(), config={}, cmds=PluginDict())
        matches = [*_WORDS.get(command, _names(command_object.names))]
        matches += [f"{name}=" for name in (*command_object.variables, *command_object.own_variables)]
        matches += [f"{name_of_key(option)}=" for option in command_object.get_options() if is_key(option)]
    return sorted({escape.line(word) for word in matches if word.startswith(current)})


def _names(kind: str) -> list[str]:
    """Return the names of a kind, [] for an unknown kind.

    The values of a `name=` argument, or the arguments of a command (`names`).
    """
    from pipeline.plugins.discovery import plugins_of
    from pipeline.plugins.importing import declare_operators
    from pipeline.recipes.recipe_files import recipe_names
    from pipeline.recipes.targets import load_targets
    from stages.delivery.export.registry import names as forms
    from stages.ir.models.zoo.names import NAMES
    from stages.ir.operators.table import kinds

    project = current_project()
    if kind in ("recipe", "recipes", "extends", "two sides"):
        known = recipe_names(project, abstract=kind == "extends", nested=True)
        return [name for name in known if not invalid_name(name, RECIPE_PATTERN)]
    if kind in ("target", "targets", "board", "boards"):
        targets = load_targets(project)
        return [name for name, target in targets.items() if kind.startswith("target") or target.board is not None]
    if kind == "model":
        return [f"zoo:{name}" for name in (*NAMES, *plugins_of(project)["models"])]
    if kind == "as":
        return [*forms(), *plugins_of(project)["exports"]]
    if kind in ("operator", "operators", "kernels or operators"):
        declare_operators(project)
        return kinds()
    return []


def _parts(recipe: str) -> list[str]:
    """Return the stages of a recipe, or the variants of a matrix."""
    from pipeline.plugins.registry import registry_of
    from pipeline.recipes.loader import load_recipes

    members = load_recipes(recipe, root=current_project(), registry=registry_of(current_project()))
    if len(members) == 1:
        return list(members[0].sequence.names)
    return [member.variant for member in members]


# Fixed words after a command; others take names of a kind, `Command.names`.
_WORDS = {
    "new": ("recipe",),
    "store": ("size", "list", "verify", "remote", "push"),
    "completion": tuple(_SCRIPTS),
}
