"""`moot debate --interactive` at terminals, against a server that counts what it is asked.

A terminal of this process does where neither a signal nor the editing of a line is at stake.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import moderated_debate
import pytest
import ray
from inprocess_terminal import run_conversation
from openai_server import ScriptedServer
from planted_records import Command
from terminals import PseudoTerminal
from waiting import wait_until

from moot.actors.record.tables import read_table

SUBJECT = "Should cities ban cars?"
HOSTILE = "\x1b[2J\x1b]0;owned\x07\x1b[31mred\u202eback\x9b1m\rover\x08"


@pytest.fixture(autouse=True)
def _scripts(server: ScriptedServer) -> None:
    """The server answers the moderated debate."""
    server.scripts.update(moderated_debate.SCRIPTS)


@pytest.fixture(params=["inline", pytest.param("ray", marks=[pytest.mark.ray, pytest.mark.slow])])
def engine(request: pytest.FixtureRequest) -> list[str]:
    """What names the engine on the command line: this process, or this process's Ray."""
    if request.param == "inline":
        return ["--engine", "inline"]
    request.getfixturevalue("local_ray")
    return ["--address", ray.get_runtime_context().gcs_address]


def _command(server: ScriptedServer, *more: str, engine: Sequence[str] = ("--engine", "inline")) -> list[str]:
    spoken = ["--protocol", "moderated_debate:ModeratedDebate", "--model", server.model, *engine]
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


def test_a_session_from_the_topics_to_the_end(server: ScriptedServer, tmp_path: Path) -> None:
    """An editor that changes nothing, fails, or is not there decides nothing."""

    def person(terminal: PseudoTerminal) -> None:
        for editor, said in (("true", "nothing is decided"), ("false", "Editing failed"), (missing, missing)):
            os.environ["EDITOR"] = editor  # a command of this process sees it at once
            terminal.types("edit")
            assert said in terminal.types("help")
        os.environ["EDITOR"] = "sed -i -e 1iPeace"
        terminal.types("edit")
        assert "Done: edit topics." in terminal.types("go")
        shown = terminal.types("set much")
        assert "agent/0 on" in shown
        assert "crit.agent/1" in shown
        assert "Not used: 'much' is not a number" in terminal.types("2 0.3")
        terminal.types("what now")
        assert "unknown action 'what now'" in terminal.types("ask and the trees?")
        assert "side 1 says" in terminal.types("show")
        assert "none yet: it waits for a person" in terminal.types("go on")
        shown = terminal.types("end")
        assert "Round 2" in shown
        assert "and the trees?" in " ".join(shown.split())
        code, shown = terminal.ends()
        assert code == 0
        assert "Verdict" in shown
        assert "moot show run question" in shown

    missing = "no-such-editor"
    run_conversation(person, tmp_path, *_command(server), EDITOR="true")
    verdict = _verdict(tmp_path)
    assert (verdict["how"], verdict["rounds"]) == ("ended", 2)
    assert (verdict["payload"]["kappa"], verdict["payload"]["topics"].splitlines()[0]) == (0.3, "Peace")
    assert _paid(server) == _once(2)


@pytest.mark.parametrize("leaving", ["quit", "Ctrl-D"])
def test_who_leaves_comes_back_to_the_same_form(leaving: str, server: ScriptedServer, tmp_path: Path) -> None:
    def leaves(terminal: PseudoTerminal) -> None:
        terminal.types("go")
        terminal.sees("\n> ")
        assert "Round 1" in terminal.all_seen
        terminal.child.send("quit\n" if leaving == "quit" else "\x04")
        code, shown = terminal.ends()
        assert code == 0
        assert "the same command" in shown

    run_conversation(leaves, tmp_path, *_command(server))
    _comes_back(server, tmp_path)


def test_ctrl_c_at_the_prompt_stops_the_run(server: ScriptedServer, tmp_path: Path) -> None:
    with PseudoTerminal(tmp_path, *_command(server)) as terminal:
        terminal.types("go")
        assert "Round 1" in terminal.presses("c")
        code, shown = terminal.ends()
    assert code == 130
    assert "the same command" in shown
    _comes_back(server, tmp_path)


def _comes_back(server: ScriptedServer, folder: Path) -> None:
    """The same command shows the form of the first round again; once the debate has ended, its verdict."""

    def ends(terminal: PseudoTerminal) -> None:
        shown = terminal.types("end")
        assert "you decided: go on" in shown
        assert "Round 1" in shown
        assert terminal.ends()[0] == 0

    def looks(terminal: PseudoTerminal) -> None:
        code, shown = terminal.ends()
        assert (code, "Verdict" in shown) == (0, True)

    for person in (ends, looks):
        run_conversation(person, folder, *_command(server))
        assert _paid(server) == _once(1)


