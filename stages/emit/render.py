"""Render the files of src/ from templates, and describe them in model.json."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from errno import ENOENT
from pathlib import Path
from typing import Any

from stages.backends.kernels.folder import KernelFolder
from stages.backends.targets.spec import Target
from stages.emit.blob import HEADER_BYTES, Blob, fingerprint
from stages.emit.config import EmitConfig
from stages.emit.helpers import c_string, conversions
from stages.emit.model import Block, Model, Place
from stages.emit.model_json import model_json
from stages.emit.requirement import architecture_flags, requirements
from stages.emit.reset import reset_of
from stages.emit.rows import emitted_c, group_c, pushed_c
from stages.emit.weights import rows
from stages.ir.graph import Layer, Tensor
from stages.lower.codegen.layers import FLOAT_VECTORS, LayerFunction, call
from stages.lower.codegen.printer import ctype
from stages.support.messages import templates

_NAME_LENGTH = 80
_TEMPLATES = Path(__file__).resolve().parent / "templates"


@dataclass(frozen=True)
class KernelFiles:
    """The kernel files in src/kernels (`folder/file`), and the kernel folders by name."""

    files: Sequence[str]
    folders: Mapping[str, KernelFolder]

    def used(self) -> list[KernelFolder]:
        """Return the folders of the files, sorted by name."""
        names = {file.partition("/")[0] for file in self.files}
        return [self.folders[name] for name in sorted(names & self.folders.keys())]

    def sources(self, suffix: str) -> list[str]:
        """Return the paths in src/ of the files with this suffix."""
        return [f"kernels/{file}" for file in self.files if file.endswith(suffix)]

    def flags(self, path: str) -> tuple[str, ...]:
        """Return the additional compiler flags of a file in src/."""
        kernels, _, file = path.partition("/")
        folder = self.folders.get(file.partition("/")[0]) if kernels == "kernels" else None
        return folder.flags if folder else ()


def render(
    model: Model,
    src: Path,
    config: EmitConfig,
    target: Target,
    name: str,
    kernels: KernelFiles,
    sample_rate: int | None = None,
) -> dict[str, Any]:
    """Write src/ except the kernels; return the content of model.json."""
    context = _context(model, config, target, name, kernels)
    context["sample_rate"] = sample_rate
    contents = [placed.data for placed in model.placed.weights]
    if config.is_blob:
        blob = Blob(_fingerprint(context, src, kernels), contents[0][HEADER_BYTES:])
        context["blob"] = {"start": rows(blob.start()), "fingerprint": rows(blob.fingerprint)}
        contents = [blob.packed()]
    files = {"model.h", "model.c", "layers.h", "layers.c", "model_trace.h", "model_trace.c", "CMakeLists.txt"}
    if context["weights"]:
        files |= {"weights.h", "weights.c" if config.is_array else "weights.S"}
        for block, content in zip(context["weights"], contents, strict=True):
            block["rows"] = rows(content) if config.is_array else []
            if not config.is_array:
                (src / block["file"]).write_bytes(content)
    for file in sorted(files):
        (src / file).write_text(_template(f"{file}.j2").render(context))
    described = model_json(model, context, name, kernels.flags)
    return {**described, "fingerprint": blob.fingerprint.hex()} if config.is_blob else described


def _fingerprint(context: Mapping[str, Any], src: Path, kernels: KernelFiles) -> bytes:
    """Return the fingerprint of what a blob of weights depends on.

    These are the kernels, the layers, their calls, the offsets of constants, the first values of the state, and types
    and shapes of inputs and outputs. The prefix of names, and where the arena lies, do not matter.
    """
    code = {file: (src / "kernels" / file).read_text(encoding="utf-8") for file in kernels.files}
    code |= {file: _template(f"{file}.j2").render(context) for file in ("layers.h", "layers.c")}
    code["calls"] = "\n".join(line for layer in context["layers"] for line in (*layer["ahead"], layer["call"]))
    if context["by_rows"]:
        code["rows"] = "\n".join(line for group in context["by_rows"] for line in (*group["start"], *group["body"]))
    code["offsets"] = "\n".join(line for block in context["weights"] for line in block["places"])
    code["state"] = str([(reset["rows"], reset["value"]) for block in context["state"] for reset in block["resets"]])
    ports = ("ctype", "bytes", "shape")
    code["ports"] = str([[port[key] for key in ports] for port in context["ports"]])
    return fingerprint(code, context["prefix"])


def comment(text: str) -> str:
    """Shorten a text of the model and make it safe for a C comment.

    Converters join the names of fused operators with semicolons; only the first is used.
    """
    text = text.partition(";")[0]
    if len(text) > _NAME_LENGTH:
        text = f"...{text[-_NAME_LENGTH:]}"
    return templates.c(text)


def _template(name: str) -> Any:
    from jinja2 import TemplateNotFound

    try:
        return _environment().get_template(name)
    except TemplateNotFound as error:
        # Report it like any other missing file.
        raise FileNotFoundError(ENOENT, "No such file or directory", str(_TEMPLATES / str(error))) from None


def _environment() -> Any:
    from jinja2 import FileSystemLoader

    return templates.environment(FileSystemLoader(_TEMPLATES))


def _context(model: Model, config: EmitConfig, target: Target, name: str, kernels: KernelFiles) -> dict[str, Any]:
    functions = [function for index in sorted(model.functions) for function in _functions(model, index)]
    by_rows = {group.first: group_c(model, number, group) for number, group in enumerate(model.plan.groups)}
    library = {header for function in model.functions.values() for header in function.headers}
    attachment = model.plan.attachment
    drivers = [f'"kernels/{header}"' for header in attachment.headers] if attachment else []
    kernel_headers = {h for layer in model.plan.layers for h in layer.headers} | (library & {FLOAT_VECTORS})
    headers = {f'"kernels/{header}"' for header in kernel_headers} | set(drivers)
    macro = config.prefix.upper()
    inputs = [_port(model, f"{macro}_INPUT{i}", n) for i, n in enumerate(model.graph.inputs)]
    outputs = [_port(model, f"{macro}_OUTPUT{i}", n) for i, n in enumerate(model.graph.outputs)]
    c = ["model.c", "layers.c", *kernels.sources(".c")]
    assembly = kernels.sources(".S")
    if model.placed.weights_bytes:
        (c if config.is_array else assembly).insert(0, "weights.c" if config.is_array else "weights.S")
    streamed = {layer.index for group in model.plan.groups for layer in group.layers}
    layers = [
        _layer(model, layer) | {"rows": by_rows.get(layer.index), "streamed": layer.index in streamed}
        for layer in model.graph.layers
    ]
    arenas = [_block(block, config.prefix) for block in model.arenas]
    weights = [
        _block(block, config.prefix)
        for block, placed in zip(model.weights, model.placed.weights, strict=True)
        if placed.data
    ]
    resets = [reset_of(model, name) | {"comment": comment(name)} for name in model.state_offsets]
    state = [{**_block(model.state, config.prefix), "resets": resets}] if resets else []
    return {
        "prefix": config.prefix,
        "macro": macro,
        "requirements": requirements(kernels.used(), target),
        "flags": architecture_flags(target),
        "ports_bool": any(port["ctype"] == "bool" for port in inputs + outputs),
        "name": "".join(ch if ch.isascii() and (ch.isalnum() or ch in "_-.") else "_" for ch in name),
        "target": model.plan.target,
        "alignment": config.alignment,
        "arena_bytes": model.placed.arena_bytes,
        "arenas": arenas,
        "state": state,
        "memories": [*arenas, *state],
        "arena_parameters": ", ".join(
            f"void *{block['memory']}, size_t {block['count']}" for block in [*arenas, *state]
        ),
        "arena_handed": ", ".join(f"{block['memory']}, {block['count']}" for block in [*arenas, *state]),
        "symbols": [block["symbol"] for block in [*arenas, *state]],
        "caller": config.arena == "caller",
        "init": _init(config, arenas, state, weights),
        "blob": {"start": [], "fingerprint": []} if config.is_blob else None,  # `render` fills it in
        "weights_bytes": model.placed.weights_bytes,
        "weights": weights,
        "inputs": inputs,
        "outputs": outputs,
        "ports": inputs + outputs,
        "converted": conversions(inputs + outputs, config.prefix),
        "class_names": [c_string(name) for name in config.class_names or ()],
        "layers": layers,
        "overwrites_input": any(
            g.source in model.graph.inputs and (g.distance is not None or g.tensors[g.output].place_of == g.source)
            for g in model.plan.groups
        ),
        "by_rows": list(by_rows.values()),
        "appends": any(
            group["fields"] or any("add_rows(" in line for line in group["body"]) for group in by_rows.values()
        ),
        "fills": any("fill_rows(" in line for group in by_rows.values() for line in group["start"] + group["body"]),
        "pushed": next((pushed_c(model, g, by_rows[g.first]) for g in model.plan.groups if g.pushed), None),
        "emitted": next((emitted_c(g) for g in model.plan.groups if g.emitted), None),
        "functions": functions,
        "includes": (["<math.h>"] if "<math.h>" in library else []) + sorted(headers),
        "uses_math": "<math.h>" in library,
        "uses_bool": "<stdbool.h>" in library,
        "attachment": attachment,
        "drivers": drivers,
        "traces": _traces(model, config.prefix),
        "c": c,
        "assembly": assembly,
        "flags_of": {path: " ".join(kernels.flags(path)) for path in (*c, *assembly) if kernels.flags(path)},
    }


def _init(
    config: EmitConfig,
    arenas: Sequence[Mapping[str, Any]],
    state: Sequence[Mapping[str, Any]],
    weights: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """Return the function `init` for the templates.

    parameters  declarations; `void` without one
    arguments   those of the test harness
    example     those of the example in model.h
    fails       whether it returns a status
    """
    parameters, arguments, example = [], [], []
    if config.arena == "caller":
        for block in (*arenas, *state):
            parameters.append(f"void *{block['memory']}, size_t {block['count']}")
            arguments.append(f"{block['symbol']}, {block['macro']}_BYTES")
            example.append(f"{block['name']}, sizeof {block['name']}")
    if config.is_blob:
        parameters.append("const void *weights, size_t weights_bytes")
        arguments.append(f"{weights[0]['symbol']}, {weights[0]['macro']}_BYTES")
        example.append(arguments[-1])
    return {
        "parameters": ", ".join(parameters) or "void",
        "arguments": ", ".join(arguments),
        "example": ", ".join(example),
        "fails": bool(parameters),
    }


def port_quantization(tensor: Tensor) -> tuple[float, int]:
    """Return scale and zero point of an input or output; (1.0, 0) if it has none or several."""
    if tensor.quant is None or len(tensor.quant.scale) != 1:
        return 1.0, 0
    return tensor.scale, tensor.zero_point


def _port(model: Model, macro: str, name: str) -> dict[str, Any]:
    tensor = model.graph.tensors[name]
    quantized = tensor.quant is not None and len(tensor.quant.scale) == 1
    scale = f"{tensor.scale:.9g}" if quantized else "1.0"
    return {
        "macro": macro,
        "comment": f"{comment(name)}: {_shape(tensor)} {tensor.dtype}",
        "name": name,
        "ctype": ctype(tensor.dtype),
        "is_quantized": quantized,
        "bytes": tensor.bytes,
        "shape": tensor.shape,
        "scale": (scale if "." in scale or "e" in scale else f"{scale}.0") + "f",
        "zero_point": tensor.zero_point,
        "place": model.port(name),
    }


def _block(block: Block, prefix: str) -> dict[str, Any]:
    """Return a block for the templates. Call it after all places were requested.

    symbol         name of the variable
    macro          prefix of its macros, such as KWS_ARENA_DTCM
    pointer        function that converts an offset to an address
    memory, count  parameters of init for an arena
    file           file of the weights
    """
    name = f"{block.part}{block.suffix}"
    lead = "state_" if block.part == "state" else f"{block.region}_" if block.suffix else ""
    return {
        "region": block.region,
        "loaded_from": block.loaded_from,
        "rules": list(block.rules),
        "name": name,
        "symbol": f"{prefix}_{name}",
        "macro": f"{prefix}_{name}".upper(),
        "pointer": block.pointer,
        "bytes": block.bytes,
        "memory": f"{lead}memory",
        "count": f"{lead}bytes",
        "file": f"{name}.bin",
        "places": _places(block.places.values()),
    }


def _places(places: Iterable[Place]) -> list[str]:
    """Return the lines of an enum, each name once: `LAYER_003_BIAS = 1024, /* comment */`."""
    lines = {}
    for place in places:
        text = f"{place.name} = {place.offset},"
        lines[place.name] = f"{text:<32} /* {comment(place.what)}{place.when} */" if place.what else text
    return list(lines.values())


def _layer(model: Model, layer: Layer) -> dict[str, Any]:
    function = model.functions.get(layer.index)
    return {
        "index": layer.index,
        "comment": _layer_comment(model, layer),
        "ahead": [_call(model, *pair) for pair in model.ahead.get(layer.index, ())],
        "call": _call(model, layer.index, function) if function and not model.plan.layers[layer.index].rows else "",
    }


def _call(model: Model, index: int, function: LayerFunction) -> str:
    return call(function.name, [model.argument(index, role) for role in function.roles])


def _layer_comment(model: Model, layer: Layer) -> list[str]:
    """Return two comment lines: the layer, and its shapes and kernel."""
    entry = model.plan.layers[layer.index]
    shapes = [" + ".join(_shape(model.graph.tensors[n]) for n in names) for names in (layer.inputs, layer.outputs)]
    kernel = "same memory, nothing to do" if entry.kernel == "alias" else f"kernel {entry.kernel}"
    if layer.index in model.lives.in_place:
        kernel += ", in place"
    return [f"{layer.index:3d}  {layer.kind}  {comment(layer.name)}", f"     {shapes[0]} -> {shapes[1]}, {kernel}"]


def _functions(model: Model, index: int) -> list[dict[str, Any]]:
    """Return the layer's function, after the functions that it calls ahead for later layers."""
    comment = [line.strip() for line in _layer_comment(model, model.graph.layers[index])]
    functions = [_function(model.functions[index], comment)]
    ahead = [
        _function(function, [f"What layer {later} needs first, brought from layer {index} on."])
        for later, function in model.ahead.get(index, ())
    ]
    rest = [_function(model.rests[index], [f"{comment[0]}: the last rows"])] if index in model.rests else []
    result = [_function(model.results[index], [f"{comment[0]}: from all rows"])] if index in model.results else []
    return [*ahead, *functions, *rest, *result]


