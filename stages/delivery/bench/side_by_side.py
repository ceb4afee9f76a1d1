"""Counts the instructions of many small networks in few firmwares, each as a recipe of its own would compute it.

The passes of tensorize see one network at a time; only then are the networks joined, and share a program with which
they have nothing else to do. Every output byte is compared with LiteRT's in the same run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

from stages.backends.kernels import registry
from stages.base import StageError, no_progress
from stages.compile.firmware import compile_firmware
from stages.count.call import Memory, memory_of
from stages.count.firmware import one_inference, random_inputs
from stages.count.search import counted_costs
from stages.count.side_work import results
from stages.emit import EmitConfig
from stages.emit.build import emit
from stages.import_model.build import build_module
from stages.import_model.describe import describe, operator_options
from stages.ir.graph import Graph
from stages.ir.models.operators import build
from stages.ir.models.tflite_reader import read
from stages.ir.reference.interpreter import run as run_litert
from stages.layout.apply import lay_out
from stages.layout.rules import LayoutConfig
from stages.quantize.lower import lower_module
from stages.simulate.firmware import run_firmware
from stages.support.system.scratch import temporary_folder
from stages.tensorize import TensorizeConfig
from stages.tensorize.build import decide
from stages.tensorize.choices import Chosen
from stages.tensorize.packing import pack_and_lower
from stages.tensorize.programs import plan_programs
from stages.tensorize.setting import Setting

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stages.backends.targets.spec import Target
    from stages.count.search import Count
    from stages.count.side_work import Begin
    from stages.ir.models.spec import OpModel
    from stages.tensorize.select import Choice

    Arrays = Mapping[str, NDArray[np.generic]]

_NETWORKS, _BYTES = 40, 6_000_000  # of one firmware
_TVM = Lock()  # held while TVM works, which may not do two things at once (stages.base.Stage.exclusive)


@dataclass(frozen=True)
class Network:
    """A model of one operator, with the recipe's options.

    graph   as quantize leaves it
    inputs  random values over the whole range of each type, by name
    """

    name: str
    spec: OpModel
    tensorize: TensorizeConfig
    model: bytes
    graph: Graph

    @classmethod
    def of(cls, name: str, spec: OpModel, layout: LayoutConfig, tensorize: TensorizeConfig) -> Network:
        """Raises StageError for options that contradict each other."""
        data = build(spec)
        info = read(data, spec.op)
        with _TVM:
            module, _ = lay_out(build_module(data, info), layout)
            graph = lower_module(module, describe(info, operator_options(data))).graph
        return cls(name, spec, tensorize, data, graph)

    @cached_property
    def inputs(self) -> Arrays:
        return random_inputs(self.graph, self.graph.inputs)

    @cached_property
    def expected(self) -> list[NDArray[np.generic]]:
        """The outputs of LiteRT for `inputs`, in the model's order."""
        return run_litert(self.model, [self.inputs[name] for name in self.graph.inputs])

    @property
    def macs(self) -> int:
        """Multiply-accumulates as papers count them."""
        return sum(self.graph.macs(layer) for layer in self.graph.layers)

    @property
    def elements(self) -> int:
        """Of its largest input or output: what operators without multiply-accumulates are measured by."""
        return max(self.graph.tensors[name].elements for name in (*self.graph.inputs, *self.graph.outputs))


@dataclass(frozen=True)
class Counted:
    """What a network takes: instructions of all of its layers; the kernels that compute them, in order."""

    network: Network
    instructions: int
    kernels: tuple[str, ...]


def count(
    networks: Sequence[Network],
    target: Target,
    counter: Count,
    *,
    progress: Callable[..., None] = no_progress,
    begin: Begin | None = None,
) -> Iterator[Counted]:
    """Each network that the target's memory holds, as they become known, a firmware's at a time.

    `counter` counts kernels that may be chosen. `begin` as of `results`: with it the networks are counted elsewhere.

    Raises StageError for a network whose outputs are not LiteRT's.
    """
    progress(f"choosing kernels of {len(networks)} networks", 0.0)
    settings = [(network.graph, setting_of(target, network.tensorize)) for network in networks]
    costs = counted_costs(settings, counter)
    decided = []
    for network, (graph, setting) in zip(networks, settings, strict=True):
        with _TVM:
            decided.append((network, decide(graph, replace(setting, costs=costs))[0]))
    groups, done = list(_groups(decided, memory_of(target))), 0
    counts = results(run_group, [(group, setting_of(target, TensorizeConfig())) for group in groups], begin)
    with closing(counts):
        for group, found in zip(groups, counts, strict=True):
            yield from found
            done += len(group)
            progress(f"counted {done} of {len(networks)} networks", done / len(networks))


