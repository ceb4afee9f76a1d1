"""`doit operators`: list the supported TFLite operators and their types."""

from collections.abc import Sequence

from pipeline.commands.catalogue.listing import Listing, Record


class Operators(Listing):
    """`doit operators`."""

    name = "operators"
    group = "extend"
    examples = (("", "all operators"), ("conv2d", "one in full"))
    keys_help = (("NAME", "operators by TFLite's name or that of rules: CONV_2D, conv2d"),)
    what = "operator"
    names = "operators"
    doc_purpose = "list operators: types and limits"
    doc_usage = "[NAME...] [--json]"
    doc_description = (
        "A single operator is shown in full, with the options of model: {op: NAME}. docs/reference/operators.md "
        "explains the columns."
    )
    columns = ("name", "kind", "int8", "int16", "float32", "limits")

    def names_of(self, record: Record) -> Sequence[str]:
        """Return TFLite's name and the name in rules."""
        return [record["name"], record["kind"]]

    def records(self) -> Sequence[Record]:
        """Return the built-in operators by name, then plug-ins' operators."""
        from pipeline.plugins.importing import declare_operators
        from pipeline.project import current_project
        from stages.ir.models.layer_options import layer_options
        from stages.ir.operators.page import described
        from stages.ir.operators.table import OPERATORS, plugin_operators

        declare_operators(current_project())
        operators = (*OPERATORS.values(), *plugin_operators().operators.values())
        return [{**described(operator), "options": layer_options(operator)} for operator in operators]
