"""The documentation says what is there: its tables are those of the code, its links lead somewhere."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
import yaml
from doc_pages import PAGES, blocks, page_named, table
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from places import ROOT
from pydantic import BaseModel
from typer.testing import CliRunner

import moot
from moot import ENCODERS, PROTOCOLS
from moot.actors.debate.placement import ClusterSettings
from moot.deploy.cli.main import app
from moot.deploy.results.figures.round_trace import MEASURES
from moot.deploy.results.figures.token_confidence import AnalysisSettings
from moot.protocols.registry import setting_keys
from moot.protocols.templates import template_headers

NOT_RUN = {
    "CI runs it": 1,
    "CI installs it for the extras": 4,
    "needs a Kubernetes cluster": 6,
    "needs a container runtime": 1,
    "needs an Anthropic key": 1,
    "needs an OpenAI key": 3,
    "needs a bucket of yours": 1,
    "needs Prometheus": 2,
    "needs a collector": 1,
    "needs a key and a server of yours": 1,
    "needs machines of a cloud": 1,
    "needs the extra sentence-transformers": 2,
    "needs the extra setfit": 1,
    "needs weights of yours": 1,
    "it needs several machines": 1,
    "it starts a cluster that stays": 1,
    "tests/deploy/ops/test_cluster_jobs.py builds and uses one": 1,
    "tests/deploy/ops/test_cluster_jobs.py runs it on a cluster of its own": 1,
    "takes an hour of a quiet machine": 3,
}
"""Why a block may not be run, and how many blocks may say so."""


def test_each_law_names_a_test_that_exists() -> None:
    tests = ROOT / "tests"
    for law, test, _ in table(tests / "README.md", "Laws"):
        file, _, name = _code(test).partition("::")
        assert f"def {name}(" in (tests / file).read_text("utf-8"), law


def test_what_is_not_run_is_little_and_says_why() -> None:
    reasons = Counter(b.info["not-run"] for page in PAGES for b in blocks(page) if "not-run" in b.info)
    assert reasons <= Counter(NOT_RUN)
    ci = (ROOT / ".ci" / "run").read_text()
    (install,) = (b for b in blocks(PAGES[0]) if b.info.get("not-run") == "CI runs it")
    lines = [command for _, command in install.commands()]
    assert len(lines) == 2
    for piece in ("python3 -m venv .venv", "-c constraints.txt", "-e '.[test"):
        assert piece in lines[0]
        assert piece in ci
    assert lines[0].endswith(".venv/bin/moot run")
    assert lines[1] == ".venv/bin/python -m pytest"
    assert lines[1] in ci


def test_only_known_words_in_info_strings() -> None:
    for page in PAGES:
        for block in blocks(page):
            known = {"file", "exit", "not-run", "needs", "terminal", "process"}
            assert set(block.info) <= known, f"{page.name}:{block.line}"
            assert block.language, f"{page.name}:{block.line}: name a language, `text` for none"


def _code(cell: str) -> str:
    return cell.strip("`")


def test_readme_lists_what_there_is() -> None:
    listed = [name for first, _ in table(PAGES[0], "Protocols") for name in re.findall(r"`([\w-]+)`", first)]
    assert sorted(listed) == sorted(PROTOCOLS)
    assert len(PAGES[0].read_text("utf-8").splitlines()) <= 120


def test_the_encoders_page_lists_what_there_is() -> None:
    assert [_code(row[0]) for row in table(page_named("documents"), "Encoders")] == list(ENCODERS)


def test_the_command_lists_the_templates() -> None:
    printed = CliRunner().invoke(app, ["templates"]).output.splitlines()
    listed = dict(line.split(maxsplit=1) for line in printed)
    assert listed == {name: header.slots for name, header in template_headers().items()}


def test_the_page_on_results_lists_every_measure_of_a_round() -> None:
    found = [(_code(key), shown) for key, shown, _ in table(page_named("results"), "Round by round")]
    assert found == [(each.key, each.heading) for each in MEASURES]


def test_the_columns_of_an_imported_table() -> None:
    found = {_code(name): about for name, about in table(page_named("analyze"), "Your own table")}
    printed = CliRunner().invoke(app, ["analyze", "--columns"]).output.splitlines()
    assert found == {name: about for name, about in (line.split(maxsplit=1) for line in printed)}


def test_the_columns_of_an_analysis(tmp_path: Path) -> None:
    run = moot.run(
        task="sample",
        protocol="constructor-auditor",
        limit=30,
        engine="inline",
        out=tmp_path / "run",
        roles={"judge": ["simulated", "simulated?judge_noise=0.4"]},
    )
    found = moot.analyze(run.path, settings=AnalysisSettings(permutations=100, resamples=50))
    rows = table(page_named("analyze"), "Tables")
    assert [_code(name) for name, _ in rows] == list(found.tables)
    said = {_code(name): re.findall(r"`(\w+)`", about) for name, about in rows}
    said["top_features"] += said["associations"]
    stratum = {"stratum", "dataset", "domain", "model", "sampling", "rubric", "role"}
    for name in found.tables:
        columns = found.table(name).column_names
        wanted = {column for column in columns if re.sub("_(low|high|n)$", "", column) not in {*columns} - {column}}
        assert {*said[name]} - stratum == wanted - stratum, name


def _default(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if value is None:
        return "none"
    if isinstance(value, BaseModel):
        return "defaults"
    return f"{value:g}" if isinstance(value, float) else str(value) or "empty"


def _defaults(model: BaseModel) -> dict[str, str]:
    found = {}
    for key in setting_keys(type(model)):
        value: object = model
        for part in key.split("."):
            value = getattr(value, part)
        found[key] = _default(value)
    return found


@pytest.mark.parametrize(
    ("page", "heading", "model"),
    [
        ("cluster", "How a run is spread", ClusterSettings()),
    ],
    ids=[
        "cluster",
    ],
)
def test_settings_and_their_defaults(page: str, heading: str, model: BaseModel) -> None:
    found = {_code(row[0]): _code(row[1]) for row in table(page_named(page), heading)}
    assert found == _defaults(model)


def _anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and mkdocs make them."""
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")
        for heading in re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    }


