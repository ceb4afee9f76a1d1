"""What templates write stays data: hostile names in all templates of emit, export and report, and each escape alone."""

import json
import re
import subprocess
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Mapping
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import jinja2
import numpy as np
import pytest
import yaml

from pipeline.api import RunResult, run_recipe
from pipeline.project import Project
from stages.backends.targets.load import load_target
from stages.delivery.export.collect import Run, content_of
from stages.delivery.export.content import Content
from stages.delivery.export.registry import form_of, names
from stages.delivery.export.render import files_of
from stages.ir.models.builder import ModelBuilder
from stages.support.messages.templates import ESCAPES, environment
from stages.support.system.installation import INSTALLATION
from tests.support import exports

# `pwned` is code wherever it is no text.
HOSTILE = [
    "a */ pwned; /* b",
    '"; pwned; "',
    "\\\n pwned;",
    "x\r\npwned\u2028pwned",
    "??/\npwned ???/ ??'",
    "/* pwned **/ pwned //",
    "$(pwned) `pwned` ${pwned} $<pwned>",
    '")\nmessage(FATAL_ERROR pwned)\n#[[',
    "<script>pwned()</script> ]]> --> &amp; <img src=x onerror=pwned()>",
    "a: [pwned, {b: c}] # d | e",
    "| pwned | [pwned](javascript:pwned) *b* _c_",
    "na\u00efve \u202e \u00a0 \x00 \x1b[2J \ud800 \U0001f600",
    "%s%n' ''' \" \\",
    *("*", "/", "*/", "\\", "?", "-", "", " ", "null", "yes", "1e5", "~", "@pwned"),
]


@pytest.mark.parametrize("text", HOSTILE)
def test_code_of_c_is_not_reached(tmp_path: Path, text: str) -> None:
    template = '/* {{ x }} */ char a[] = "{{ x }}"; // {{ x }}\n/*{{ x }}*/ char b[] = "{{ x }}{{ x }}";\n'
    made = environment(jinja2.DictLoader({"x.c.j2": template})).get_template("x.c.j2").render(x=text)
    assert made.count("\n") == 2
    (tmp_path / "x.c").write_text(made)
    strict = ("-std=c99", "-trigraphs", "-Wall", "-Wcomment", "-Werror", "-Dpwned=@", "-fsyntax-only")
    subprocess.run(["gcc", *strict, tmp_path / "x.c"], check=True, capture_output=True)


def test_values_of_cmake(tmp_path: Path) -> None:
    """One script with all of them: none is a command, each is one argument."""
    template = '# {{ x }}\nset(found "{{ x }}")\nlist(LENGTH found count)\nfile(APPEND "out" "{{ x }}\\n")\n'
    made = environment(jinja2.DictLoader({"CMakeLists.txt.j2": template})).get_template("CMakeLists.txt.j2")
    script = "".join(made.render(x=text) for text in HOSTILE)
    (tmp_path / "x.cmake").write_text(script)
    done = subprocess.run(["cmake", "-P", "x.cmake"], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert "pwned" not in done.stderr
    assert len((tmp_path / "out").read_text().splitlines()) == len(HOSTILE)


@pytest.mark.parametrize("text", HOSTILE)
def test_formats_give_the_text_back(text: str) -> None:
    def rendered(name: str, template: str) -> str:
        return environment(jinja2.DictLoader({name: template})).get_template(name).render(x=text)

    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    read = yaml.safe_load(rendered("x.yml.j2", "a: {{ x }}\nb: {{ ('<' ~ x ~ '>') | yaml_text }}\n{{ x }}: c\n"))
    assert read == {"a": whole, "b": f"<{whole}>", whole: "c"}
    root = ElementTree.fromstring(rendered("x.pdsc.j2", '<a b="{{ x }}">{{ x }}</a>'))
    unheard = re.sub("[\x00\x1b\ud800]", lambda one: repr(one[0])[1:-1], text)
    assert root.text == (re.sub("\r\n?", "\n", unheard) or None)
    for name in ("Kconfig.j2", "x.properties.j2", "x.rst.j2", "x.md.j2", "x.conf.j2", "unknown"):
        assert len(f"{rendered(name, '{{ x }}')}\n".splitlines()) == 1
    assert not re.search(r"[$\"'`\\<>|]", rendered("Kconfig.j2", "{{ x }}"))
    assert not re.search(r"(?<!\\)[`*<|]", rendered("x.md.j2", "{{ x }}.").replace("*", "", text.count("*") == 1))


PATH = 'in */ pwned; /* "q" `id` $(pwned) ${pwned} <script>pwned()</script> ]]> | ??/ \u00ef.npy'
NAME = "\n".join(HOSTILE[:6])


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    """A network whose file, tensors and input have hostile names, on the host as far as the report."""
    root = tmp_path_factory.mktemp("hostile")
    b = ModelBuilder()
    x = b.input(f"x {NAME}", (1, 4, 4, 2), "int8", 0.05, -3)
    y = b.max_pool2d(x, (2, 2), (2, 2), name=f"pool {NAME}")
    weights = np.ones((3, 8), np.int8)
    b.output(b.fully_connected(y, weights, np.zeros(3, np.int32), weight_scale=0.01, out=(0.1, 0), name=f"fc {NAME}"))
    model = root / "net *" / ' pwned; "$(pwned)" <script>.tflite'
    model.parent.mkdir(parents=True)
    model.write_bytes(b.build())
    (root / PATH).parent.mkdir(parents=True)
    np.save(root / PATH, np.ones((1, 4, 4, 2), np.int8))
    inputs = {"random": 0, "extremes": False, "files": [str(root / PATH.replace("[", "[[]"))]}
    recipe = {"schema": 1, "name": "net", "target": "host", "model": {"file": str(model)}}
    stages = {"emit": {"prefix": "net", "weights": "c"}, "simulate": {"inputs": inputs}}
    return run_recipe({**recipe, "stages": stages}, root=Project(root), store=root / "store")


@pytest.fixture(scope="module")
def content(run: RunResult) -> Content:
    """What exports have, with names that checks would have refused before as well."""
    made = content_of([Run(run.artifacts, "net")], load_target("host"), form=form_of("cmake"), version="0.1.0")
    (network,) = made.networks
    hostile = {"name": NAME, "core": NAME}
    return replace(
        made,
        networks=(
            replace(
                network,
                title=NAME,
                verified=NAME,
                sample=replace(network.sample, name=PATH),
                model={**network.model, "name": NAME},
            ),
        ),
        overrides=NAME,
        target=made.target.model_copy(update=hostile),
    )


def in_code(text: str) -> str:
    """C without its comments and strings, read as a compiler with trigraphs does."""
    text = text.replace("??/", "\\").replace("\\\n", "")
    token = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)
    return token.sub(" ", text)


