"""`doit schema`: write the JSON Schema of recipes."""

from typing import Any

from pipeline.commands.command import Command
from pipeline.errors import PipelineError
from pipeline.plugins.registry import registry_of
from pipeline.project import current_project
from pipeline.recipes.json_schema import schema_file, schema_text
from stages.support.system.atomic_write import write_atomically


class Schema(Command):
    """`doit schema`."""

    name = "schema"
    group = "extend"
    examples = (("", "write the schema again after a change of plug-ins"),)
    doc_purpose = "write recipe.schema.json, with which editors complete and check recipes"
    doc_usage = ""
    doc_description = "Editors complete and check recipes with it. `doit init` writes it into a new project."

    def _perform(self, named: list[str], options: dict[str, Any]) -> int:
        project = current_project()
        file = schema_file(project)
        name = project.display_path(file)
        try:
            write_atomically(file, schema_text(registry_of(current_project())))
        except OSError as error:
            raise PipelineError(f"{name} cannot be written: {error.strerror}") from error
        print(name)
        return 0