def test_links_lead_somewhere() -> None:
    linked: set[Path] = set()
    for page in [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", ROOT / "SECURITY.md"]:
        for target, anchor in re.findall(r"\]\(([^)#]*)(?:#([^)]*))?\)", page.read_text("utf-8")):
            if target.startswith("http"):
                continue
            there = (page.parent / target).resolve() if target else page
            assert there.exists(), f"{page.name}: {target}"
            assert not anchor or anchor in _anchors(there), f"{page.name}: {target}#{anchor}"
            linked |= {there} - {page}
    assert {*PAGES} - linked <= {ROOT / "README.md", ROOT / "docs" / "index.md"}


def _pages_of(nav: object) -> Iterator[str]:
    """The pages in a part of the site's navigation."""
    if isinstance(nav, str):
        yield nav
    elif isinstance(nav, dict | list):
        for part in nav.values() if isinstance(nav, dict) else nav:
            yield from _pages_of(part)


def test_the_site_lists_every_page_once() -> None:
    site = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))
    pages = [page.relative_to(ROOT / "docs").as_posix() for page in PAGES[1:]]
    assert sorted(_pages_of(site["nav"])) == sorted(pages), "change `nav` of mkdocs.yml"


@pytest.mark.lint
def test_the_reference_is_what_the_code_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "docs")
    generator = import_module("generate")
    assert not [*generator.stale()], f"run `{generator.COMMAND}` and commit what it writes"


@pytest.mark.lint
@pytest.mark.needs("module/mkdocs", "module/material")
def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    built = [page.read_text("utf-8") for page in tmp_path.rglob("*.html")]
    assert len(built) > len(PAGES[1:])
    assert not [text for text in built if "```" in text], "a fence was not understood"


def _pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    assert lines[0].startswith("# ")
    assert lines[1:] == sorted(lines[1:])
    pairs = [line.split("==") for line in lines[1:]]
    assert all(len(pair) == 2 for pair in pairs), "a line is not NAME==VERSION"
    return {name: version for name, version in pairs}


def test_constraints_pin_everything_that_is_needed() -> None:
    pins = _pins()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    todo = [(text, "") for text in (*project["dependencies"], *project["optional-dependencies"]["test"])]
    seen: set[tuple[str, str]] = set()
    absent: set[str] = set()
    while todo:
        text, extra = todo.pop()
        wanted = Requirement(text)
        environment = {key: str(value) for key, value in default_environment().items()}
        if wanted.marker and not wanted.marker.evaluate({**environment, "extra": extra}):
            continue
        name = canonicalize_name(wanted.name)
        assert name in pins, f"{name} is not pinned"
        assert wanted.specifier.contains(pins[name], prereleases=True), f"{wanted}: pinned to {pins[name]}"
        for each in ("", *wanted.extras):
            if (name, each) not in seen:
                seen.add((name, each))
                try:
                    todo += [(needed, each) for needed in distribution(name).requires or ()]
                except PackageNotFoundError:
                    absent.add(name)
    if absent:
        pytest.skip(f"what {', '.join(sorted(absent))} need was not looked at: pip install '.[test]'")
