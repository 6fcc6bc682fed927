"""The documentation is run: every command, every Python block; and its tables are those of the code.

A page is README.md or a file of deploy/docs. Its fenced blocks are taken in order, in one empty folder per page:

- a block with `file=NAME` in its info string is written to NAME;
- a block of `python` without a name is run as a script;
- of a block of `console` each line that starts with `$ ` is run, all by one bash; a line that ends in a backslash
  goes on in the next. `exit=N` is the exit code that is expected instead of 0; `not-run="REASON"` keeps the block from
  being run, and so does `needs=MODULE` where that module is not installed (the page counts as skipped when the rest
  has run). Lines of output that a page shows must be printed, except a progress bar and the wall time;
- a block of `console` with `terminal=yes` is a session in a real terminal: its one command is run there, and what
  stands behind the prompts `> ` and `  | ` is typed.

Ports that a page names with `--port` are replaced by free ones; what it leaves in the background is killed by its id.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path

import pytest
import ray
from no_pandas import folder_without
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from pydantic import BaseModel
from typer.testing import CliRunner

import moot
from moot import ENCODERS, MODELS, PROTOCOLS, TASKS, RoleBinding, RunConfig
from moot.actors.models.simulated.settings import SimulatedSettings
from moot.actors.placement import Placing
from moot.actors.record.schema import KEYS, TABLES
from moot.deploy.analysis.settings import AnalysisSettings
from moot.deploy.cli.main import app
from moot.deploy.reading.rounds.measures import MEASURES
from moot.deploy.running.declared import forms
from moot.protocols.ceda.settings import CedaSettings
from moot.protocols.constructor_auditor.settings import ConstructorAuditorSettings
from moot.protocols.crit.settings import CritSettings
from moot.protocols.evince.settings import EvinceSettings
from moot.protocols.registry import setting_keys
from moot.protocols.selene.settings import SeleneSettings
from moot.protocols.socrasynth.settings import SocraSynthSettings

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "deploy" / "docs"
OWN_RAY = ("README", "running", "cluster", "recovery", "monitoring", "ray-data", "serve", "kubernetes", "own-protocol")
"""Pages whose commands start a Ray, as they do where there is none; those of the others join this process's."""

PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]
PLAYER = ROOT / "tests" / "actors" / "play_session.py"
LONGEST_PAGE = 160
PAGE_S = 240
NOT_RUN = {
    "CI runs it": 1,
    "needs a Kubernetes cluster": 6,
    "needs a container runtime": 1,
    "needs an Anthropic key": 1,
    "needs an OpenAI key": 3,
    "needs a bucket of yours": 1,
    "needs Prometheus": 2,
    "needs a collector": 1,
    "needs a key and a server of yours": 1,
    "needs machines of a cloud": 1,
    "needs data that is not ours to pass on": 3,
    "needs the extra sentence-transformers": 2,
    "needs the extra setfit": 1,
    "needs weights of yours": 1,
    "it needs several machines": 1,
    "it starts a cluster that stays": 1,
    "tests/deploy/test_cluster_jobs.py builds and uses one": 1,
    "tests/deploy/test_cluster_jobs.py runs it on a cluster of its own": 1,
    "takes an hour of a quiet machine": 3,
}
"""Why a block may not be run, and how many blocks may say so."""

_FENCE = re.compile(r"^```(\w*)[ \t]*(.*)$")
_PORT = re.compile(r"--port (\d+)")


@dataclass
class Block:
    """A fenced block: its language, the rest of its info string, the line it starts on and its text."""

    language: str
    info: dict[str, str]
    line: int
    lines: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """What stands between the fences."""
        return "".join(f"{line}\n" for line in self.lines)

    def commands(self) -> Iterator[tuple[int, str]]:
        """Line and text of each command."""
        numbered = iter(enumerate(self.lines, start=self.line + 1))
        for number, line in numbered:
            if line.startswith("$ "):
                command = line[2:]
                while command.endswith("\\"):
                    command = f"{command}\n{next(numbered)[1]}"
                yield number, command

    def shown(self) -> list[str]:
        """The lines of output that the page shows."""
        commands = {line for _, command in self.commands() for line in f"$ {command}".split("\n")}
        return [line for line in self.lines if line not in commands and line.strip()]


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    found: list[Block] = []
    open_ = False
    for number, line in enumerate(page.read_text("utf-8").splitlines(), start=1):
        fence = _FENCE.match(line)
        if open_ and line == "```":
            open_ = False
        elif open_:
            found[-1].lines.append(line)
        elif fence:
            words = shlex.split(fence[2])
            info = {key: value for key, _, value in (word.partition("=") for word in words)}
            found.append(Block(fence[1], info, number))
            open_ = True
    assert not open_, f"{page.name}: a block is not closed"
    return found