@pytest.mark.slow
def test_a_kill_in_the_middle_of_a_call(engine: list[str], server: ScriptedServer, tmp_path: Path) -> None:
    """What was decided stays decided, and only the calls under way are made again."""
    server.gated = "/round/1/"
    with PseudoTerminal(tmp_path, *_command(server, engine=engine)) as terminal:
        terminal.types("go")
        wait_until(lambda: len(_paid(server)) == 3)
        terminal.child.kill(signal.SIGKILL)
        assert terminal.ends()[0] == -signal.SIGKILL
    # Ray's actors outlive their driver for a moment: a reply that still reached them could still be recorded.
    wait_until(lambda: len(server.cancelled) == 2)
    server.gate.set()
    run_conversation(_ends_after_a_round, tmp_path, *_command(server))
    assert _paid(server) == {"round/1/agent/0": 2, "round/1/agent/1": 2, "topics": 1}


@pytest.mark.slow
@pytest.mark.parametrize("again", [False, True])
def test_ctrl_c_while_models_are_at_work_waits_for_them_and_a_second_one_does_not(
    again: bool, server: ScriptedServer, tmp_path: Path
) -> None:
    server.gated = "/round/1/"
    with PseudoTerminal(tmp_path, *_command(server)) as terminal:
        terminal.types("go")
        wait_until(lambda: len(_paid(server)) == 3)
        terminal.child.sendcontrol("c")
        terminal.sees("stopping: finishing calls in flight")
        if again:
            terminal.child.sendcontrol("c")
        else:
            server.gate.set()
        assert terminal.ends()[0] == 130
    server.gate.set()
    run_conversation(_ends_after_a_round, tmp_path, *_command(server))
    assert _paid(server)["topics"] == 1
    assert again or _paid(server) == _once(1)


@pytest.mark.slow
def test_a_line_can_be_edited_and_nothing_is_taken_in_advance(server: ScriptedServer, tmp_path: Path) -> None:
    server.gated = "/round/1/"
    with PseudoTerminal(tmp_path, *_command(server)) as terminal:
        terminal.types("xg\x1b[D\x7f")  # back over the g, and the x is gone
        wait_until(lambda: len(_paid(server)) == 3)
        terminal.child.sendline("end")  # before there is a form that it could answer
        time.sleep(0.3)
        server.gate.set()
        assert "Round 1" in terminal.types("2 0.5")
        terminal.types("5")
        assert terminal.ends()[0] == 0
    assert _verdict(tmp_path)["payload"]["kappa"] == 0.5
    assert _paid(server) == _once(1)


def test_without_a_terminal_nothing_begins(server: ScriptedServer, command: Command) -> None:
    code, _, err = command(*_command(server), given="go on\n")
    assert (code, "--interactive needs a terminal" in err) == (2, True)
    assert list(Path.cwd().iterdir()) == []
    assert _paid(server) == {}


def test_what_models_write_does_not_reach_the_terminal_as_it_is(server: ScriptedServer, tmp_path: Path) -> None:
    server.scripts["topics"] = server.scripts["argue"] = lambda step, user: f"{HOSTILE} said at {step}"

    def person(terminal: PseudoTerminal) -> None:
        terminal.types("go")
        terminal.types("show")
        assert "over\u2408 said at" in terminal.types("end")
        terminal.ends()
        assert "\u241b[2J" in terminal.all_seen
        assert not {"\x1b", "\x07", "\x08", "\x9b", "\u202e"} & set(terminal.all_seen)

    run_conversation(person, tmp_path, *_command(server))


def test_the_transcript_goes_where_standard_output_goes(server: ScriptedServer, tmp_path: Path) -> None:
    """The conversation stays on the terminal."""

    def person(terminal: PseudoTerminal) -> None:
        terminal.types("go")
        assert "Round 1" in terminal.types("end")
        code, shown = terminal.ends()
        assert code == 0
        assert "# " not in shown

    run_conversation(person, tmp_path, *_command(server, "--format", "md"), into="debate.md")
    written = (tmp_path / "debate.md").read_text()
    assert written.startswith("# ")
    assert "Round 1" in written


def _ends_after_a_round(terminal: PseudoTerminal) -> None:
    assert "Round 1" in terminal.types("end")
    assert terminal.ends()[0] == 0
