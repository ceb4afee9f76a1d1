"""A target: a core with the memory of one board.

A core has an instruction set, a compiler, kernels, and a way to count instructions. `pipeline.yaml` declares cores and
boards (stages.backends.targets.catalogue). Both are targets. A core has the memory of its simulator's machine, a board
its own.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, computed_field, model_validator

from stages.backends.targets.attached import Engine
from stages.backends.targets.chip import ChipNumber
from stages.backends.targets.flash import Flash
from stages.backends.targets.memory import Capacity, Memory, Size
from stages.backends.targets.power import Power
from stages.backends.targets.timing import TimingModel
from stages.backends.targets.vectors import has_vector, vector_bits
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
        """Flags of the compile step.

        One of `compile_flags` replaces the flag of the same name, such as `-march=`.
        """
        replaced = {flag.partition("=")[0] for flag in self.compile_flags if "=" in flag}
        kept = (flag for flag in self.flags if "=" not in flag or flag.partition("=")[0] not in replaced)
        return (*kept, *self.compile_flags)

    @model_validator(mode="after")
    def _one_program(self) -> Compiler:
        if not self.command or " -" in self.command:
            raise mistake(f"'{self.command}' is not the name of a program; its arguments belong in `flags`", "command")
        return self


class Device(StrictModel):
    """A device of the simulated machine, as the simulator or a plug-in of it names it.

    Spike: `--device=NAME,BASE,key=value`; the plug-in gets the base address (if there is one) and the parameters as
    texts. QEMU: `-device NAME,key=value`.
    """

    name: Name
    base: Size | None = None
    parameters: dict[str, str | int] = Field(default_factory=dict)


class Simulator(StrictModel):
    """Simulator of a target, and its options.

    kind       spike, qemu, native, or a plug-in's
    isa        Spike: ISA string
    command    QEMU: the emulator
    machine    QEMU: name of a machine; without it a Linux program runs in user mode on `cpu`
    packages   Debian packages with `command`
    plugins    names of built-in simulator plug-ins (`rvp`), and paths of others: a folder or file with C++ (Spike) or C
               (QEMU), or a library. Paths start at the folder of the file that declares the target
    devices    devices in addition to the machine's
    arguments  further options of the simulator, without file names
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
        """The entries of `plugins` that are paths."""
        return tuple(name for name in self.plugins if "/" in name)

    @model_validator(mode="after")
    def _check(self) -> Simulator:
        if self.kind == "native":
            for name in ("plugins", "devices", "arguments"):
                if getattr(self, name):
                    raise mistake(f"a native program has no simulator, so it has no {name}", name, beside=("kind",))
        for number, device in enumerate(self.devices):
            if device.base is not None and self.kind == "qemu":
                raise mistake("give the address of a QEMU device in its parameters", "devices", number, "base")
        return self


class Core(StrictModel):
    """One entry under `cores:`.

    extensions  instruction-set extensions with the exact draft or version, such as `{rvp: 0.9.11}`
    kernels     names of the folders `stages/backends/<family>/kernels/<name>` whose kernels may be used
    word_bits   XLEN or the register width
    float_lanes  floats that an instruction computes where the compiler vectorizes C; with 4 it has fmaxf and fminf too
    float_registers  registers of so many floats
    vlen        RISC-V: bits of a vector register, for kernels that use vectors; None: they are not used
    memory      memory of the simulator's machine; absent on the host, where the operating system provides it
    timing      name in `timings:` of the model for estimated cycles
    chip        identification numbers for a debugger
    """

    family: Name
    isa: Name
    abi: str = ""
    word_bits: Literal[32, 64]
    vlen: Literal[128, 256, 512] | None = None
    fpu: bool = False
    float_lanes: Literal[1, 4] = 1
    float_registers: int = 32
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
        """Features that kernels may require: family, ISA parts, extensions (with version too).

        Examples: `cortex_m`, `armv8.1-m.main`, `mve.fp`, `mve`, `mve 1.0`; `vlen` for a core with the field.
        """
        versions = (f"{name} {version}" for name, version in self.extensions.items())
        vectors = ("vlen",) if self.vlen else ()
        return frozenset((self.family, *self.isa.split("+"), *self.extensions, *versions, *vectors))

    @property
    def flushes_subnormals(self) -> bool:
        """True if vector instructions flush subnormal floats to zero, as in MVE."""
        return "mve.fp" in self.features

    @property
    def keeps_order(self) -> bool:
        """True if the compiler allocates registers for instructions in the order of the source."""
        return "-fno-schedule-insns" in self.compiler.flags

    @model_validator(mode="after")
    def _computes(self) -> Core:
        if not self.kernels:
            raise mistake("no kernel folder, so no layer can be computed; [generic] runs on every core", "kernels")
        return self

    @model_validator(mode="after")
    def _has_registers(self) -> Core:
        for isa, at, beside in (
            (self.isa, ("word_bits",), ("isa",)),
            (self.simulator.isa, ("simulator", "isa"), ("word_bits",)),
        ):
            bits = {"rv32": 32, "rv64": 64}.get(isa[:4], self.word_bits)
            if bits != self.word_bits:
                raise mistake(f"registers of isa {isa} have {bits} bits", *at, beside=beside)
        return self

    @model_validator(mode="after")
    def _has_vectors(self) -> Core:
        """The core and its simulator have vector registers of `vlen` bits."""
        if self.vlen is None:
            return self
        if not has_vector(self.isa, self.extensions):
            message = f"the core has no RISC-V vectors: neither isa {self.isa} nor extensions have v or zve32x"
            raise mistake(message, "vlen", key=True, beside=("isa",))
        if vector_bits(self.isa) > self.vlen:
            message = f"isa {self.isa} has at least {vector_bits(self.isa)} bits"
            raise mistake(message, "vlen", beside=("isa",))
        bits = vector_bits(self.simulator.isa)
        if self.simulator.kind == "spike" and bits != self.vlen:
            message = f"the simulator has a VLEN of {bits}; add zvl{self.vlen}b to its isa, {self.simulator.isa}"
            raise mistake(message, "vlen", beside=("simulator", "isa"))
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
    """Facts about a board for reports: `title`, `clock` in Hz, `source` of both, `power`."""

    title: str
    clock: int | None = None
    source: str = ""
    power: Power | None = None


class Target(Core):
    """Target of a recipe: a board, or a core by itself.

    name          name in the recipe, of the board or the core
    core          name of the core; measured costs belong to it
    board         facts about the board, None for a core by itself
    simulated     memory map of the simulation if the simulator has no machine with the board's map: the board's
                  regions, moved (and shortened, if necessary) to memory of the core's machine
    accelerator   the engine next to the core, or None
    timing_model  the model that `timing` names, or None
    flash         the board's memory with wait states, or their bounds if unknown; None for a core
    chip          identification numbers of the core, then of the board
    alone         for a board: its core by itself; kernels are counted on it
    places        paths on this machine of plug-ins: simulator plug-ins by their paths as written, kernel
                  folders and simulators as `kernels/acme` and `simulators/renode`. Not part of any key
    modules       the modules of these, by the same names
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
        """Capacities for `weights` and `arena`, the fastest first.

        Empty if each has one region and nothing is copied.
        """
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
