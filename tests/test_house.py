"""Structure: style, types, layers, packaging, and the rules that no single file shows."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import grimp
import pytest
from places import ROOT, copy_sources

FOLDERS = ("metrics", "protocols", "actors", "deploy")
MAX_LINES = 800
APPLIED = ("deploy/ops/docker", "deploy/ops/kubernetes", "deploy/ops/ray-cluster.yaml")
"""What is applied to a cluster and never imported: it belongs to the repository, and to no wheel."""
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def _run(*command: str, cwd: Path = ROOT, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=cwd, env={**os.environ, **env}, capture_output=True, text=True, timeout=280, check=False
    )


def _sources() -> list[Path]:
    return [
        path for folder in (*FOLDERS, "moot") for path in (ROOT / folder).rglob("*.py") if "moot/" not in path.parts
    ]


@pytest.mark.lint
@pytest.mark.parametrize("command", [("check", "."), ("format", "--check", ".")], ids=" ".join)
def test_style(command: tuple[str, ...]) -> None:
    done = _run(sys.executable, "-m", "ruff", *command)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.lint
def test_types() -> None:
    done = _run(sys.executable, "-m", "mypy")
    assert done.returncode == 0, done.stdout[-4000:]


@pytest.mark.lint
def test_layers_point_one_way() -> None:
    linter = Path(sys.executable).with_name("lint-imports")
    done = _run(str(linter), "--no-cache")
    assert done.returncode == 0, done.stdout[-4000:]


@pytest.mark.lint
def test_no_file_imports_a_package_that_it_is_in() -> None:
    """Such a circle is not seen by import-linter, which compares what stands side by side."""
    graph = grimp.build_graph("moot", cache_dir=None)
    assert not [
        f"{importer} imports {imported}"
        for importer in graph.modules
        for imported in graph.find_modules_directly_imported_by(importer)
        if importer.startswith(f"{imported}.")
    ]


def test_a_bare_folder_cannot_be_imported() -> None:
    done = _run(sys.executable, "-c", "import protocols")
    assert done.returncode == 1
    assert "import this package as `moot.protocols`" in done.stderr


def test_links_and_package_list() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    for folder in FOLDERS:
        assert os.readlink(ROOT / "moot" / folder) == f"../{folder}"
    found = {"moot"}
    for folder in FOLDERS:
        for init in (ROOT / folder).rglob("__init__.py"):
            found.add(".".join(("moot", *init.parent.relative_to(ROOT).parts)))
    assert set(project["tool"]["setuptools"]["packages"]) == found


@pytest.mark.lint
def test_the_wheel_contains_every_file(tmp_path: Path) -> None:
    source = tmp_path / "source"
    copy_sources(source)
    build = (sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path))
    done = _run(*build, ".", cwd=source)
    assert done.returncode == 0, done.stderr[-3000:]
    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    expected = {"moot/py.typed", "moot/__main__.py", "moot/protocols/tasks/data/sample.jsonl"}
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".py", ".j2", ".jsonl", ".yaml", ".html") and "__pycache__" not in path.parts:
                expected.add(f"moot/{path.relative_to(ROOT).as_posix()}")
    applied = tuple(f"moot/{place}" for place in APPLIED)
    expected = {name for name in expected if not name.startswith(applied)}
    assert expected <= names, sorted(expected - names)
    assert not [name for name in names if name.startswith(applied)]


def test_files_stay_small() -> None:
    long = {str(p.relative_to(ROOT)): n for p in _sources() if (n := len(p.read_text().splitlines())) > MAX_LINES}
    assert not long


@pytest.mark.lint
def test_public_things_have_docstrings() -> None:
    bare = []
    for path in _sources():
        tree = ast.parse(path.read_text())
        for parent in ast.walk(tree):
            if not isinstance(parent, ast.Module | ast.ClassDef):
                continue
            private = isinstance(parent, ast.ClassDef) and parent.name.startswith("_")
            for node in parent.body:
                if isinstance(node, DEFINITIONS) and not private and not node.name.startswith("_") and _bare(node):
                    bare.append(f"{path.relative_to(ROOT)}:{node.lineno} {node.name}")
    assert not bare


def test_ray_is_known_in_few_folders_only() -> None:
    """The engine's, and those that stand inside one of Ray's libraries."""
    rays = {
        str(path.parent.relative_to(ROOT))
        for path in _sources()
        if re.search(r"^\s*(import|from) ray\b", path.read_text(), re.MULTILINE) and "tests" not in path.parts
    }
    assert rays == {"actors/remote", "deploy/runs/ray_data", "deploy/service"}


def test_capabilities_of_a_protocol_are_read_plainly() -> None:
    """The base class declares each with its default, so nobody asks with `getattr`; only plain classes are adapted."""
    module = ast.parse((ROOT / "protocols/base.py").read_text())
    (base,) = (node for node in module.body if isinstance(node, ast.ClassDef))
    names = {ast.unparse(node.target) for node in base.body if isinstance(node, ast.AnnAssign)}
    names |= {node.name for node in base.body if isinstance(node, DEFINITIONS)}
    assert "needs_logprobs" in names
    found = []
    for path in set(_sources()) - {ROOT / "protocols/own_protocols.py", ROOT / "protocols/registry.py"}:
        text = path.read_text("utf-8")
        if "getattr(" not in text and "hasattr(" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) > 1):
                continue
            asked = isinstance(node.args[1], ast.Constant) and node.args[1].value in names
            if node.func.id in ("getattr", "hasattr") and (asked or "protocol" in ast.unparse(node.args[0])):
                found.append(f"{path.relative_to(ROOT)}:{node.lineno} {ast.unparse(node)}")
    assert not found


def test_nothing_outside_a_protocols_folder_names_its_class() -> None:
    """But the registry. What a protocol writes is read by its types; of them `actors` know only the simulated model's,
    which must know what it is asked."""
    own = {path.parent.name for path in (ROOT / "protocols").glob("*/protocol.py")}
    assert "selene" in own
    imports = re.compile(r"^\s*from moot\.protocols\.(\w+)\.(\w+) import\b", re.MULTILINE)
    found = []
    for path in set(_sources()) - {ROOT / "protocols/registry.py"}:
        place = path.relative_to(ROOT)
        reads = place.parts[0] in ("deploy", "protocols") or place.parts[:2] == ("actors", "simulated")
        for protocol, module in imports.findall(path.read_text("utf-8")):
            if protocol not in own or place.parts[:2] == ("protocols", protocol):
                continue
            if module in ("protocol", "settings") or not reads:
                found.append(f"{place}: {protocol}.{module}")
    assert not found


NAMED_IN = {
    "deploy/results/figures": "a figure is of what is recorded in a form, whatever protocol recorded it",
    "deploy/results/record.py": "the same: it is of any gate",
    "deploy/studies/calibration": "calibrates the thresholds of SELENE's gate and its epsilon",
    "deploy/studies/ablation/means.py": "a figure, too: the agreeing words of closing statements",
    "deploy/studies/training/examples.py": "trains CEDA's classifier of claims",
    "deploy/runs/checking": "`moot check` is CEDA on one claim",
    "deploy/runs/ray_data/row_kinds.py": "rows of judged replies are the judge panel's",
}
"""Where `deploy` names a protocol outside `results/protocols`, and why."""


def test_what_is_particular_to_a_protocol_is_found_by_name() -> None:
    """A new protocol's results are one file in `results/protocols`: nothing else has to know of it."""
    own = "|".join(path.parent.name for path in (ROOT / "protocols").glob("*/protocol.py"))
    imports = re.compile(
        rf"^\s*(?:from|import) moot\.(?:deploy\.results\.protocols|protocols\.(?:{own}))\b", re.MULTILINE
    )
    naming = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "deploy").rglob("*.py")
        if imports.search(path.read_text("utf-8"))
    }
    naming = {name for name in naming if not name.startswith(("deploy/results/protocols/", *NAMED_IN))}
    assert not naming