_PRELUDE = r"""
declare -a started=()
ending() { local code=$?; for pid in "${started[@]}"; do kill "$pid" 2>/dev/null; done; exit $code; }
trap ending EXIT
check() {
  if [ "$1" -ne "$2" ]; then echo "$3: exit code $1, expected $2" >&2; exit 1; fi
}
listening() {
  for _ in $(seq 900); do
    if (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; then return 0; fi
    sleep 0.1
  done
  echo "nothing listens on port $1" >&2; exit 1
}
"""


def is_run(block: Block) -> bool:
    """Whether a block is run here."""
    return "not-run" not in block.info and not is_missing(block)


def is_missing(block: Block) -> bool:
    """Whether a block needs a module that is not installed."""
    return "needs" in block.info and find_spec(block.info["needs"]) is None


def script_of(page: Path, folder: Path) -> str:
    """One bash script for a page; files that it brings are written by it, where they stand on the page."""
    parts = [_PRELUDE]
    for block in blocks(page):
        if not is_run(block):
            continue
        name = block.info.get("file") or (f"block-{block.line}.py" if block.language == "python" else "")
        if name:
            kept = folder / ".blocks" / str(block.line)
            kept.parent.mkdir(exist_ok=True)
            kept.write_text(block.text, "utf-8")
            parts.append(f'mkdir -p "$(dirname {shlex.quote(name)})"; cp {shlex.quote(str(kept))} {shlex.quote(name)}')
        where = f"{page.name}:{block.line}"
        if "terminal" in block.info:
            session = folder / ".blocks" / str(block.line)
            session.parent.mkdir(exist_ok=True)
            session.write_text(block.text, "utf-8")
            command = f"python {shlex.quote(str(PLAYER))} {shlex.quote(str(session))}"
            parts.append(_run_line(where, command, int(block.info.get("exit", 0))))
            continue
        if block.language == "python" and "file" not in block.info:
            parts.append(f"echo '== {where}' >&2; python {shlex.quote(name)}; check $? 0 {where}")
        for line, command in block.commands() if block.language == "console" else ():
            parts.append(_run_line(f"{page.name}:{line}", command, int(block.info.get("exit", 0))))
    return "\n".join(parts)


