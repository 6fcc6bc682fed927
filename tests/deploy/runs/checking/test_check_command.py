"""`moot check`: what it prints and how it ends, what it pays for, hostile texts, and what users get wrong."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from judged_claim import ScriptedClaimDebate, ruling
from made_pdfs import made_pdf
from PIL import Image as Pillow
from planted_records import Command, Printed

from moot.deploy.cli import main as cli
from moot.deploy.results.run_info import read_run_info
from moot.deploy.results.show import show
from moot.deploy.runs.checking.check_result import Checked, read_checked
from moot.deploy.runs.checking.show import show_checked

CLAIM = "The bridge opened in 1932."
EVIL = "[bold red]x[/] \x1b[2J\u202egnp\u202c\n```\n# out | <script>$x^2$"
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("notes.txt").write_text("The bridge opened in 1932. It is made of steel.")


def packed(text: str) -> str:
    """Without white space: where a terminal breaks lines does not matter."""
    return "".join(text.split())


def png(size: tuple[int, int] = (12, 8)) -> bytes:
    file = io.BytesIO()
    Pillow.new("1", size).save(file, "PNG")
    return file.getvalue()


@pytest.mark.parametrize(
    ("verdict", "code", "label", "confidence", "head"),
    [
        (1, 0, "supported", 0.8, "supported, confidence 0.8 (stated by the judge)"),
        (0, 5, "hallucinated", 0.8, "hallucinated, confidence 0.8 (stated by the judge)"),
        (None, 6, None, None, "undecided"),
    ],
)
def test_the_exit_code_is_the_label(
    command: Command,
    debate: ScriptedClaimDebate,
    verdict: int | None,
    code: int,
    label: str | None,
    confidence: float,
    head: str,
) -> None:
    debate.judge = lambda step, user: ruling(verdict)
    said, out, _ = command("check", CLAIM, "--docs", "notes.txt", *debate.flags)
    assert (said, out.splitlines()[0]) == (code, head)
    again, out, _ = command("check", CLAIM, "--docs", "notes.txt", *debate.flags, "--format", "json")
    found = json.loads(out)
    assert (again, found["label"]) == (code, label)
    assert found["confidence"] == (confidence if confidence is None else pytest.approx(confidence))
    assert found["source"] == (None if verdict is None else "judges")
    assert ("undecided" in found["flags"]) == (verdict is None)


def test_a_preset_is_taken_as_a_run_takes_it(command: Command, debate: ScriptedClaimDebate) -> None:
    debate.judge = lambda step, user: ruling(1)
    assert command("check", CLAIM, "--docs", "notes.txt", *debate.flags, "--preset", "ceda", "--out", "kept")[0] == 0
    assert read_run_info("kept").preset == "ceda"
    code, _, err = command("check", CLAIM, *debate.flags, "--preset", "selene")
    assert (code, "selene" in err) == (2, True)


@pytest.mark.parametrize("width", [80, 40])
def test_it_fits_a_terminal_and_names_every_place(
    command: Command, debate: ScriptedClaimDebate, printed: Printed, width: int
) -> None:
    Path("picture.png").write_bytes(png())
    Path("plan.pdf").write_bytes(made_pdf(["Of the river.", "The bridge opened in 1934."]))
    files = ("--docs", "notes.txt", "--docs", "plan.pdf", "--image", "picture.png")
    judges = ("--role", f"judge={debate.server.model},{debate.server.model}")
    assert command("check", CLAIM, *files, *debate.flags, *judges, "--out", "kept")[0] == 0
    text = printed(show_checked, read_checked("kept"), width=width)
    assert max(map(len, text.splitlines())) <= width
    for words in (
        "E2: notes.txt, chunk 1, similarity 0.71 The bridge opened in 1932. It is made",
        "E1: plan.pdf, page 2, chunk 2, similarity 0.83 The bridge opened in 1934.",
        "E4: picture 1 A plate says 1932.",
        "E1 and E2 seem to contradict each other (number): 1934 against 1932 (year)",
        f"2. debater/1 on {debate.server.model} says AGREE to the message before: supports the claim",
        "judge/1: supported, confidence 0.8 E1 settles it.",
        "in 6 calls",
    ):
        assert packed(words) in packed(text)


def test_every_form_says_the_same(command: Command, debate: ScriptedClaimDebate) -> None:
    arguments = (CLAIM, "--docs", "notes.txt", *debate.flags)
    text = command("check", *arguments)[1]
    page = command("check", *arguments, "--format", "md")[1]
    found = Checked.model_validate(json.loads(command("check", *arguments, "--format", "json")[1]))
    assert page.startswith("# supported, confidence 0.8")
    assert "## Evidence\n\n**E1: notes.txt, chunk 1" in page
    assert found.evidence[0].place == "notes.txt, chunk 1"
    for words in (found.rationale, found.evidence[0].text, found.messages[1].text, str(found.record)):
        assert packed(words) in packed(text)
        assert words in page
    assert found.cost.calls == 3
    assert not found.simulated


def test_whatever_is_hostile_stays_text(
    command: Command, debate: ScriptedClaimDebate, printed: Printed, outside_fences: Callable[[str], list[str]]
) -> None:
    Path("a[bold]|`#.txt").write_text(f"The bridge opened. {EVIL}")
    debate.debater = lambda step, user: f"DENY. {EVIL}"
    debate.judge = lambda step, user: ruling(0, summary=EVIL)
    files = ("--docs", "a[bold]|`#.txt")
    code, out, _ = command(
        "check", f"The bridge opened. {EVIL}", *files, *debate.flags, "--out", "kept", "--format", "json"
    )
    found = json.loads(out)
    assert code == 5
    assert not CONTROL.search(out.replace("\n", ""))
    assert EVIL in found["claim"]
    assert EVIL in found["messages"][0]["text"]
    assert found["rationale"] == EVIL
    checked = read_checked("kept")
    texts = [printed(show_checked, checked, form=form) for form in ("text", "md")]
    texts += [printed(show, "kept", "claim", form=form) for form in ("text", "md")]
    for text in texts:
        assert not CONTROL.search(text)
        assert "[bold red]x" in text.replace("\\", "")
    for page in texts[1::2]:
        outside = outside_fences(page)
        assert not [line for line in outside if line.startswith("# out") or "<script" in line]
        assert not [line for line in outside if re.search(r"(?<!\\)[\[`]", line)]


def test_the_same_command_again_shows_the_same_and_pays_nothing(command: Command, debate: ScriptedClaimDebate) -> None:
    arguments = (CLAIM, "--docs", "notes.txt", *debate.flags)
    first = command("check", *arguments)
    paid = sum(debate.server.calls.values())
    assert command("check", *arguments) == first
    assert sum(debate.server.calls.values()) == paid
    assert "nothing to do" in command("check", *arguments[:-1])[2]


def test_a_document_that_changed_makes_it_another_check(command: Command, debate: ScriptedClaimDebate) -> None:
    arguments = (CLAIM, "--docs", "notes.txt", *debate.flags)
    command("check", *arguments)
    Path("notes.txt").write_text("The bridge opened in 1934.")
    found = json.loads(command("check", *arguments, "--format", "json")[1])
    assert [item["text"] for item in found["evidence"]] == ["The bridge opened in 1934."]
    assert len(list(Path("runs").iterdir())) == 2


def test_the_records_beside_the_documents_of_a_folder_change_nothing(
    command: Command, debate: ScriptedClaimDebate
) -> None:
    arguments = (CLAIM, "--docs", ".", *debate.flags)
    assert command("check", *arguments)[1] == command("check", *arguments)[1]
    assert len(list(Path("runs").iterdir())) == 1


def test_the_claim_from_standard_input(
    command: Command, debate: ScriptedClaimDebate, monkeypatch: pytest.MonkeyPatch
) -> None:
    def piped(raw: bytes) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw)))
        return command("check", "-", *debate.flags, "--format", "json")

    code, out, _ = piped("Une br\u00fccke\nopened.\n".encode())
    assert (code, json.loads(out)["claim"]) == (0, "Une br\u00fccke\nopened.")
    assert piped(b"\xff")[2] == "error: the claim on standard input is not UTF-8 text\n"
    assert piped(b" \n")[2] == "error: the claim is empty\n"


def test_without_any_evidence_the_verdict_says_so(command: Command, debate: ScriptedClaimDebate) -> None:
    code, out, _ = command("check", CLAIM, *debate.flags, "--out", "kept")
    assert (code, out.splitlines()[0]) == (0, "supported, confidence 0.8 (stated by the judge), no evidence")
    assert "no-evidence" in out
    assert "Evidence ──" not in out
    assert all("No evidence was given" in user for mark in ("debater", "judge") for _, user in debate.messages(mark))


def test_a_budget_stops_it_and_a_larger_one_resumes(command: Command, debate: ScriptedClaimDebate) -> None:
    arguments = ("check", CLAIM, "--docs", "notes.txt", *debate.flags)
    code, out, err = command(*arguments, "--max-tokens", "10")
    assert (code, out, "stopped: --max-tokens 10" in err) == (4, "", True)
    assert command(*arguments, "--max-tokens", "100000")[0] == 0


def test_a_judge_whose_reply_cannot_be_read_is_missing(command: Command, debate: ScriptedClaimDebate) -> None:
    debate.judge = lambda step, user: "I would rather not judge." if "/judge/1" in step else ruling(0)
    judges = ("--role", f"judge={debate.server.model},{debate.server.model}")
    code, out, _ = command("check", CLAIM, "--docs", "notes.txt", *debate.flags, *judges)
    assert code == 5
    assert "judges-missing" in out
    assert packed("judge/1: missing: unparsable") in packed(out)


@pytest.mark.parametrize("role", ["judge", "debater"])
def test_a_check_without_a_verdict_fails_and_can_be_tried_again(
    command: Command, debate: ScriptedClaimDebate, role: str
) -> None:
    arguments = (CLAIM, "--docs", "notes.txt", *debate.flags)
    usual = getattr(debate, role)
    setattr(debate, role, lambda step, user: "")
    code, out, err = command("check", *arguments)
    assert (code, out.splitlines()[0][:13]) == (3, "not checked: ")
    assert "use --retry-failed to retry them" in err
    setattr(debate, role, usual)
    assert command("check", *arguments)[0] == 3, "a failure lasts"
    assert command("check", *arguments, "--retry-failed")[0] == 0


def test_the_reader_of_pdfs_does_not_speak_itself(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is a process of its own, and has something to say of a slightly broken file."""
    Path("odd.pdf").write_bytes(b"no header\n" + made_pdf(["The bridge opened in 1932."]))
    monkeypatch.setattr(sys, "argv", ["moot", "check", CLAIM, "--docs", "odd.pdf", "-q"])
    with pytest.raises(SystemExit):
        cli.main()
    out, err = capfd.readouterr()
    assert "odd.pdf" in out
    assert err == ""
