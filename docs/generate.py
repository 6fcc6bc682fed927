"""Generates the reference pages from code and docstrings: `python docs/generate.py`; `--check` only compares.

Nothing in these pages is written by hand: a text that is wrong or missing is changed where the code has it. Signatures
and docstrings are read from the source, so that annotations stand as they are written.
"""

from __future__ import annotations

import ast
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from typer.main import get_command

import moot
from moot.actors.meter import METRICS
from moot.actors.models.simulated.settings import SimulatedSettings
from moot.actors.record.schema import COLUMNS, KEYS, ROWS
from moot.deploy.cli.main import app
from moot.deploy.running.flags import flags_of
from moot.protocols.registry import setting_keys
from moot.protocols.templates import template_headers

ROOT = Path(__file__).resolve().parents[1]
REFERENCE = ROOT / "docs" / "reference"
COMMAND = "python docs/generate.py"
_HEAD = f"<!-- Generated: change the code or its docstrings, then run `{COMMAND}`. -->\n"
_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_ITEM = re.compile(r"(\*{0,2}\w+(?:, \w+)*): (.*)", re.DOTALL)
_YAML = re.compile(r"\b(None|True|False)\b")
_CODE = re.compile(r"(`[^`]*`)")


# Markdown


def _page(title: str, *parts: str) -> str:
    return "\n\n".join([_HEAD + f"# {title}", *(part.strip("\n") for part in parts if part)]) + "\n"


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


def _prose(text: str) -> str:
    """Text of a docstring as Markdown: nothing outside of code is markup."""
    parts = _CODE.split(" ".join(text.split()))
    return "".join(each if i % 2 else re.sub(r"([*<\[\]])", r"\\\1", each) for i, each in enumerate(parts))


def _paragraphs(text: str) -> Iterator[str]:
    """The paragraphs of a docstring as Markdown: prose, lists as they stand, examples as code."""
    for block in re.split(r"\n\s*\n", text):
        if block.lstrip().startswith(">>>"):
            yield f"```pycon\n{textwrap.dedent(block)}\n```"
            continue
        head, _, body = block.partition("\n")
        if head in ("Returns:", "Yields:"):
            yield f"{head} {_prose(body)}"
        elif head in ("Args:", "Attributes:", "Raises:"):
            yield head
            yield "\n".join(_items(body))
        elif block.startswith("- "):
            yield "\n".join(f"- {_prose(item)}" for item in re.split(r"(?:^|\n)- ", block) if item)
        else:
            yield _prose(block)


def _items(body: str) -> Iterator[str]:
    for item in re.split(r"\n(?=\S)", textwrap.dedent(body)):
        named = _ITEM.match(item)
        names = [] if named is None else named[1].split(", ")
        yield f"- {', '.join(map(_code, names))}: {_prose(named[2])}" if named else f"- {_prose(item)}"


def _docstring(node: ast.AST) -> str:
    """A docstring as Markdown."""
    return "\n\n".join(_paragraphs(ast.get_docstring(node) or ""))  # type: ignore[arg-type]


def _first_line(text: str) -> str:
    return _prose(re.split(r"\n\s*\n", text)[0])


# Source


@cache
def _module(name: str) -> ast.Module:
    place = ROOT.joinpath(*name.split(".")[1:])
    file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    return ast.parse((ROOT / "moot" / "__init__.py" if name == "moot" else file).read_text("utf-8"))