def _function(function: LayerFunction, comment: Sequence[str]) -> dict[str, Any]:
    return {
        "name": function.name,
        "signature": function.text.signature,
        "body": function.text.body,
        "attributes": function.text.attributes,
        "comment": comment,
        "steps": list(function.steps),
    }


def _traces(model: Model, prefix: str) -> list[dict[str, Any]]:
    """Return the outputs and states of all layers that the imported file has."""
    return [
        {
            "layer": layer.index,
            "tensor": name,
            "rows": model.plan.layers[layer.index].rows is not None,
            **_trace_place(*model.where(name), prefix),
            "bytes": model.graph.tensors[name].bytes,
            "comment": comment(name),
        }
        for layer in model.graph.layers
        for name in (*layer.outputs, *layer.state)
        if model.graph.tensors[name].tflite_index is not None
        and (name in model.lives.home or name in model.state_offsets)
    ]


def _trace_place(block: Block, offset: int, prefix: str) -> dict[str, Any]:
    return {"symbol": f"{prefix}_{block.part}{block.suffix}", "offset": offset}


def _shape(tensor: Tensor) -> str:
    text = "x".join(str(extent) for extent in tensor.shape) or "scalar"
    return text if tensor.layout in ("", "NHWC") else f"{text} {tensor.layout}"
