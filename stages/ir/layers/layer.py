"""Layers of the integer graph, with tensors and constants, and their base class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, get_args

from pydantic import BaseModel, ConfigDict, Field, SerializeAsAny

from stages.ir.arrays import Array
from stages.ir.layers.tensor import Tensor
from stages.ir.tensor_layout import Layout
from stages.support.lazy import np

if TYPE_CHECKING:
    from stages.ir.layers.channels import Kept, ValueRange


@dataclass(frozen=True)
class Shifted:
    """A layer with an offset on its integers and zero points, and its changed constants."""

    op: LayerOp
    constants: Mapping[str, Array] = field(default_factory=dict)


@dataclass(frozen=True)
class Narrowed:
    """A layer on fewer channels; `constants` has the changed and the new constants."""

    op: LayerOp
    constants: Mapping[str, Array] = field(default_factory=dict)


class LayerOp(BaseModel):
    """A layer of the integer graph, with all constants of its arithmetic.

    `op` distinguishes the classes.
    """

    # Built on first use: planning loads these classes without instances.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)
    # Whether it may have the file's types beyond 8 bits and float32, as data movement.
    any_type: ClassVar[bool] = False
    # Whether it computes in float32: kernels may differ from `compute` in the last bits.
    approximate: ClassVar[bool] = False
    # Whether it is element-wise, with broadcasting.
    by_element: ClassVar[bool] = False
    # Whether it treats all channels alike: equal channels in `carries` give equal outputs.
    uniform: ClassVar[bool] = False
    # Whether the output shifts by as much as all inputs do.
    shifts_alike: ClassVar[bool] = False
    # Name in rules and reports, or the field that has it.
    alias: ClassVar[str] = ""
    named_by: ClassVar[str] = "op"
    if TYPE_CHECKING:
        op: str

    @property
    def named(self) -> str:
        """Name in rules and reports."""
        return self.alias or str(getattr(self, self.named_by))

    @classmethod
    def names(cls) -> frozenset[str]:
        """All names that rules may use for layers of the class."""
        return frozenset(get_args(cls.model_fields["op"].annotation)) if "op" in cls.model_fields else frozenset()

    def macs_of(self, out: Tensor) -> int:
        """Multiply-accumulates of the output, padding included, as papers count them."""
        return 0

    def shifted(self, view: LayerView, inputs: Sequence[int], output: int) -> Shifted | None:
        """The layer with integers of data inputs shifted by `inputs`, of the output by `output`.

        Zero points shift too. `view` is the present layer. None if the arithmetic would change, as for functions of
        the type's bounds.
        """
        is_same = {*inputs} == {output} if self.shifts_alike else not any((*inputs, output))
        return Shifted(self) if is_same else None

    def value_range(self, view: LayerView, inputs: Sequence[ValueRange]) -> ValueRange | None:
        """Value range of the output's channels for inputs in these ranges, None if unknown."""
        return None

    def carries(self, view: LayerView) -> tuple[Array, ...] | None:
        """For each input: the channel from which each output channel comes, int[C], or NEW.

        A channel of the input and its channel of the output are removed together. (): sums over channels make new
        ones, and any may be removed. None: no channel may be removed.
        """
        return every_channel(view) if self.uniform else None

    def alike(self, view: LayerView, inputs: Sequence[Array]) -> Array | None:
        """Labels of the output's channels, int64[C], equal for channels that are always equal.

        `inputs` are labels of the inputs' channels. None if unknown.
        """
        from stages.ir.layers.channels import NEW, labels

        carried = self.carries(view) if self.uniform else None
        if not carried:
            return None
        pixel = np.arange(len(carried[0])) // max(
            len(sources) for sources in inputs
        )  # for several pixels in the last axis
        return labels(
            pixel,
            *(
                np.where(sources == NEW, NEW, channel_labels[sources])
                for sources, channel_labels in zip(carried, inputs, strict=True)
            ),
        )

    def absorbs(self, view: LayerView, value_range: ValueRange) -> Array:
        """Channels of an input in this value range that the sums do not need, bool[C].

        Only if `carries` is ().
        """
        raise NotImplementedError

    def factors(self, view: LayerView) -> Array:
        """Weights less their zero point, int64[..., C] for an input of C channels.

        Only if `carries` is ().
        """
        raise NotImplementedError

    def narrowed(self, view: LayerView, inputs: Sequence[Kept], output: Kept) -> Narrowed:
        """The layer on the remaining channels. `view` is the present layer."""
        return Narrowed(self)

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        """Return the output by numpy, the reference of the kernels; arrays are in logical order."""
        raise ValueError(f"layer {view.layer.name}: the integer reference has no {view.layer.kind}")

    def advance(self, view: LayerView, inputs: Sequence[Array], states: Sequence[Array]) -> tuple[Array, list[Array]]:
        """Return the output and the new state; `states` is the state before."""
        return self.compute(view, *inputs), list(states)


class RequestedLayout(BaseModel):
    """The layout that the recipe requests for a layer's input.

    rule  number of its layout rule, 0 for the `default`
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)
    layout: Layout
    rule: int


class Layer(BaseModel):
    """One step of the network.

    index      position in execution order, from 0; the number in reports and in the emitted function names
    name       name of the imported operator's (first) output tensor: layout and tensorize rules match it
    inputs     names of data tensors
    state      names of state tensors that it reads and writes
    constants  role (weights, bias, multiplier, shift, table, exp) -> name of the constant
    tflite_op  index and name of the operator in the imported file
    wanted     layout that the recipe requests; None: tensorize decides
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)
    index: int
    name: str
    op: SerializeAsAny[LayerOp]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    state: tuple[str, ...] = ()
    constants: dict[str, str] = Field(default_factory=dict)
    tflite_op: tuple[int, str] | None = None
    wanted: RequestedLayout | None = None

    @property
    def kind(self) -> str:
        """The operator's name in rules and reports: conv2d, softmax, logistic, pad, ..."""
        return self.op.named


@dataclass(frozen=True)
class LayerView:
    """A layer with its tensors and constants: everything that a kernel reads."""

    layer: Layer
    tensors: Mapping[str, Tensor]
    arrays: Mapping[str, np.ndarray]

    @property
    def op(self) -> Any:
        """The layer's operator with its parameters."""
        return self.layer.op

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The data inputs."""
        return tuple(self.tensors[name] for name in self.layer.inputs)

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        """The outputs."""
        return tuple(self.tensors[name] for name in self.layer.outputs)

    @property
    def states(self) -> tuple[Tensor, ...]:
        """The state tensors."""
        return tuple(self.tensors[name] for name in self.layer.state)

    def constant(self, role: str) -> np.ndarray:
        """Return the constant with this role. Raises KeyError if the layer has none."""
        return self.arrays[self.layer.constants[role]]

    def bits(self, role: str) -> int:
        """Return the bits that each value of this constant needs: at most 4 for int4 weights.

        Signed types count in two's complement; the array itself has whole bytes.
        """
        from stages.ir.packed import bits_of

        return bits_of(self.constant(role))

    def has(self, role: str) -> bool:
        """Whether the layer has a constant with this role."""
        return role in self.layer.constants


def every_channel(view: LayerView) -> tuple[Array, ...]:
    """`LayerOp.carries` if each output channel depends on the same channel of the inputs only.

    Inputs of one channel are broadcast.
    """
    from stages.ir.layers.channels import NEW, channels_of

    channels = channels_of(view.outputs[0])
    same, none = np.arange(channels), np.full(channels, NEW)
    return tuple(same if channels_of(tensor) == channels else none for tensor in view.inputs)
