"""Count the instructions of many small networks with few firmware builds.

Tensorize handles one network at a time, as in a recipe. Then the networks are joined into one program. The same run
compares every output byte with LiteRT's.
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
from stages.backends.targets.spec import Target
from stages.base import StageError, no_progress
from stages.compile.firmware import compile_firmware
from stages.count.call import Memory, memory_of
from stages.count.firmware import one_inference, random_inputs
from stages.count.parallel import Begin, results
from stages.count.search import Count, counted_costs
from stages.emit.build import emit
from stages.emit.config import EmitConfig
from stages.import_model.build import build_module
from stages.import_model.describe import describe, operator_options
from stages.ir.graph import Graph
from stages.ir.models.operators import build
from stages.ir.models.spec import OpModel
from stages.ir.models.tflite_reader import read
from stages.ir.reference.interpreter import run as run_litert
from stages.layout.apply import lay_out
from stages.layout.rules import LayoutConfig
from stages.quantize.lower import lower_module
from stages.simulate.firmware import run_firmware
from stages.support.lazy import npt
from stages.support.system.scratch import temporary_folder
from stages.tensorize.build import decide
from stages.tensorize.choices import Chosen
from stages.tensorize.config import TensorizeConfig
from stages.tensorize.packing import pack_and_lower
from stages.tensorize.pass_context import PassContext
from stages.tensorize.programs import plan_programs
from stages.tensorize.select import Choice

if TYPE_CHECKING:
    Arrays = Mapping[str, npt.NDArray[np.generic]]

_NETWORKS, _BYTES = 40, 6_000_000  # limits of one firmware
_TVM = Lock()  # TVM is not thread-safe (stages.base.Stage.exclusive)


@dataclass(frozen=True)
class Network:
    """A model of one operator, with the recipe's options.

    graph   the integer graph of quantize
    inputs  random values over the full range of each type, by name
    """

    name: str
    spec: OpModel
    tensorize: TensorizeConfig
    model: bytes
    graph: Graph

    @classmethod
    def of(cls, name: str, spec: OpModel, layout: LayoutConfig, tensorize: TensorizeConfig) -> Network:
        """Build the model and its integer graph.

        Raises StageError for options that contradict each other.
        """
        data = build(spec)
        info = read(data, spec.op)
        with _TVM:
            module, _ = lay_out(build_module(data, info), layout)
            graph = lower_module(module, describe(info, operator_options(data))).graph
        return cls(name, spec, tensorize, data, graph)

    @cached_property
    def inputs(self) -> Arrays:
        """Random inputs by name."""
        return random_inputs(self.graph, self.graph.inputs)

    @cached_property
    def expected(self) -> list[npt.NDArray[np.generic]]:
        """LiteRT's outputs for `inputs`, in the model's order."""
        return run_litert(self.model, [self.inputs[name] for name in self.graph.inputs])

    @property
    def macs(self) -> int:
        """Multiply-accumulates of all layers, without padding."""
        return sum(self.graph.macs(layer) for layer in self.graph.layers)

    @property
    def elements(self) -> int:
        """Elements of the largest input or output: the size of operators without MACs."""
        return max(self.graph.tensors[name].elements for name in (*self.graph.inputs, *self.graph.outputs))


@dataclass(frozen=True)
class Counted:
    """Instructions of all layers of a network, and their kernels in order."""

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
    """Yield the count of each network that fits the target's memory, one after the other.

    `counter` counts candidate kernels. With `begin` (see `results`), workers count the networks.
    Raises StageError if a network's outputs differ from LiteRT's.
    """
    progress(f"choosing kernels of {len(networks)} networks", 0.0)
    settings = [(network.graph, setting_of(target, network.tensorize)) for network in networks]
    costs = counted_costs(settings, counter)
    decided = []
    for network, (graph, setting) in zip(networks, settings, strict=True):
        with _TVM:
            decided.append((network, decide(graph, replace(setting, costs=costs))[0]))
    groups, counted = list(_groups(decided, memory_of(target))), 0
    counts = results(run_group, [(group, setting_of(target, TensorizeConfig())) for group in groups], begin)
    with closing(counts):
        for group, group_counts in zip(groups, counts, strict=True):
            yield from group_counts
            counted += len(group)
            progress(f"counted {counted} of {len(networks)} networks", counted / len(networks))


def setting_of(target: Target, config: TensorizeConfig) -> PassContext:
    """Return tensorize's setting for a network on this target, with estimates as costs.

    The objective is speed unless the recipe sets another.
    """
    if config.optimize_for == "balanced":
        config = config.model_copy(update={"optimize_for": "speed"})
    return PassContext.of(target, config, registry.kernels_of(target).values())


def memory_taken(graph: Graph) -> Memory:
    """Return the bytes of a network's tensors and of its constants."""
    activations = sum(tensor.bytes for tensor in graph.tensors.values() if not tensor.constant and not tensor.alias_of)
    return Memory(activations, sum(array.nbytes for array in graph.constants.values()))


