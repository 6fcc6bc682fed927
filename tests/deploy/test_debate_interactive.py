"""`moot debate --interactive` in real terminals, against a server that counts what it is asked."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import moderated_debate
import pytest
import ray
from scripted_server import ScriptedServer
from terminals import Terminal, surroundings

from moot.actors.record.tables import read_table

SUBJECT = "Should cities ban cars?"
HOSTILE = "\x1b[2J\x1b]0;owned\x07\x1b[31mred\u202eback\x9b1m\rover\x08"


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    """Answers the moderated debate."""
    server = ScriptedServer(dict(moderated_debate.SCRIPTS))
    yield server
    server.gate.set()
    server.close()


@pytest.fixture(params=["inline", pytest.param("ray", marks=[pytest.mark.ray, pytest.mark.slow])])
def engine(request: pytest.FixtureRequest) -> list[str]:
    """What names the engine on the command line: this process, or this process's Ray."""
    if request.param == "inline":
        return ["--engine", "inline"]
    request.getfixturevalue("local_ray")
    return ["--address", ray.get_runtime_context().gcs_address]


def _command(server: ScriptedServer, *more: str, engine: Sequence[str] = ("--engine", "inline")) -> list[str]:
    spoken = ["--protocol", "moderated_debate:Moderated", "--model", server.model, *engine]
    return ["debate", SUBJECT, "--interactive", *spoken, "--out", "run", *more]


def _paid(server: ScriptedServer) -> dict[str, int]:
    """Calls by path of the debate; the trial call before each session is not of the debate."""
    paths = {step.partition("/0/")[2]: calls for step, calls in server.calls.items() if step.startswith("question/0/")}
    return dict(sorted(paths.items()))


def _once(rounds: int) -> dict[str, int]:
    return {f"round/{number}/agent/{i}": 1 for number in range(1, rounds + 1) for i in range(2)} | {"topics": 1}


def _verdict(folder: Path) -> dict[str, Any]:
    (row,) = read_table(folder / "run", "verdicts").to_pylist()
    return {**row, "payload": json.loads(row["payload"])}


def test_a_session_from_the_topics_to_the_end(engine: list[str], server: ScriptedServer, tmp_path: Path) -> None:
    with Terminal(tmp_path, *_command(server, engine=engine)) as terminal:
        shown = terminal.types("edit")
        assert "Topics" in shown
        assert "2  edit topics (edits the text)" in shown
        terminal.types("Cost", "  | ")
        terminal.types("Peace", "  | ")
        terminal.types("", "  | ")
        assert "Done: edit topics." in terminal.types("go")
        shown = terminal.types("set much")
        assert "[2] agent/0 on" in shown
        assert "kappa 0.9" in shown
        assert "crit.agent/0 0.625; crit.agent/1 unknown" in shown
        assert "Not used: 'much' is not a number" in terminal.types("2 0.3")
        terminal.types("what now")
        assert "unknown action 'what now'" in terminal.types("ask and the trees?")
        terminal.types("show 3")
        assert "side 1 says" in terminal.types("show")
        assert "none yet: it waits for a person" in terminal.types("go on")
        shown = terminal.types("end")
        assert "Round 2" in shown
        assert "and the trees?" in shown
        code, shown = terminal.ends()
    assert code == 0
    assert "Verdict" in shown
    assert "moot show run question" in shown
    verdict = _verdict(tmp_path)
    assert (verdict["how"], verdict["rounds"]) == ("ended", 2)
    assert verdict["payload"] == {"kappa": 0.3, "topics": "Cost\nPeace", "ended": True}
    assert _paid(server) == _once(2)


@pytest.mark.parametrize(
    ("leaving", "code"),
    [
        pytest.param("quit", 0, marks=pytest.mark.slow, id="quit"),
        pytest.param("d", 0, marks=pytest.mark.slow, id="Ctrl-D"),
        pytest.param("c", 130, id="Ctrl-C"),
    ],
)
def test_who_leaves_comes_back_to_the_same_form(
    leaving: str, code: int, server: ScriptedServer, tmp_path: Path
) -> None:
    with Terminal(tmp_path, *_command(server)) as terminal:
        terminal.types("go")
        if leaving == "quit":
            assert "Round 1" in terminal.types("quit")
        else:
            assert "Round 1" in terminal.presses(leaving)
        ended, shown = terminal.ends()
        assert ended == code
        assert "the same command" in shown
    with Terminal(tmp_path, *_command(server)) as terminal:
        shown = terminal.types("end")
        assert "you decided: go on" in shown
        assert "Round 1" in shown
        assert terminal.ends()[0] == 0
    assert _paid(server) == _once(1)
    with Terminal(tmp_path, *_command(server)) as terminal:
        code, shown = terminal.ends()
    assert (code, "Verdict" in shown) == (0, True)
    assert _paid(server) == _once(1)