def _dotted(file: Path) -> str:
    """The name of a module."""
    return ".".join(("moot", *file.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")


def _source(node: ast.AST) -> str:
    """The source of an expression, with the quotes of this project."""
    return re.sub(r"'([^'\"\\]*)'", r'"\1"', ast.unparse(node))


def _imports(tree: ast.Module) -> dict[str, str]:
    """By name, the module of ours that it is imported from."""
    found = (
        node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and str(node.module).startswith("moot")
    )
    return {alias.asname or alias.name: str(node.module) for node in found for alias in node.names}


def _statement(module: str, name: str) -> tuple[str, ast.stmt, str]:
    """Where a name is defined: the module, the statement, and the text below it, if any."""
    tree = _module(module)
    found = None
    for node, below in zip(tree.body, [*tree.body[1:], None], strict=True):
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        if getattr(node, "name", None) == name or any(getattr(each, "id", None) == name for each in targets):
            said = below.value if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant) else None
            found = module, node, str(said.value) if said and targets else ""
    return found or _statement(_imports(tree)[name], name)


def _signature(node: _Definition, name: str = "") -> str:
    """A definition as it would stand in a stub, in one line if it fits."""
    name = name or node.name
    if isinstance(node, ast.ClassDef):
        bases = [_source(base) for base in node.bases]
        return f"class {name}({', '.join(bases)})" if bases else f"class {name}"
    given = [part for part in _arguments(node.args) if part not in ("self", "cls")]
    kind = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    returns = f" -> {_source(node.returns)}" if node.returns else ""
    line = f"{kind} {name}({', '.join(given)}){returns}"
    return (
        line if len(line) <= 100 else "\n".join([f"{kind} {name}(", *(f"    {each}," for each in given), f"){returns}"])
    )


def _arguments(of: ast.arguments) -> Iterator[str]:
    positional = [*of.posonlyargs, *of.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(of.defaults))
    for number, (each, default) in enumerate(zip(positional, [*defaults, *of.defaults], strict=True), start=1):
        yield _argument(each, default)
        if number == len(of.posonlyargs):
            yield "/"
    if of.vararg or of.kwonlyargs:
        yield f"*{_argument(of.vararg) if of.vararg else ''}"
    for each, default in zip(of.kwonlyargs, of.kw_defaults, strict=True):
        yield _argument(each, default)
    if of.kwarg:
        yield f"**{_argument(of.kwarg)}"


def _argument(given: ast.arg, default: ast.expr | None = None) -> str:
    name = f"{given.arg}: {_source(given.annotation)}" if given.annotation else given.arg
    return name if default is None else f"{name}{' = ' if given.annotation else '='}{_source(default)}"


def _is_public(node: ast.stmt) -> bool:
    return isinstance(node, _Definition) and not node.name.startswith("_")


def _described(node: ast.stmt, level: int, below: str = "") -> str:
    """The entry of a function, a class with its public methods, or a constant with the text below it."""
    if not isinstance(node, _Definition):
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target  # type: ignore[attr-defined]
        return f"{'#' * level} `{_source(target)}`\n\n{_prose(below)}"
    parts = [f"{'#' * level} `{node.name}`", f"```py\n{_signature(node)}\n```", _docstring(node)]
    if isinstance(node, ast.ClassDef):
        fields = [
            each for each in node.body if isinstance(each, ast.AnnAssign) and not _source(each.target).startswith("_")
        ]
        lines = [f"    {_source(each.target)}: {_source(each.annotation)}{_simple(each.value)}" for each in fields]
        parts[1] = "\n".join([f"```py\n{_signature(node)}{':' if lines else ''}", *lines, "```"])
        parts += [_method(node, each) for each in node.body if _is_public(each)]
    return "\n\n".join(part for part in parts if part)


def _simple(value: ast.expr | None) -> str:
    return "" if value is None or isinstance(value, ast.Call) else f" = {_source(value)}"


def _method(owner: ast.ClassDef, node: Any) -> str:
    marks = {_source(mark) for mark in node.decorator_list}
    if marks & {"property", "cached_property"}:
        head = f"{owner.name}.{node.name}: {_source(node.returns)}"
    else:
        head = _signature(node, f"{owner.name}.{node.name}")
    return f"```py\n{head}\n```\n\n{_docstring(node)}"


# Settings


def _default(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if value is None:
        return "none"
    if isinstance(value, BaseModel):
        return str(getattr(value, "name", "defaults"))
    return f"{value:g}" if isinstance(value, float) else str(value) or "empty"


def _values(schema: dict[str, Any], within: dict[str, Any]) -> str:
    """What a JSON schema lets a setting be, in words."""
    if "$ref" in schema:
        schema = within[schema["$ref"].rpartition("/")[2]]
    if "anyOf" in schema:
        return ", ".join(dict.fromkeys(_values(each, within) for each in schema["anyOf"]))
    if "enum" in schema or "const" in schema:
        return ", ".join(_code(str(each)) for each in schema.get("enum", [schema.get("const")]))
    low, high, above, below = (
        None if (found := schema.get(key)) is None else f"{found:.10g}"
        for key in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
    )
    bounds = [
        f"above {above}" if above else "",
        f"{low} to {high}" if low and high else f"at least {low}" if low else f"at most {high}" if high else "",
        f"below {below}" if below else "",
    ]
    words = {"integer": "whole number", "null": "`none`", "boolean": "`true`, `false`", "string": "text"}
    words |= {"array": "list", "object": "mapping"}
    kind = schema.get("type", "")
    return " ".join(filter(None, [words.get(kind, kind), ", ".join(filter(None, bounds))]))


def _meanings(model: type[BaseModel]) -> dict[str, str]:
    """By field, its description, or what the docstring of its class says of it."""
    of_class: dict[str, str] = {}
    _, node, _ = _statement(model.__module__, model.__name__)
    said = ast.get_docstring(node) or ""  # type: ignore[arg-type]
    for block in re.split(r"\n\s*\n", said):
        if block.startswith("Attributes:\n"):
            for item in re.split(r"\n(?=\S)", textwrap.dedent(block.partition("\n")[2])):
                names, _, text = item.partition(": ")
                of_class |= dict.fromkeys(names.split(", "), text)
    described = {name: info.description for name, info in model.model_fields.items() if info.description}
    return {
        name: _YAML.sub(lambda found: _code(found[0].lower()), text) for name, text in (of_class | described).items()
    }


def _setting(model: type[BaseModel], key: str) -> tuple[type[BaseModel], str, Any]:
    """Of a dotted key: the model whose field it is, the field's name, and its default in the whole tree."""
    *path, name = key.split(".")
    found: Any = model.model_construct()
    for part in path:
        found = getattr(found, part)
    return type(found), name, getattr(found, name, None)


def _settings(model: type[BaseModel], keys: Iterable[str] | None = None) -> str:
    rows = []
    for key in keys or setting_keys(model):
        owner, name, default = _setting(model, key)
        schema = owner.model_json_schema()
        allowed = _values(schema["properties"][name], schema.get("$defs", {}))
        shown = "" if owner.model_fields[name].is_required() else _code(_default(default))
        rows.append((_code(key), shown, allowed, _prose(_meanings(owner)[name])))
    return _table(("key", "default", "values", "meaning"), rows)


def settings_page() -> str:
    """Every setting of a run, of its roles, of its protocols and of the simulated model."""
    run, role = moot.RunConfig, moot.RoleBinding
    cluster = type(run.model_fields["cluster"].default)
    limits = next(each for each in _models_within(run.model_fields["limits"].annotation))
    early_stop = next(each for each in _models_within(role.model_fields["early_stop"].annotation))
    rows = []
    for key, info in run.model_fields.items():
        flags = " ".join(_code(flag) for flag in flags_of(key).split("/") if flag)
        rows.append((_code(key), _code(_default(info.default)), flags, _prose(str(info.description))))
    parts = [
        "Every setting with its default. A key with dots is in a group: `--set gate.tau_d=0.3`, or nested in YAML.",
        "## A run",
        "The keys of a configuration file and of `moot.run(...)`, with the flag of the command line.",
        _table(("key", "default", "flag", "meaning"), rows),
        "## A role",
        "The keys of each entry of `roles`.",
        _settings(role),
        "### `early_stop`",
        _settings(early_stop),
        "## Limits of one model",
        "The keys of each entry of `limits`.",
        _settings(limits),
        "## A cluster",
        "The keys of `cluster`.",
        _settings(cluster),
        *_settings_of_protocols(),
        "## The simulated model",
        "Given in the model's name: `simulated?competence=0.9&latency_ms=50`.",
        _settings(SimulatedSettings),
        "## An analysis",
        "The settings of `moot analyze` and `moot.analyze`.",
        _settings(moot.AnalysisSettings),
    ]
    return _page("Settings", *parts)


def _models_within(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for each in getattr(annotation, "__args__", ()):
        yield from _models_within(each)


def _settings_of_protocols() -> Iterator[str]:
    by_model: dict[type[BaseModel], list[str]] = {}
    for name, entry in moot.PROTOCOLS.items():
        by_model.setdefault(entry.settings_model, []).append(name)
    for model, names in by_model.items():
        yield f"## Protocol {', '.join(_code(name) for name in names)}"
        yield _settings(model)
        different = [
            (
                _code(name),
                _code(key),
                _code(_default(value)),
                "fixed" if key in moot.PROTOCOLS[name].fixed else "default",
            )
            for name in names
            for key, value in {**moot.PROTOCOLS[name].preset, **moot.PROTOCOLS[name].fixed}.items()
        ]
        if different:
            yield "Where one of them differs:"
            yield _table(("protocol", "key", "value", "which is"), different)


# Commands


def commands_page() -> str:
    """Every command of the command line with its arguments and options."""
    root: Any = get_command(app)
    parts = [_prose(root.help), "`moot --version` prints the version; `-h` and `--help` explain each command."]
    for name, command in root.commands.items():
        if not command.hidden:
            parts += [f"## `moot {name}`", _prose(command.help), *_parameters(command)]
    return _page("Commands", *parts)


def _parameters(command: Any) -> Iterator[str]:
    given = command.get_params(command.context_class(command, info_name=command.name))
    shown = [each for each in given if not each.hidden and each.name != "help"]
    arguments = [each for each in shown if each.param_type_name == "argument"]
    words = [_placeholder(each) for each in arguments]
    yield f"```text\nmoot {' '.join([command.name, *words, '[OPTIONS]'])}\n```"
    rows = [(_code(_placeholder(each)), "", _prose(each.help or "")) for each in arguments]
    for each in shown:
        if each.param_type_name != "argument":
            names = " ".join(_code(name) for name in [*each.opts, *each.secondary_opts])
            default = "" if each.default in (None, (), []) or each.is_flag else _code(_default(each.default))
            rows.append((names, default, _prose(each.help or "")))
    if rows:
        yield _table(("argument or option", "default", "meaning"), rows)


def _placeholder(argument: Any) -> str:
    name = argument.metavar or argument.name.upper()
    name += "..." if argument.nargs != 1 and "..." not in name else ""
    return name if argument.required or name.startswith("[") else f"[{name}]"


# Record, templates, metrics, events, Python


def columns_page() -> str:
    """The tables of a record and their columns."""
    tables = [(f"[`{name}`](#{name})", ", ".join(map(_code, KEYS[name])), ROWS[name]) for name in COLUMNS]
    parts = ["The tables of a [record](record.md).", _table(("table", "key", "rows"), tables)]
    for name, columns in COLUMNS.items():
        rows = [
            (
                _code(each.name),
                _code(str(each.kind).replace("item: ", "")),
                "yes" if each.volatile else "",
                each.meaning,
            )
            for each in columns
        ]
        parts += [f"## `{name}`", _table(("column", "type", "volatile", "meaning"), rows)]
    return _page("Record columns", *parts)


def templates_page() -> str:
    """The prompt templates with their slots."""
    intro = """The prompts that come with moot. A protocol of your own may ask with each of them; a folder given with
`--prompts` may replace them, with the same slots. Whoever asks with a template gives every slot of it: `[...]` behind a
slot says that it is a list and what of, `{...}` which keys its mapping has, `(...)` what it holds or that it may be
empty. `{}` inside of `[]` is a list of such mappings. `moot templates` prints this list."""
    rows = [(_code(name), each.readers, each.slots) for name, each in template_headers().items()]
    return _page("Templates", intro, "## Slots", _table(("template", "read by", "slots"), rows))


def metrics_page() -> str:
    """The library of metrics, by module."""
    files = sorted((ROOT / "metrics").rglob("*.py"))
    names = [name for name in map(_dotted, files) if name != "moot.metrics"]
    intro = f"""`moot.metrics` can be used by itself: numbers in, numbers out, without a model, a run or a record.
{_first_line(ast.get_docstring(_module("moot.metrics")) or "")} The metrics that a run exports to Prometheus are
[another list](exported-metrics.md)."""
    index = [
        (f"[`{name}`](#{name.replace('.', '')})", _first_line(ast.get_docstring(_module(name)) or "")) for name in names
    ]
    parts = [intro, _table(("module", "what it computes"), index)]
    for name in names:
        parts += [f"## `{name}`", _docstring(_module(name))]
        parts += [_described(node, 3) for node in _module(name).body if _is_public(node)]
    return _page("Metrics library", *parts)


def exported_metrics_page() -> str:
    """The metrics that a run exports to Prometheus."""
    intro = """What a run on Ray exports to Prometheus, which sees each name with `ray_` before it. Every metric also
has the label `protocol`; no label names a debate or a case. [Monitoring](../operate/monitoring.md) says how to scrape
and read them."""
    rows = [
        (_code(each.name), each.kind, ", ".join(map(_code, each.labels)), _prose(f"{each.about} {each.detail}"))
        for each in METRICS
    ]
    return _page("Exported metrics", intro, _table(("metric", "kind", "labels", "meaning"), rows))


def events_page() -> str:
    """The kinds of event that protocols note."""
    intro = """What a protocol notes while a debate goes on: rows of the table [`events`](columns.md#events), and what
`moot.stream` gives. `*` in a path stands for a number or a name."""
    parts = [intro]
    for folder, rows in _noted_events().items():
        parts += [f"## `{folder}`", _table(("kind", "path", "noted in"), rows)]
    return _page("Events", *parts)


def _noted_events() -> dict[str, list[tuple[str, str, str]]]:
    """By folder, kind, path and module of every event, found where it is made.

    To be replaced by the fields of the events' types once each protocol defines them in its `events.py`.
    """
    found: dict[str, set[tuple[str, str, str]]] = {}
    for file in sorted([*(ROOT / "actors").glob("*.py"), *(ROOT / "protocols").rglob("*.py")]):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "Event" and len(node.args) > 1:
                kind, path = (_text(each, _dotted(file)) for each in node.args[:2])
                folder = file.parent.relative_to(ROOT).as_posix()
                found.setdefault(folder, set()).add((_code(kind), _code(path), _code(file.name)))
    return {folder: sorted(rows) for folder, rows in found.items()}


def _text(node: ast.expr, module: str) -> str:
    """A text as far as the source tells it, `*` for the rest."""
    if isinstance(node, ast.JoinedStr):
        return "".join(str(each.value) if isinstance(each, ast.Constant) else "*" for each in node.values)
    if isinstance(node, ast.Name):
        return str(getattr(import_module(module), node.id, "*"))
    return str(node.value) if isinstance(node, ast.Constant) else "*"


def python_page() -> str:
    """The public names of `moot`."""
    homes = _imports(_module("moot"))
    intro = "The public names of `moot`. Everything else may change; see [what is stable](stability.md)."
    entries = []
    for name in sorted(moot.__all__, key=str.lower):
        _, node, below = _statement(homes[name], name)
        entries.append(_described(node, 2, below))
    return _page("Python API", intro, *entries)


PAGES: dict[str, Callable[[], str]] = {
    "settings.md": settings_page,
    "commands.md": commands_page,
    "columns.md": columns_page,
    "events.md": events_page,
    "exported-metrics.md": exported_metrics_page,
    "metrics.md": metrics_page,
    "python-api.md": python_page,
    "templates.md": templates_page,
}
"""The generated pages."""


def stale() -> dict[str, str]:
    """By name, the pages that are not as they would be generated now, with their new text."""
    made = {name: make() for name, make in PAGES.items()}
    known = {name: REFERENCE / name for name in made}
    return {n: text for n, text in made.items() if not known[n].exists() or known[n].read_text("utf-8") != text}


def main() -> int:
    """Write the pages that are stale, or name them."""
    found = stale()
    for name, text in found.items():
        print(REFERENCE.joinpath(name).relative_to(ROOT))
        if "--check" not in sys.argv:
            REFERENCE.mkdir(parents=True, exist_ok=True)
            REFERENCE.joinpath(name).write_text(text, "utf-8")
    return 1 if found and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
