"""Files of plug-ins that a target uses: kernels, accelerators, simulators, their plug-ins."""

from collections.abc import Sequence
from pathlib import Path

from stages.backends.targets.spec import Target
from stages.support.messages.stage_error import StageError
from stages.support.system.loaded_code import package_files


def with_places(target: Target, folders: Sequence[Path]) -> Target:
    """Return the target with the location of each of its paths, searched in `folders` in order.

    Raises StageError for a missing path; it names the value below the core.
    """
    places = dict(target.places)
    for name in target.simulator.outside:
        existing = next((folder / name for folder in folders if (folder / name).exists()), None)
        if existing is None:
            at = ("simulator", "plugins", target.simulator.plugins.index(name))
            raise StageError(f"there is no plug-in {name}", hint="paths start at the folder of this file", at=at)
        places[name] = existing
    return target.model_copy(update={"places": places})


def plugin_code(target: Target) -> dict[str, Path]:
    """Return the files of the simulator plug-ins that are not built in, by name."""
    return {
        name if path == place else f"{name}/{path.name}": path
        for name in target.simulator.outside
        for place in [target.places[name]]
        for path in plugin_files(place)
    }


def kernel_code(target: Target) -> dict[str, Path]:
    """Return the files of the kernel folders that are not built in, by name."""
    places = [target.places[f"kernels/{name}"] for name in target.kernels if f"kernels/{name}" in target.places]
    return {f"kernels/{name}": path for place in places for name, path in package_files(place).items()}


def accelerator_code(target: Target) -> dict[str, Path]:
    """Return the files of a plug-in accelerator, without its device (`device_code`)."""
    name = "" if target.accelerator is None else f"accelerators/{target.accelerator.kind}"
    place = target.places.get(name)
    if place is None:
        return {}
    files = package_files(place).items()
    return {f"accelerators/{file}": path for file, path in files if place / "device" not in path.parents}


def simulator_code(target: Target) -> dict[str, Path]:
    """Return the files of a simulator that is not built in."""
    place = target.places.get(f"simulators/{target.simulator.kind}")
    return {} if place is None else {f"simulators/{name}": path for name, path in package_files(place).items()}


def device_code(target: Target) -> dict[str, Path]:
    """Return the files of the simulated device of an accelerator that is not built in."""
    name = f"accelerators/{target.accelerator.kind}" if target.accelerator is not None else ""
    folder = target.places[name] / "device" if name in target.places else None
    return {} if folder is None or not folder.is_dir() else {f"{name}/{p.name}": p for p in plugin_files(folder)}


def plugin_files(place: Path) -> list[Path]:
    """Return the files of one plug-in: those in its folder, or the single file."""
    if not place.is_dir():
        return [place]
    return sorted(path for path in place.iterdir() if path.is_file() and not path.name.startswith("."))