@pytest.mark.slow
def test_a_kill_in_the_middle_of_a_call(engine: list[str], server: ScriptedServer, tmp_path: Path) -> None:
    """What was decided stays decided, and only the calls under way are made again."""
    server.gated = "/round/1/"
    with Terminal(tmp_path, *_command(server, engine=engine)) as terminal:
        terminal.types("go")
        _until(lambda: len(_paid(server)) == 3)
        terminal.child.kill(signal.SIGKILL)
        assert terminal.ends()[0] == -signal.SIGKILL
    # Ray's actors outlive their driver for a moment: a reply that still reached them could still be recorded.
    _until(lambda: len(server.cancelled) == 2)
    server.gate.set()
    with Terminal(tmp_path, *_command(server, engine=engine)) as terminal:
        assert "Round 1" in terminal.types("end")
        assert terminal.ends()[0] == 0
    assert _paid(server) == {"round/1/agent/0": 2, "round/1/agent/1": 2, "topics": 1}


@pytest.mark.slow
def test_ctrl_c_while_models_are_at_work_waits_for_them(server: ScriptedServer, tmp_path: Path) -> None:
    server.gated = "/round/1/"
    with Terminal(tmp_path, *_command(server)) as terminal:
        terminal.types("go")
        _until(lambda: len(_paid(server)) == 3)
        terminal.child.sendcontrol("c")
        terminal.sees("stopping: finishing calls under way")
        server.gate.set()
        assert terminal.ends()[0] == 130
    with Terminal(tmp_path, *_command(server)) as terminal:
        assert "Round 1" in terminal.types("end")
        assert terminal.ends()[0] == 0
    assert _paid(server) == _once(1)


@pytest.mark.slow
def test_a_second_ctrl_c_ends_it_at_once(server: ScriptedServer, tmp_path: Path) -> None:
    server.gated = "/round/1/"
    with Terminal(tmp_path, *_command(server)) as terminal:
        terminal.types("go")
        _until(lambda: len(_paid(server)) == 3)
        terminal.child.sendcontrol("c")
        terminal.sees("stopping: finishing calls under way")
        terminal.child.sendcontrol("c")
        assert terminal.ends()[0] == 130
    server.gate.set()
    with Terminal(tmp_path, *_command(server)) as terminal:
        assert "Round 1" in terminal.types("end")
        assert terminal.ends()[0] == 0
    assert _paid(server)["topics"] == 1


@pytest.mark.slow
def test_a_line_can_be_edited_and_nothing_is_taken_in_advance(server: ScriptedServer, tmp_path: Path) -> None:
    server.gated = "/round/1/"
    with Terminal(tmp_path, *_command(server)) as terminal:
        terminal.types("xg\x1b[D\x7f")  # back over the g, and the x is gone
        _until(lambda: len(_paid(server)) == 3)
        terminal.child.sendline("end")  # before there is a form that it could answer
        time.sleep(0.3)
        server.gate.set()
        assert "Round 1" in terminal.types("2 0.5")
        terminal.types("5")
        assert terminal.ends()[0] == 0
    assert _verdict(tmp_path)["payload"]["kappa"] == 0.5
    assert _paid(server) == _once(1)


@pytest.mark.slow
def test_a_second_terminal_is_refused(server: ScriptedServer, tmp_path: Path) -> None:
    with Terminal(tmp_path, *_command(server)) as first:
        first.sees("\n> ")
        with Terminal(tmp_path, *_command(server)) as second:
            code, shown = second.ends()
        assert code == 2
        assert "error: " in shown
        first.child.sendline("quit")
        assert first.ends()[0] == 0


