"""The packages and what each may import, as in docs/maintainers/contracts.md."""

import ast
from collections import deque
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STAGES = {
    *("ptq", "import_model", "layout", "quantize", "count", "tensorize"),
    *("emit", "compile", "simulate", "verify", "report"),
}
# Packages of pipeline/; each imports only those before it.
PIPELINE = [
    *("errors", "project", "process", "documents", "artifacts", "remote", "matrices", "plugins"),
    *("recipes", "keys", "runs", "distributed", "api", "terminal", "commands", "wheel", "__main__"),
]
# Groups of folders in stages/; each imports only from those before it. `base` is the definition of a stage.
GROUPS = ("support", "ir", "backends", "lower", "base", "sequence", "delivery")
# Modules and packages of stages/ir/; each imports only from those before it, for annotations too.
IR = [
    *("__init__", "arrays", "tensor_layout", "relax_module", "packed", "model_info", "naming"),
    *("arithmetic", "layers", "operators", "graph", "models", "samples", "reference"),
]
# Folders in which imports for annotations make no circles either.
WITHOUT_CIRCLES = (
    *("pipeline", "stages/ir", "stages/lower", "stages/delivery"),
    *(f"stages/{name}" for name in sorted(STAGES)),
)
# (importer, imported) of two stages of the sequence.
BETWEEN = {
    *(
        ("emit", "tensorize"),
        ("ptq", "import_model"),
        ("ptq", "quantize"),
        ("report", "quantize"),
        ("report", "verify"),
    ),
    *(("count", "tensorize"), ("count", "emit"), ("count", "compile"), ("count", "simulate")),
}


@cache
def imported(path: Path, *, types: bool = True) -> tuple[str, ...]:
    """The modules that a file imports, anywhere in it; without `types` none that only annotations need."""
    names: list[str] = []
    nodes: deque[ast.AST] = deque([ast.parse(path.read_bytes())])
    while nodes:
        node = nodes.popleft()
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.If) and not types and ast.unparse(node.test) == "TYPE_CHECKING":
            nodes.extend(node.orelse)
        elif not isinstance(node, ast.expr):
            nodes.extend(ast.iter_child_nodes(node))
    return tuple(names)


def all_imported(folder: str) -> Iterator[tuple[str, str]]:
    """(module, what it imports), with dots, of all below a folder."""
    for path in sorted((ROOT / folder).rglob("*.py")):
        module = path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".")
        yield from ((module, name) for name in imported(path))


@pytest.mark.parametrize(("folder", "foreign"), [("stages", "pipeline"), ("pipeline", "tvm"), ("pipeline", "tflite")])
def test_layers(folder: str, foreign: str) -> None:
    assert [(module, name) for module, name in all_imported(folder) if name.split(".")[0] == foreign] == []


def group(module: str) -> str:
    """The group of a module of stages/."""
    first = [*module.split("."), ""][1]
    return "sequence" if first in STAGES else first


def test_groups_of_stages_import_only_from_those_below_them() -> None:
    for module, name in all_imported("stages"):
        if name.startswith("stages.") and module != "stages.__init__":
            assert GROUPS.index(group(name)) <= GROUPS.index(group(module)), (module, name)


def test_packages_of_ir_import_only_from_those_below_them() -> None:
    for module, name in all_imported("stages/ir"):
        if name.startswith("stages.ir."):
            assert IR.index(name.split(".")[2]) <= IR.index(module.split(".")[2]), (module, name)


def test_stages_know_nothing_of_each_other() -> None:
    pairs = {
        (module.split(".")[1], name.split(".")[1])
        for module, name in all_imported("stages")
        if name.startswith("stages.") and group(module) == group(name) == "sequence"
    }
    assert {(importer, imported) for importer, imported in pairs if importer != imported} == BETWEEN


# Modules that concern one family: NE16 is a part of RISC-V chips, an export runs in Spike.
ONE_FAMILY = {
    "stages.backends.accelerators.ne16.weights",
    "stages.backends.tiles.product_kernel",  # the portable order of weights
    "stages.delivery.export.simulated",
}


def test_shared_code_of_backends_imports_no_family() -> None:
    """A family is found by its name, so that a new one changes no other folder."""
    families = {path.parent.name for path in (ROOT / "stages/backends").glob("*/runtime")} | {"generic"}
    for module, name in all_imported("stages"):
        if name.startswith("stages.backends.") and (family := name.split(".")[2]) in families:
            importer = [*module.split("."), ""][2] if module.startswith("stages.backends.") else ""
            allowed = {family, *families} if family == "generic" else {family}
            assert importer in allowed or module in ONE_FAMILY, (module, name)


def test_shared_code_names_no_family() -> None:
    """Code for one architecture is in its family's folder. Exports may name families."""
    families = {path.parent.name for path in (ROOT / "stages/backends").glob("*/targets.yaml")}
    others = {ROOT / "stages/backends" / name for name in families} | {ROOT / "stages/delivery"}
    for path in (ROOT / "stages").rglob("*.py"):
        if not others.intersection(path.parents):
            for node in ast.walk(ast.parse(path.read_bytes())):
                is_family = isinstance(node, ast.Constant) and node.value in families
                assert not is_family, (path.relative_to(ROOT), ast.unparse(node), getattr(node, "lineno", 0))


def test_packages_of_the_pipeline_import_one_way() -> None:
    packages = {path.stem for path in (ROOT / "pipeline").iterdir() if path.suffix == ".py" or path.is_dir()}
    assert packages - {"__init__", "__pycache__"} == {*PIPELINE}
    for module, name in all_imported("pipeline"):
        if name.startswith("pipeline."):
            assert PIPELINE.index(name.split(".")[1]) <= PIPELINE.index(module.split(".")[1]), (module, name)


@pytest.mark.parametrize(("folders", "types"), [(("stages", "pipeline"), False), (WITHOUT_CIRCLES, True)])
def test_no_module_imports_itself_by_way_of_others(folders: tuple[str, ...], types: bool) -> None:
    """Imports inside of functions count. Imports for annotations count too, except in kernels."""
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    modules = {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in paths}
    graph = {
        module: {
            name if name in modules else name.rpartition(".")[0] for name in imported(path, types=types)
        } & modules.keys() - {module}
        for module, path in modules.items()
    }  # fmt: skip
    while ends := {module for module, uses in graph.items() if not uses}:
        graph = {module: uses - ends for module, uses in graph.items() if module not in ends}
    while starts := graph.keys() - {used for uses in graph.values() for used in uses}:
        graph = {module: uses for module, uses in graph.items() if module not in starts}
    assert graph == {}


def test_contracts_name_every_package() -> None:
    text = (ROOT / "docs/maintainers/contracts.md").read_text(encoding="utf-8")
    code = text.partition("## Code")[2].partition("\n## ")[0]
    folders = [*(ROOT / "pipeline").iterdir(), *(ROOT / "stages").iterdir()]
    folders += [path for name in ("support", "ir", "lower", "delivery") for path in (ROOT / "stages" / name).iterdir()]
    for path in folders:
        if path.name not in ("__init__.py", "__pycache__", "__main__.py", "recipe.schema.json", "README.md"):
            assert f"`{path.name}" in code or f"{path.relative_to(ROOT)}" in code, path


def test_no_module_is_long() -> None:
    long = {}
    for folder in ("pipeline", "stages"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            lines = path.read_text(encoding="utf-8").count("\n")
            if lines > 400:
                long[path.relative_to(ROOT).as_posix()] = lines
    assert long == {}
