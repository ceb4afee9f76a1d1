"""A target: a core (instruction set, compiler, kernels, how it is counted) with the memory of one board.

`pipeline.yaml` declares cores and boards (stages.backends.targets.catalogue). Each is a target: a core with the memory
that its simulator's machine has, a board with its own.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, computed_field, model_validator

from stages.backends.targets.attached import Engine
from stages.backends.targets.chip import ChipNumber
from stages.backends.targets.memory import Capacity, Memory, Size
from stages.backends.targets.timing import Flash, TimingModel
from stages.support.options.names import Name
from stages.support.options.strict_model import StrictModel, mistake


class Compiler(StrictModel):
    """A GCC.

    minimum        lowest version
    flags          for compiling and linking: they select the variant of the C library too
    compile_flags  for compiling only, after `flags`: `-march=rv32imc_zve32x` if the C library has only rv32imc
    packages       Debian packages that install compiler and C library, the compiler's first
    """

    command: str
    minimum: Name = "12"
    flags: tuple[str, ...] = ()
    compile_flags: tuple[str, ...] = ()
    packages: tuple[Name, ...] = ()

    @property
    def flags_to_compile(self) -> tuple[str, ...]:
        """Flags of the compile step. One of `compile_flags` replaces the flag of the same name, as `-march=`."""
        replaced = {flag.partition("=")[0] for flag in self.compile_flags if "=" in flag}
        kept = (flag for flag in self.flags if "=" not in flag or flag.partition("=")[0] not in replaced)
        return (*kept, *self.compile_flags)

    @model_validator(mode="after")
    def _one_program(self) -> Compiler:
        if not self.command or " -" in self.command:
            raise mistake(f"'{self.command}' is no program's name; what it is given goes to `flags`", "command")
        return self


class Device(StrictModel):
    """A device of the simulated machine, by the name that the simulator or one of its plug-ins gives it.

    Spike: `--device=NAME,BASE,key=value`, so that the plug-in gets its first address, where there is one, and the
    parameters as texts. QEMU: `-device NAME,key=value`.
    """

    name: Name
    base: Size | None = None
    parameters: dict[str, str | int] = Field(default_factory=dict)


class Simulator(StrictModel):
    """Which simulator runs the firmware, and as what.

    `kind` is spike, qemu, native or that of a plug-in. Spike: `isa` is its ISA string. QEMU: `command` is the emulator;
    `machine` names a whole machine of it, and without one it runs a Linux program in user mode on `cpu`. `packages` are
    the Debian packages that bring `command`.

    `plugins` are those of the simulator that Firmline has (`rvp`), and paths of others: a folder with C++ (Spike) or C
    (QEMU), one such file, or a library, from the folder of the file that declares the target on. `devices` are those
    beside the machine's own; `arguments` come at the end of the simulator's options, and name no files.
    """

    kind: Name
    isa: str = ""
    command: str = ""
    machine: str = ""
    cpu: str = ""
    plugins: tuple[str, ...] = ()
    packages: tuple[Name, ...] = ()
    devices: tuple[Device, ...] = ()
    arguments: tuple[str, ...] = ()

    @property
    def outside(self) -> tuple[str, ...]:
        """Those of `plugins` that are paths."""
        return tuple(name for name in self.plugins if "/" in name)

    @model_validator(mode="after")
    def _check(self) -> Simulator:
        if self.kind == "native":
            for name in ("plugins", "devices", "arguments"):
                if getattr(self, name):
                    raise mistake(f"a program of this machine has no simulator, and no {name}", name, beside=("kind",))
        for number, device in enumerate(self.devices):
            if device.base is not None and self.kind == "qemu":
                raise mistake("a device of QEMU has its address among its parameters", "devices", number, "base")
        return self


class Core(StrictModel):
    """One entry under `cores:`.

    `extensions` names each instruction-set extension with the exact draft or version, such as `{rvp: 0.9.11}`.
    `kernels` are the folders `stages/backends/<family>/kernels/<name>` whose kernels may be used. `word_bits` is
    XLEN or the register width. `memory` is what the simulator's machine has; it is absent on the host, where the
    operating system provides it. `timing` is one of `timings:`, by which cycles are estimated. `chip` are numbers by
    which a debugger identifies it.
    """

    family: Name
    isa: Name
    abi: str = ""
    word_bits: Literal[32, 64]
    fpu: bool = False
    extensions: dict[Name, str] = Field(default_factory=dict)
    kernels: tuple[Name, ...] = ("generic",)
    compiler: Compiler
    memory: Memory | None = None
    simulator: Simulator
    counter: Literal["minstret", "qemu-plugin", "none"]
    timing: str = ""
    chip: tuple[ChipNumber, ...] = ()

    @property
    def features(self) -> frozenset[str]:
        """What kernels may need of a core: its family, the parts of its ISA, its extensions with and without version.

        Such as `cortex_m`, `armv8.1-m.main`, `mve.fp`, `mve`, `mve 1.0`.
        """
        versions = (f"{name} {version}" for name, version in self.extensions.items())
        return frozenset((self.family, *self.isa.split("+"), *self.extensions, *versions))

    @model_validator(mode="after")
    def _computes(self) -> Core:
        if not self.kernels:
            raise mistake("no folder of kernels: nothing could be computed; [generic] runs everywhere", "kernels")
        return self

    @model_validator(mode="after")
    def _reachable(self) -> Core:
        """The core can address its memory."""
        if self.memory is not None:
            for name, why in self.memory.beyond(self.word_bits):
                raise mistake(why, "memory", name, beside=("word_bits",))
            for number, device in enumerate(self.simulator.devices):
                region = None if device.base is None else self.memory.name_of(device.base)
                if region is not None:
                    where = ("simulator", "devices", number, "base")
                    raise mistake(f"{device.base:#x} lies in the memory {region}", *where, beside=("memory", region))
        return self


class BoardFacts(StrictModel):
    """What a target has from its board, for reports: `title` as its maker calls it, `clock` in Hz, `source` of both."""

    title: str
    clock: int | None = None
    source: str = ""


class Target(Core):
    """What a recipe's `target` names: a board, or a core by itself.

    name       what the recipe says, the board's or the core's
    core       the core's name: measured costs are the core's
    board      what is known of the board, None for a core by itself
    simulated  the memory map that the simulation is linked for, where the simulator has no machine with the board's
               own: the board's regions, moved to where the core's machine has memory, and not longer than that
    accelerator  the engine beside the core, None for a target without one
    timing_model what `timing` names, None where it is ''
    flash        the board's memory with wait states, None where none is known
    chip       the core's numbers, and those of the board
    alone      the core by itself, for a board: kernels are counted on its machine
    places     where what is not Firmline's own lies on this machine: plug-ins of the simulator by their paths as
               written, kernel folders and simulators as `kernels/acme` and `simulators/renode`; in no key
    modules    the modules of those, by the same names
    """

    name: str
    core: str
    board: BoardFacts | None = None
    simulated: Memory | None = None
    accelerator: Engine | None = None
    timing_model: TimingModel | None = None
    flash: Flash | None = None
    alone: Core | None = None
    places: dict[str, Path] = Field(default_factory=dict, exclude=True, repr=False)
    modules: dict[str, str] = Field(default_factory=dict, exclude=True, repr=False)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def capacities(self) -> dict[str, tuple[Capacity, ...]]:
        """Capacities for `weights` and `arena`, the fastest first; empty if there is one region each and no copy."""
        if self.memory is None:
            return {}
        capacities = {"weights": self.memory.capacities("weights"), "arena": self.memory.capacities("arena")}
        copied = any(capacity.loaded_from for capacity in capacities["weights"])
        several = any(len(regions) > 1 for regions in capacities.values())
        return capacities if copied or several else {}

    @property
    def is_timed(self) -> bool:
        """True if a timing model estimates its cycles. An accelerator has its own cycle model."""
        return self.timing_model is not None and self.accelerator is None

    @computed_field  # type: ignore[prop-decorator]
    @property
    def is_hosted(self) -> bool:
        """True if its firmware is a program of an operating system, which provides the memory."""
        return self.memory is None

    @property
    def is_native(self) -> bool:
        """True if its firmware runs on this machine without a simulator."""
        return self.simulator.kind == "native"

    @property
    def by_itself(self) -> Target:
        """The target's core without its board. Kernels are counted on it."""
        if self.alone is None:
            return self
        fields = {name: getattr(self.alone, name) for name in Core.model_fields}
        return Target(name=self.core, core=self.core, places=self.places, modules=self.modules, **fields)

    @property
    def in_simulator(self) -> Target:
        """The target with the memory map of the simulator's machine."""
        return self if self.simulated is None else self.model_copy(update={"memory": self.simulated, "simulated": None})
