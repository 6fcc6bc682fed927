"""Records to show: planted row by row, or made by the inline engine on the simulated model."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer.main
from judged_claim import ScriptedClaimDebate, judged_claim
from markdown_it import MarkdownIt
from openai_server import ScriptedServer
from planted_records import Command, GridOf, InlineRun, PlantedGrid, PlantedSession, Printed, plant
from rich.console import Console

import moot

_commands = cache(typer.main.get_command)


@pytest.fixture(scope="module", autouse=True)
def _nobody_waits_longer_than_he_works() -> Iterator[None]:
    """A run in this process gathers no verdicts for a tenth of a second before it makes them durable and hands them on:
    most runs here are of a few cases, and would wait longer than they work. The tree of commands is built once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("typer.testing._get_command", _commands)
        patch.setattr("moot.actors.record.journal._COMMIT_S", 0.01)
        patch.setattr("moot.actors.debate.moderator._LINGER_S", 0.01)
        yield


@pytest.fixture
def command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Commands of this process, in an empty folder."""

    def run(*arguments: str, given: str = "") -> tuple[int, str, str]:
        from moot.deploy.cli import main as cli

        monkeypatch.setattr(sys, "argv", ["moot", *arguments])
        if given:
            monkeypatch.setattr(sys, "stdin", io.StringIO(given))
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            cli.main()
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out, err

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    return run


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    """A server whose replies are those of the simulated model, until a test gives it scripts."""
    started = ScriptedServer({})
    yield started
    started.gate.set()
    started.close()


@pytest.fixture
def debate() -> Iterator[ScriptedClaimDebate]:
    """A server that a claim is debated and judged by."""
    with judged_claim() as served:
        yield served


@pytest.fixture
def planted(folders: Iterator[Path]) -> Callable[..., Path]:
    """Plants sessions in a new folder."""

    def make(*sessions: PlantedSession, **run_yaml: Any) -> Path:
        return plant(next(folders), sessions, run_yaml)

    return make


@pytest.fixture
def folders(tmp_path: Path) -> Iterator[Path]:
    """New folders, one after the other."""
    return (tmp_path / f"run{number}" for number in range(1000))


@pytest.fixture
def session(folders: Iterator[Path]) -> PlantedSession:
    """An empty session to plant."""
    return PlantedSession(folders=folders)


@pytest.fixture
def grid_of(tmp_path: Path, session: PlantedSession) -> GridOf:
    """Makes the grid of a test."""
    return lambda *over: PlantedGrid(tmp_path / "grid", session, *over)


@pytest.fixture(scope="session")
def inline_run(tmp_path_factory: pytest.TempPathFactory) -> InlineRun:
    """A run over most of the bundled sample on the simulated model; one per protocol, settings and test session."""
    made: dict[str, Path] = {}

    def make(protocol: str = "selene", **settings: Any) -> Path:
        key = f"{protocol} {sorted(settings.items())}"
        if key not in made:
            folder = tmp_path_factory.mktemp("inline") / "run"
            options: Any = {"task": "sample", "limit": 40, "engine": "inline", "seed": 1}
            made[key] = moot.run(protocol=protocol, set=settings, out=folder, **options).path
        return made[key]

    return make


@pytest.fixture
def printed() -> Printed:
    """What a function that takes a console writes to it, as a terminal would get it."""

    def run(function: Callable[..., None], *args: Any, width: int = 120, **kwargs: Any) -> str:
        sink = io.StringIO()
        function(*args, **kwargs, console=Console(file=sink, width=width, force_terminal=True, color_system=None))
        return sink.getvalue()

    return run


@pytest.fixture
def outside_fences() -> Callable[[str], list[str]]:
    """Lines of Markdown outside of fenced blocks, as CommonMark reads them; none is left open."""

    def outside(markdown: str) -> list[str]:
        lines = markdown.splitlines()
        for token in MarkdownIt("commonmark").parse(markdown):
            if token.type == "fence" and token.map is not None:
                assert lines[token.map[1] - 1].strip() == token.markup, "a fence was left open"
                lines[slice(*token.map)] = [""] * (token.map[1] - token.map[0])
        return lines

    return outside