def _run_line(where: str, command: str, code: int) -> str:
    said = f"echo {shlex.quote(f'== {where} $ {command}')} >&2"
    if command.endswith(" &"):
        port = _PORT.search(command)
        wait = f"; listening {port[1]}" if port else ""
        return f"{said}; {command} started+=($!){wait}"
    return f"{said}; {command}\ncheck $? {code} {where}"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def run_page(page: Path, folder: Path, **settings: str) -> str:
    """Run everything on a page, with environment variables set; returns what was printed."""
    script = script_of(page, folder)
    for port in sorted(set(_PORT.findall(script))):
        free = str(_free_port())
        script = re.sub(rf"\b{port}\b", free, script)
        for kept in (folder / ".blocks").glob("*"):
            kept.write_text(re.sub(rf"\b{port}\b", free, kept.read_text("utf-8")), "utf-8")
    hidden = (
        "OPENAI_API_KEY",
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_BASE_URL",
        "RAY_ADDRESS",
        "PYTHONPATH",
        "PYTEST_CURRENT_TEST",
    )
    env = {key: value for key, value in os.environ.items() if key not in hidden}
    env |= {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{env.get('PATH', '')}",
        "COLUMNS": "88",
        "RAY_USAGE_STATS_ENABLED": "0",
        **({} if "pandas" in page.read_text("utf-8") else {"PYTHONPATH": folder_without()}),
        **settings,
    }
    log = folder / ".log"
    with log.open("wb") as out:
        running = subprocess.Popen(
            ["bash", "-c", script], cwd=folder, env=env, stdout=out, stderr=out, stdin=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        try:
            code = running.wait(timeout=PAGE_S)
        except subprocess.TimeoutExpired:
            code = -1
        finally:
            if running.poll() is None:
                os.killpg(running.pid, signal.SIGTERM)
                try:
                    running.wait(timeout=10)
                except subprocess.TimeoutExpired:
                    os.killpg(running.pid, signal.SIGKILL)
                    running.wait()
    said = log.read_text("utf-8", errors="replace")
    assert code == 0, f"{page.name}: {'took too long' if code == -1 else f'exit code {code}'}\n{said[-6000:]}"
    return said


@pytest.mark.timeout(280)
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_everything_on_a_page_runs(page: Path, tmp_path: Path, local_ray: None) -> None:
    there = {} if page.stem in OWN_RAY else {"RAY_ADDRESS": ray.get_runtime_context().gcs_address}
    said = {" ".join(line.split()) for line in run_page(page, tmp_path, **there).splitlines()}
    run = [block for block in blocks(page) if block.language == "console" and is_run(block)]
    missing = [line for block in run for line in block.shown() if _is_lasting(line) and _plain(line) not in said]
    assert not missing, "\n".join(missing)
    if needed := sorted({block.info["needs"] for block in blocks(page) if is_missing(block)}):
        pytest.skip(f"all but what needs {', '.join(needed)}, which is not installed: pip install '.[test]'")


def _is_lasting(line: str) -> bool:
    """Whether a line is the same in every run: not the bar, nor how long it took."""
    return not ("━━" in line or line.startswith(("wall time", "starting ")))


def _plain(line: str) -> str:
    return " ".join(line.split())


def test_what_is_not_run_is_little_and_says_why() -> None:
    reasons = Counter(b.info["not-run"] for page in PAGES for b in blocks(page) if "not-run" in b.info)
    assert reasons <= Counter(NOT_RUN)
    ci = (ROOT / ".ci" / "run").read_text()
    (install,) = (b for b in blocks(PAGES[0]) if b.info.get("not-run") == "CI runs it")
    lines = [command for _, command in install.commands()]
    assert len(lines) == 2
    for piece in ("python3 -m venv .venv", "-c constraints.txt -e '.[test]'"):
        assert piece in lines[0]
        assert piece in ci
    assert lines[0].endswith(".venv/bin/moot run")
    assert lines[1] == ".venv/bin/python -m pytest"
    assert lines[1] in ci


def test_only_known_words_in_info_strings() -> None:
    for page in PAGES:
        for block in blocks(page):
            known = {"file", "exit", "not-run", "needs", "terminal"}
            assert set(block.info) <= known, f"{page.name}:{block.line}"
            assert block.language, f"{page.name}:{block.line}: name a language, `text` for none"


def table(page: Path, heading: str) -> list[list[str]]:
    """The rows of the first table under a heading, without its header; code marks are taken off."""
    lines = page.read_text("utf-8").splitlines()
    start = next(i for i, line in enumerate(lines) if re.fullmatch(rf"#+ {re.escape(heading)}", line))
    body = []
    for line in lines[start + 1 :]:
        if line.startswith("|"):
            cells = re.split(r"(?<!\\)\|", line.strip().strip("|"))
            body.append([cell.strip().replace("\\|", "|") for cell in cells])
        elif body or line.startswith("#"):
            break
    assert len(body) > 2, f"{page.name}: no table under {heading!r}"
    return body[2:]


def _code(cell: str) -> str:
    return cell.strip("`")


def test_readme_lists_what_there_is() -> None:
    readme = PAGES[0]
    protocols = {_code(name): about for name, about in table(readme, "Protocols")}
    assert protocols == {name: entry.description for name, entry in PROTOCOLS.items()}
    models = {_code(name): about for name, about in table(readme, "Models")}
    assert models == MODELS
    tasks = {_code(form): (about, layout) for form, about, layout in table(readme, "Tasks")}
    assert tasks == {kind.form: (kind.about, kind.layout) for kind in TASKS.values()}


def test_the_encoders_page_lists_what_there_is() -> None:
    assert [_code(row[0]) for row in table(DOCS / "encoders.md", "Encoders")] == list(ENCODERS)


def test_the_calls_page_says_what_each_form_declares() -> None:
    wanted = forms()
    page, names = DOCS / "calls.md", next(iter(wanted.values()))
    assert f"\n| form | {' | '.join(names)} |\n" in page.read_text("utf-8")
    rows = table(page, "What each form declares")
    assert {_code(form): dict(zip(names, words, strict=True)) for form, *words in rows} == wanted


def test_the_page_on_results_lists_every_measure_of_a_round() -> None:
    found = [(_code(key), shown) for key, shown, _ in table(DOCS / "reading-results.md", "Round by round")]
    assert found == [(each.key, each.heading) for each in MEASURES]


@pytest.mark.parametrize("name", sorted(TABLES))
def test_record_columns(name: str) -> None:
    found = [[_code(column), kind, volatile] for column, kind, volatile, _ in table(DOCS / "record.md", f"`{name}`")]
    wanted = [
        [column.name, str(column.type).replace("item: ", ""), "yes" if column.metadata else ""]
        for column in TABLES[name]
    ]
    assert found == wanted


def test_the_columns_of_a_table_that_is_brought() -> None:
    found = {_code(name): about for name, about in table(DOCS / "analyze-tables.md", "Your own table")}
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
    rows = table(DOCS / "analyze-tables.md", "Tables")
    assert [_code(name) for name, _ in rows] == list(found.tables)
    said = {_code(name): re.findall(r"`(\w+)`", about) for name, about in rows}
    said["top_features"] += said["associations"]
    stratum = {"stratum", "dataset", "domain", "model", "sampling", "rubric", "role"}
    for name in found.tables:
        columns = found.table(name).column_names
        wanted = {column for column in columns if re.sub("_(low|high|n)$", "", column) not in {*columns} - {column}}
        assert {*said[name]} - stratum == wanted - stratum, name


def test_record_keys() -> None:
    found = {_code(name): re.findall(r"`(\w+)`", key) for name, key, _ in table(DOCS / "record.md", "Tables")}
    assert found == {name: list(key) for name, key in KEYS.items()}


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
        ("selene.md", "Settings", SeleneSettings()),
        ("evince.md", "Settings", EvinceSettings()),
        ("socrasynth.md", "Settings", SocraSynthSettings()),
        ("constructor-auditor.md", "Settings", ConstructorAuditorSettings()),
        ("ceda.md", "Settings", CedaSettings()),
        ("running.md", "The keys of a configuration", RunConfig()),
        ("running.md", "Roles", RoleBinding()),
        ("cluster.md", "How a run is spread", Placing()),
        ("simulated.md", "Settings", SimulatedSettings()),
        ("crit.md", "Settings", CritSettings()),
        ("analyze.md", "Settings", AnalysisSettings()),
    ],
    ids=[
        "selene",
        "evince",
        "socrasynth",
        "constructor-auditor",
        "ceda",
        "run",
        "role",
        "cluster",
        "simulated",
        "crit",
        "analysis",
    ],
)
def test_settings_and_their_defaults(page: str, heading: str, model: BaseModel) -> None:
    found = {_code(row[0]): _code(row[1]) for row in table(DOCS / page, heading)}
    assert found == _defaults(model)


def test_links_lead_somewhere() -> None:
    for page in [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]:
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text("utf-8")):
            if not target.startswith("http"):
                assert (page.parent / target).exists(), f"{page.name}: {target}"
    linked = set(re.findall(r"deploy/docs/(\w[\w-]*\.md)", PAGES[0].read_text("utf-8")))
    assert linked == {page.name for page in PAGES[1:]}


def test_pages_are_short() -> None:
    pages = (page for page in PAGES[1:] if page.name != "record.md")
    long = {page.name: n for page in pages if (n := len(page.read_text("utf-8").splitlines())) > LONGEST_PAGE}
    assert not long


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
