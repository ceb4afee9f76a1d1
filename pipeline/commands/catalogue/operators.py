"""`doit operators`: the operators of a TFLite file that firmware can have, and in which types."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.commands.catalogue.listing import Listing, Record


class Operators(Listing):
    """`doit operators`."""

    name = "operators"
    what = "operator"
    names = "operators"
    doc_purpose = "list operators: their types, and how each is computed"
    doc_usage = "[NAME...] [--json]"
    doc_description = (
        "NAME is that of TFLite or of rules: CONV_2D, conv2d. One that is named is shown in full, with the options of "
        "model: {op: NAME}. docs/reference/operators.md explains the words."
    )
    columns = ("name", "kind", "int8", "int16", "float32", "limits")

    def called(self, record: Record) -> Sequence[str]:
        """By either name."""
        return [record["name"], record["kind"]]

    def records(self) -> Sequence[Record]:
        """Firmline's by name, then those of the project's plug-ins."""
        from pipeline.plugins.importing import declare_operators
        from pipeline.project import current_project
        from stages.models.layer_options import layer_options
        from stages.operators.page import described
        from stages.operators.table import OPERATORS, outside

        declare_operators(current_project())
        operators = (*OPERATORS.values(), *outside().operators.values())
        return [{**described(operator), "options": layer_options(operator)} for operator in operators]