def _groups(decided: Sequence[tuple[Network, Chosen]], memory: Memory) -> Iterator[list[tuple[Network, Chosen]]]:
    """Yield the networks in order, in groups that fit one firmware.

    Skips networks that are too large by themselves.
    """
    most = memory.half  # the rest is for scratch, padded weights and one network that occurs twice
    group: list[tuple[Network, Chosen]] = []
    size = Memory(0, 0)
    for network, chosen in decided:
        needed = memory_taken(chosen.graph)
        if not needed <= memory:
            continue
        total = size + needed
        if group and (len(group) == _NETWORKS or not total <= most or total.activations + total.weights > _BYTES):
            yield group
            group, total = [], needed
        group.append((network, chosen))
        size = total
    if group:
        yield group


def run_group(group: Sequence[tuple[Network, Chosen]], setting: PassContext) -> list[Counted]:
    """Count the networks of one firmware. Raises StageError as `count`."""
    target = setting.target
    # The first layer's count includes the argument handling of model_run. So an extra network runs first.
    warm_up = [min(group, key=lambda pair: pair[0].elements)] if len(group) > 1 else []
    networks = [*warm_up, *group]
    joined, owners = join_networks([chosen for _, chosen in networks])
    inputs = {
        f"{number}.{name}": array
        for number, (network, _) in enumerate(networks)
        for name, array in network.inputs.items()
    }
    graph = joined.graph
    with temporary_folder("layers") as folder:
        emitted, built = folder / "emitted", folder / "built"
        emitted.mkdir()
        built.mkdir()
        with _TVM:
            tensorized = pack_and_lower(plan_programs(joined, setting), setting)
            described = emit(tensorized, emitted, EmitConfig(), target, name="layers")
        compile_firmware(emitted / "src", described, target, built)
        run = run_firmware(
            built / "firmware.elf",
            target,
            [one_inference(graph, inputs)],
            layers=len(graph.layers),
            output_bytes=sum(graph.tensors[name].bytes for name in graph.outputs),
        )
    compare([network for network, _ in networks], run.outputs)
    counts = [0] * len(networks)
    for layer, owner in zip(run.counts[0], owners, strict=True):
        counts[owner] += layer
    return [
        Counted(network, counts[number], tuple(choice.kernel.name for _, choice in sorted(chosen.choices.items())))
        for number, (network, chosen) in enumerate(networks)
    ][len(warm_up) :]


def join_networks(networks: Sequence[Chosen]) -> tuple[Chosen, list[int]]:
    """Join networks into one, with tensors and layers named `0.name`, `1.name`, …

    The second result has, for each layer, the number of its network.
    """
    graph, owners = Graph(), list[int]()
    choices: dict[int, Choice] = {}
    for number, network in enumerate(networks):

        def new(name: str, number: int = number) -> str:
            return f"{number}.{name}"

        before = len(graph.layers)
        for name, tensor in network.graph.tensors.items():
            alias = None if tensor.alias_of is None else new(tensor.alias_of)
            graph.tensors[new(name)] = tensor.model_copy(
                update={"name": new(name), "alias_of": alias, "tflite_index": None}
            )
        graph.constants |= {new(name): values for name, values in network.graph.constants.items()}
        graph.inputs += map(new, network.graph.inputs)
        graph.outputs += map(new, network.graph.outputs)
        for layer in network.graph.layers:
            update = {
                "index": before + layer.index,
                "name": new(layer.name),
                **{key: tuple(map(new, getattr(layer, key))) for key in ("inputs", "outputs", "state")},
                "constants": {role: new(name) for role, name in layer.constants.items()},
            }
            graph.layers.append(layer.model_copy(update=update))
            owners.append(number)
        choices |= {before + index: choice for index, choice in network.choices.items()}
    return replace(networks[0], graph=graph, choices=choices, unused_rules=(), warnings=()), owners


def compare(networks: Sequence[Network], outputs: bytes) -> None:
    """Raise StageError for the first network whose outputs differ from LiteRT's.

    `outputs` are concatenated.
    """
    position = 0
    for network in networks:
        for expected in network.expected:
            actual = np.frombuffer(outputs, expected.dtype, expected.size, position).reshape(expected.shape)
            position += expected.nbytes
            if wrong := int((actual != expected).sum()):
                raise StageError(f"{network.name}: {wrong} of {expected.size} output values differ from LiteRT's")
