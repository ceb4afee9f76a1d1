"""`doit kernels`: list the kernels, their operators and cores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pipeline.commands.catalogue.listing import Listing, Record
from pipeline.commands.command import selected_names, variables
from stages.support.messages.wording import as_yaml

if TYPE_CHECKING:
    from stages.backends.kernels.kernel import Kernel
    from stages.backends.targets.spec import Target


class Kernels(Listing):
    """`doit kernels`."""

    name = "kernels"
    group = "extend"
    examples = (
        ("conv2d target=cortex-m4,cortex-m55", "kernels of an operator on two cores"),
        ("'rvp.*'", "kernels by name"),
    )
    keys_help = (
        ("NAME", "kernels such as 'rvp.*', or operators such as conv2d"),
        ("target", "only kernels that run on these cores or boards"),
    )
    what = "kernel"
    names = "kernels or operators"
    variables = ("target", "board")
    doc_purpose = "list kernels: operators, layouts, roundings, the cores they run on"
    doc_usage = "[NAME...] [target=…] [--json]"
    doc_description = "A single kernel is shown in full."
    columns = ("name", "operators", "bits", "layouts", "cores")

    def names_of(self, record: Record) -> Sequence[str]:
        """Return the kernel's name and its operators."""
        return [record["name"], *record["operators"]]

    def records(self) -> Sequence[Record]:
        """Return the kernels of all targets, or of `target=`, in search order."""
        from stages.backends.kernels.registry import folders_of

        records: dict[str, dict[str, Any]] = {}
        for target in _targets():
            for folder in folders_of(target).values():
                for cls in folder.kernels if not folder.why_not(target) else ():
                    record = records.setdefault(cls.name, _record(cls()))
                    if target.core not in record["cores"]:
                        record["cores"].append(target.core)
        return list(records.values())


def _targets() -> Sequence[Target]:
    from pipeline.project import current_project
    from pipeline.recipes.targets import load_targets, unknown_target_error

    known = load_targets(current_project())
    names = selected_names((), variables(), "target", "board")
    for name in names:
        if name not in known:
            raise unknown_target_error(name, known)
    return [known[name] for name in names or known]


def _default(value: Any) -> str:
    return value if isinstance(value, str) else as_yaml(value)


def _record(kernel: Kernel) -> dict[str, Any]:
    """Return a kernel's record: `bits` of activations, `code` files relative to its folder."""
    return {
        "name": kernel.name,
        "operators": sorted(kernel.ops),
        "bits": kernel.bits,
        "layouts": list(kernel.layouts),
        "roundings": sorted(kernel.roundings),
        "parameters": {name: _default(field.default) for name, field in kernel.params.model_fields.items()},
        "in_place": kernel.in_place,
        "code": list(kernel.sources),
        "cores": [],
    }
