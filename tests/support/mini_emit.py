"""The mini network of `tests.support.kernels.mini` through tensorize and emit."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stages.backends.kernels.folder import KernelFolder
from stages.backends.kernels.kernel import Kernel
from stages.backends.targets.spec import Target
from stages.emit import EmitConfig
from stages.emit.build import emit
from stages.ir.graph import Graph
from stages.tensorize import TensorizeConfig
from stages.tensorize.artifact import save
from stages.tensorize.build import tensorize_graph
from tests.support.emitted import target_named
from tests.support.kernels.mini import FOLDER, MiniGemm, PlainGemm, mini_graph

KERNELS: Sequence[Kernel] = (PlainGemm(), MiniGemm())
PLAIN: Sequence[Kernel] = (PlainGemm(),)


def emit_mini(
    path: Path,
    graph: Graph | None = None,
    *,
    kernels: Sequence[Kernel] = KERNELS,
    folder: KernelFolder = FOLDER,
    name: str = "mini",
    target: Target | None = None,
    **config: Any,
) -> dict[str, Any]:
    """Emits into `path`/emitted and returns model.json. PLAIN leaves the micro-kernel out; the target is host."""
    target = target or target_named("host")
    graph = graph or mini_graph()
    source, out = path / "tensorized", path / "emitted"
    source.mkdir(parents=True)
    out.mkdir()
    save(tensorize_graph(graph, target, TensorizeConfig(), kernels), source)
    return emit(source, out, EmitConfig(**config), target, name=name, folders={folder.name: folder})