def test_without_a_terminal_nothing_begins(server: ScriptedServer, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "moot", *_command(server)]
    for given in ("", "go on\n"):
        done = subprocess.run(
            command, cwd=tmp_path, env=surroundings(), input=given, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 2
        assert "--interactive needs a terminal" in done.stderr
    assert list(tmp_path.iterdir()) == []
    assert _paid(server) == {}


def test_what_models_write_does_not_reach_the_terminal_as_it_is(server: ScriptedServer, tmp_path: Path) -> None:
    server.scripts["topics"] = server.scripts["argue"] = lambda step, user: f"{HOSTILE} said at {step}"
    with Terminal(tmp_path, *_command(server)) as terminal:
        terminal.types("edit")
        terminal.types("", "  | ")
        terminal.types("go")
        terminal.types("show")
        terminal.types("show 2")
        assert "over\u2408 said at" in terminal.types("end")
        terminal.ends()
        seen = terminal.all_seen
    assert "\u241b[2J" in seen
    assert not {"\x1b", "\x07", "\x08", "\x9b", "\u202e"} & set(seen)


@pytest.mark.slow
def test_an_editor_is_given_the_draft(server: ScriptedServer, tmp_path: Path) -> None:
    """With one that changes nothing, fails, or is not there, nothing is decided."""
    broken, missing = f"{sys.executable} -c 'raise SystemExit(3)'", "no-such-editor"
    for editor, said in (("true", "nothing is decided"), (broken, "failed (exit 3)"), (missing, "no-such-editor")):
        with Terminal(tmp_path, *_command(server), EDITOR=editor) as terminal:
            terminal.types("edit")
            assert said in terminal.types("quit")
            assert terminal.ends()[0] == 0
    script = "import sys; f = open(sys.argv[1], 'r+'); f.write(f.read().replace('Safety', 'Peace') + 'Trees')"
    (tmp_path / "editor.py").write_text(script)
    with Terminal(tmp_path, *_command(server), EDITOR=f"{sys.executable} {tmp_path / 'editor.py'}") as terminal:
        terminal.types("edit")
        assert "Done: edit topics." in terminal.types("go")
        terminal.types("end")
        assert terminal.ends()[0] == 0
    assert _verdict(tmp_path)["payload"]["topics"].splitlines()[-2:] == ["Peace", "Trees"]


def test_socrasynth_is_moderated(tmp_path: Path) -> None:
    """The protocol that is debated unless another is named; its topics are a text to edit as it stands."""
    (tmp_path / "editor.py").write_text("import sys; open(sys.argv[1], 'a').write('Trees: who plants them')")
    editor = f"{sys.executable} {tmp_path / 'editor.py'}"
    with Terminal(tmp_path, "debate", SUBJECT, "-i", "--out", "run", EDITOR=editor) as terminal:
        terminal.types("edit")
        assert "6. Trees: who plants them" in terminal.types("go")
        assert "Quality of the arguments" in terminal.types("set much")
        assert "Not used: `set kappa` needs a number" in terminal.types("set 0.3")
        terminal.types("ask Who pays?")
        terminal.types("go on")
        terminal.types("end")
        code, shown = terminal.ends()
    assert code == 0
    assert "after the opening: ask (Who pays?)" in shown
    verdict = _verdict(tmp_path)
    assert (verdict["how"], verdict["rounds"]) == ("ended-by-person", 1)
    turns = {row["path"]: row for row in read_table(tmp_path / "run", "turns", ["template", "messages"]).to_pylist()}
    assert "Who pays?" in str(turns["round/1/agent/0"])


@pytest.mark.slow
def test_socrasynth_without_an_editor(tmp_path: Path) -> None:
    """Topics typed anew, a level that is none, and what was decided told from the record."""
    with Terminal(tmp_path, "debate", SUBJECT, "-i", "--out", "run") as terminal:
        terminal.types("edit")
        terminal.types("Cost: who pays", "  | ")
        terminal.types("Peace", "  | ")
        terminal.types("", "  | ")
        shown = terminal.types("go")
        assert "you decided: edit: Cost: who pays Peace" in shown
        assert "  2. Peace" in shown
        assert "topics at topics: by person; wanted 5; topics Cost, Peace" in terminal.types("set much")
        shown = terminal.types("set 0.3")
        assert "Not used: `set kappa` needs a number" in shown
        assert "Quality of the arguments" not in shown
        terminal.types("ask Who pays?")
        terminal.types("end")
        assert terminal.ends()[0] == 0
    verdict = _verdict(tmp_path)
    assert (verdict["how"], verdict["payload"]["topics"]) == ("ended-by-person", ["Cost", "Peace"])
    assert "proposed.agent" not in terminal.all_seen


def test_the_transcript_goes_where_standard_output_goes(server: ScriptedServer, tmp_path: Path) -> None:
    """The conversation stays on the terminal."""
    with Terminal(tmp_path, *_command(server, "--format", "md"), into="debate.md") as terminal:
        terminal.types("go")
        assert "Round 1" in terminal.types("end")
        code, shown = terminal.ends()
    assert code == 0
    assert "# " not in shown
    written = (tmp_path / "debate.md").read_text()
    assert written.startswith("# ")
    assert "Round 1" in written


def _until(so: Any) -> None:
    deadline = time.monotonic() + 60
    while not so():
        assert time.monotonic() < deadline
        time.sleep(0.02)