def c_files(files: Mapping[str, bytes]) -> Iterator[tuple[str, str]]:
    for path, data in files.items():
        if path.endswith((".c", ".h", ".S", ".ino", ".cpp")):
            yield path, data.decode()


@pytest.mark.parametrize(
    ("form", "several"),
    [(form, several) for form in names() for several in (False, True) if form_of(form).several or not several],
)
def test_exports(content: Content, form: str, several: bool, tmp_path: Path) -> None:
    if several:
        (network,) = content.networks
        content = replace(content, name="net_second", networks=(network, replace(network, name="second")))
    files = files_of(form_of(form), content)
    assert any(b"pwned" in data for data in files.values())
    for path, text in c_files(files):
        assert "pwned" not in in_code(text), path
    for path, data in files.items():
        text = "" if path.endswith((".bin", ".pack")) else data.decode()
        if path.endswith((".yml", ".yaml")):
            read = yaml.safe_load(text)
            described = read.get("description") or read.get("sample", {}).get("description")
            assert described is None or NAME in described
        elif path.endswith(".pdsc"):
            assert NAME.replace("\r\n", "\n") in (ElementTree.fromstring(text).findtext("description") or "")
        elif path.endswith(".json"):
            assert NAME in json.loads(text)["description"]
        elif path.endswith("README.md"):
            outside = re.sub(r"^```.*?^```|^    [^\n]*|`[^`\n]*`", "", text, flags=re.DOTALL | re.MULTILINE)
            assert "pwned" in outside and not re.search(r"(?<!\\)<script|\n *pwned|(?<!\\)`", outside)
        elif path.endswith((".properties", "Kconfig", ".conf", ".ini", ".cmake", "CMakeLists.txt", ".rst")):
            assert not re.search(r"^\s*pwned\b|\$\(pwned|\$\{pwned", text, re.MULTILINE), path
    if form == "cmake" and not several:
        exports.written(tmp_path, form, content)
        sources = ["-I", tmp_path / "src", "-I", tmp_path / "src/net", tmp_path / "example/main.c"]
        strict = ("-std=c11", "-trigraphs", "-Wall", "-Wextra", "-Werror", "-Dpwned=@", "-fsyntax-only")
        subprocess.run(["gcc", *strict, *sources], check=True, capture_output=True)


def test_emitted_sources(run: RunResult) -> None:
    src = run.artifacts["emit"] / "src"
    files = {str(path.relative_to(src)): path.read_bytes() for path in src.rglob("*") if path.is_file()}
    assert b"pwned" in files["model.c"] and b"pwned" in files["model.h"]
    for path, text in c_files(files):
        assert "pwned" not in in_code(text), path
    strict = ("-std=c11", "-trigraphs", "-Wall", "-Werror", "-Dpwned=@", "-fsyntax-only")
    subprocess.run(["gcc", *strict, *src.glob("*.c"), "-I", src], check=True, capture_output=True)


class _Tags(HTMLParser):
    """Elements with their attributes, and the text of scripts."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}


def test_report(run: RunResult) -> None:
    page = _Tags()
    page.feed((run.folder / "report.html").read_text())
    assert page.tags.count("script") == 1 and not any(name.startswith("on") for name in page.attributes)
    markdown = (run.folder / "report.md").read_text()
    assert "pwned" in markdown and not re.search(r"(?<!\\)<script|^pwned", markdown, re.MULTILINE)
    for svg in run.folder.glob("*.svg"):
        ElementTree.fromstring(svg.read_text())


def test_every_template_has_a_kind() -> None:
    """A new kind of file is added to the table, or is plain on purpose."""
    plain = {"Kconfig.j2", "library.properties.j2", "keywords.txt.j2", "platformio.ini.j2", "prj.conf.j2"}
    from stages.support.messages.templates import kind_of

    found = [path for folder in ("stages", "pipeline") for path in (INSTALLATION / folder).rglob("*.j2")]
    assert found and {path.name for path in found if kind_of(path.name) == "plain"} == plain
    assert {kind_of(path.name) for path in found} <= ESCAPES.keys()