def setting_of(target: Target, config: TensorizeConfig) -> Setting:
    """The setting of tensorize for a network on this target, with estimates as costs.

    Kernels are judged by speed, but for a recipe that names what else it wants.
    """
    if config.optimize_for == "balanced":
        config = config.model_copy(update={"optimize_for": "speed"})
    return Setting.of(target, config, registry.kernels_of(target).values())


def memory_taken(graph: Graph) -> Memory:
    """Bytes of all tensors of a network, and of its constants."""
    activations = sum(tensor.bytes for tensor in graph.tensors.values() if not tensor.constant and not tensor.alias_of)
    return Memory(activations, sum(array.nbytes for array in graph.constants.values()))


def _groups(decided: Sequence[tuple[Network, Chosen]], memory: Memory) -> Iterator[list[tuple[Network, Chosen]]]:
    """The networks, in order, in groups that fit one firmware; without those that fit none."""
    most = memory.half  # scratch, padded weights, one of them twice
    group: list[tuple[Network, Chosen]] = []
    size = Memory(0, 0)
    for network, chosen in decided:
        own = memory_taken(chosen.graph)
        if not own <= memory:
            continue
        both = size + own
        if group and (len(group) == _NETWORKS or not both <= most or both.activations + both.weights > _BYTES):
            yield group
            group, both = [], own
        group.append((network, chosen))
        size = both
    if group:
        yield group


def run_group(group: Sequence[tuple[Network, Chosen]], setting: Setting) -> list[Counted]:
    """What the networks of one firmware take. Raises StageError as `count`."""
    target = setting.target
    # What model_run does about its arguments is counted with the first layer; so that is of a network not asked for.
    first = [min(group, key=lambda one: one[0].elements)] if len(group) > 1 else []
    networks = [*first, *group]
    joined, owners = side_by_side([chosen for _, chosen in networks])
    inputs = {f"{number}.{name}": one.inputs[name] for number, (one, _) in enumerate(networks) for name in one.inputs}
    graph = joined.graph
    with temporary_folder("layers") as folder:
        emitted, built = folder / "emitted", folder / "built"
        for part in (emitted, built):
            part.mkdir()
        with _TVM:
            made = pack_and_lower(plan_programs(joined, setting), setting)
            described = emit(made, emitted, EmitConfig(), target, name="layers")
        compile_firmware(emitted / "src", described, target, built)
        run = run_firmware(
            built / "firmware.elf",
            target,
            [one_inference(graph, inputs)],
            layers=len(graph.layers),
            output_bytes=sum(graph.tensors[name].bytes for name in graph.outputs),
        )
    compare([one for one, _ in networks], run.outputs)
    counts = [0] * len(networks)
    for layer, owner in zip(run.counts[0], owners, strict=True):
        counts[owner] += layer
    return [
        Counted(network, counts[number], tuple(choice.kernel.name for _, choice in sorted(chosen.choices.items())))
        for number, (network, chosen) in enumerate(networks)
    ][len(first) :]


def side_by_side(networks: Sequence[Chosen]) -> tuple[Chosen, list[int]]:
    """All networks as one, tensors and layers called `0.name`, `1.name`, …; for each layer whose it is."""
    graph, owners = Graph(), list[int]()
    choices: dict[int, Choice] = {}
    for number, one in enumerate(networks):

        def new(name: str, number: int = number) -> str:
            return f"{number}.{name}"

        before = len(graph.layers)
        for name, tensor in one.graph.tensors.items():
            alias = None if tensor.alias_of is None else new(tensor.alias_of)
            graph.tensors[new(name)] = tensor.model_copy(
                update={"name": new(name), "alias_of": alias, "tflite_index": None}
            )
        graph.constants |= {new(name): values for name, values in one.graph.constants.items()}
        graph.inputs += map(new, one.graph.inputs)
        graph.outputs += map(new, one.graph.outputs)
        for layer in one.graph.layers:
            update = {
                "index": before + layer.index,
                "name": new(layer.name),
                **{key: tuple(map(new, getattr(layer, key))) for key in ("inputs", "outputs", "state")},
                "constants": {role: new(name) for role, name in layer.constants.items()},
            }
            graph.layers.append(layer.model_copy(update=update))
            owners.append(number)
        choices |= {before + index: choice for index, choice in one.choices.items()}
    return replace(networks[0], graph=graph, choices=choices, unused_rules=(), warnings=()), owners


def compare(networks: Sequence[Network], outputs: bytes) -> None:
    """Raises StageError for the first network whose outputs, one after the other, are not LiteRT's."""
    position = 0
    for network in networks:
        for expected in network.expected:
            got = np.frombuffer(outputs, expected.dtype, expected.size, position).reshape(expected.shape)
            position += expected.nbytes
            if wrong := int((got != expected).sum()):
                raise StageError(f"{network.name}: {wrong} of {expected.size} output values are not LiteRT's")