@pytest.mark.parametrize(
    ("modules", "heavy"),
    [
        ("moot", {"ray", "openai", "anthropic", "torch", "pandas"}),
        (
            "moot.deploy.cli.protocol_runs, moot.deploy.results.show",
            {"ray", "openai", "anthropic", "torch", "pandas", "scipy.special", "scipy.stats"},
        ),
    ],
)
def test_imports_load_nothing_heavy(modules: str, heavy: set[str]) -> None:
    """`scipy.stats` takes half as long to load as all the rest of `moot show`: it is imported where it is called. SciPy
    itself loads `scipy.special` where it is first used, which is a fifth of what `moot run` and each actor load."""
    done = _run(sys.executable, "-c", f"import sys, {modules}; print(*sorted({heavy!r} & set(sys.modules)))")
    assert done.stdout == "\n", done.stdout + done.stderr


@pytest.mark.lint
def test_nothing_private_of_a_machine_is_tracked() -> None:
    tracked = _run("git", "ls-files").stdout.split()
    if not tracked:
        pytest.skip("not a git checkout")
    everybodys = (Path("/"), Path("/tmp"))
    places = (ROOT.parent, ROOT.parent.parent, Path.home())
    here = [re.escape(f"{place}/") for place in places if place not in everybodys]
    telling = re.compile("|".join([r"index[-]url|https?://[^ \"')]*/simpl[e]/?", *here]))
    for name in tracked:
        path = ROOT / name
        if path.is_symlink() or path == Path(__file__) or not path.is_file():
            continue
        found = telling.search(path.read_text("utf-8", errors="replace"))
        assert found is None, f"{name}: {found and found.group()}"


def _bare(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> bool:
    """No docstring; a read-only attribute of a Protocol is documented with its class."""
    attribute = any(isinstance(mark, ast.Name) and mark.id == "property" for mark in node.decorator_list)
    return ast.get_docstring(node) is None and not attribute
