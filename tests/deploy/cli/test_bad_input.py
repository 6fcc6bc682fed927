"""What users get wrong on the command line: one line that names it, exit code 2, and nothing is written."""

from __future__ import annotations

import errno
import io
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn

import pytest
from made_pdfs import made_pdf
from PIL import Image
from planted_records import Command

from moot.deploy.cli import main

RUN = ("run", "--engine", "inline", "--quiet")
CHECK = ("check", "The bridge opened in 1932.", "-q")
JUDGE = ("judge", "--engine", "inline")
SUBJECT = "Should cities ban cars?"
CASE = '{"question": "q", "answer": true, "passage": "p"}'
LEVELS = "levels: {1: b, 2: g}"


def _huge_picture() -> bytes:
    file = io.BytesIO()
    Image.new("1", (8000, 8000)).save(file, "PNG")
    return file.getvalue()


FILES: dict[str, str | bytes] = {
    "bad.jsonl": f"{CASE}\n{CASE.replace('true', '3')}\n",
    "limits.yaml": "requests_per_min: 0\n",
    "full/notes.txt": "",
    "scan.pdf": made_pdf(["", ""]),
    "bare.jsonl": '{"prompt": "x"}\n',
    "typo.yaml": f"instructions: x\ndimensons: {{a: {{question: q, {LEVELS}}}}}\n",
    "inner.yaml": f"instructions: x\ndimensions: {{a: {{question: q, {LEVELS}, passes_a: 1}}}}\n",
    "cases.csv": "question\nWhich one?\n",
    "mine.py": "class Settings: ...\n\nclass Mine:\n    async def run(self, case, floor): ...\n",
    "bytes.txt": b"\xff\xfe\x00",
    "huge.png": _huge_picture(),
}
WRONG: dict[tuple[str, ...], list[tuple[list[str], str]]] = {
    RUN: [
        (["--task", "boolq:absent.jsonl"], "absent.jsonl"),
        (["--task", "boolq:bad.jsonl"], "bad.jsonl:2: field `answer`"),
        (["--task", "boolk:x"], "'boolq'"),
        (["--protocol", "selen"], "'selene'"),
        (["--protocol", "selene,selene"], "different names"),
        (["--protocol", "single-agent,majority-vote", "--role", "judge=simulated"], "'judge'"),
        (["--set", "gate.tau=1"], "'gate.tau'"),
        (["--set", "gate.tau_p=2"], "`gate.tau_p`"),
        (["--role", "juge=simulated"], "'judge'"),
        (["--placement", "there"], "--placement: "),
        (["--prompts", "absent"], "--prompts absent"),
        (["--limit", "0"], "--limit: "),
        (["--seed", "x"], "--seed: expected a whole number, not 'x'"),
        (["--temperature", "hot"], "--temperature: expected a number, not 'hot'"),
        (["--preset", "selene,evince"], "'selene,evince'"),
        (["--rpm", "-1"], "--rpm: expected at least 1, not -1"),
        (["--max-cost", "-1"], "--max-cost: "),
        (["--model", "openai/gpt-4o", "--max-cost", "0"], "--max-cost 0 "),
        (["cases.csv"], "as --task cases.csv"),
        (["--protocol", "mine"], "--protocol mine:Mine"),
        (["limits.yaml"], "limits.yaml: `requests_per_min`: "),
        (["limits.yaml", "--rpm", "9", "--limit", "0"], "--limit: "),
        (["--log-level", "loud"], "'loud'"),
        (["--out", "full"], "full"),
    ],
    CHECK: [
        (["--docs", "scan.pdf"], "'scan.pdf' has no text"),
        (["--docs", "~nobody-of-this-name/a.txt"], "~nobody"),
        (["--docs", f"{'n' * 300}.txt"], "nnn"),
        (["--docs", "none.txt"], "--docs none.txt: "),
        (["--image", "huge.png"], "huge.png: 8000 x 8000 pixels"),
        (["--image", "none.png"], "none.png: "),
        (["--role", "debater=simulated,simulated,simulated"], " 2 only"),
        (["--classifier", "none"], "none"),
        (["--set", "max_turns=0"], "max_turns"),
        (["--format", "jsn"], "'json'"),
        (["--out", "bare.jsonl"], "bare.jsonl"),
    ],
    JUDGE: [
        (["none.jsonl"], "none.jsonl: "),
        (["bare.jsonl"], "bare.jsonl:1: field `reply`"),
        (["cases.csv"], "moot run --task cases.csv"),
        (["sample-replies", "--rubric", "resoning"], "did you mean 'reasoning'?"),
        (["sample-replies", "--rubric", "typo.yaml"], "did you mean 'dimensions'?"),
        (["sample-replies", "--rubric", "inner.yaml"], "`dimensions.a`: unknown key 'passes_a'"),
        (["sample-replies", "--passes", "0"], "--passes"),
        (["sample-replies", "--role", "agent=simulated"], "has no role 'agent'"),
        (["sample-replies", "--format", "jsn"], "did you mean 'json'?"),
    ],
    ("debate",): [
        ([""], "the subject is empty"),
        ([SUBJECT, "--facts", "nowhere.txt"], "--facts nowhere.txt"),
        ([SUBJECT, "--facts", "bytes.txt"], "--facts bytes.txt"),
        ([SUBJECT, "--labels", "Yes,,No"], "--labels 'Yes,,No'"),
        ([SUBJECT, "--labels", "Yes,Yes"], "labels"),
        ([SUBJECT, "--protocol", "selen"], "did you mean 'selene'"),
        ([SUBJECT, "--format", "pdf"], "unknown format 'pdf'"),
        ([SUBJECT, "--new", "--out", "there"], "--new"),
        ([SUBJECT, "--interactive"], "--interactive"),
        ([SUBJECT, "--agents", "0"], "--agents"),
    ],
    ("simulate",): [
        (["--fail-rate", "7"], "--fail-rate"),
        (["--competence", "7"], "--competence"),
        (["--task", "boolq:absent"], "absent"),
    ],
    ("plan", "--from", "nowhere"): [
        (["--cases", "0"], "--cases"),
        (["--cases", "10", "--placement", "both"], "--placement"),
        (["--cases", "10", "--format", "md"], "--format"),
        (["--cases", "10"], "nowhere"),
    ],
    **{(name,): [(["nowhere"], "nowhere")] for name in ("show", "calibrate", "decide")},
    ("compare",): [(["nowhere"], "at least two runs"), (["nowhere", "elsewhere"], "nowhere")],
}
"""By the beginning of a command: its remaining arguments, and what the error line must name."""


@pytest.mark.parametrize(
    ("words", "message"),
    [([*begun, *more], message) for begun, rows in WRONG.items() for more, message in rows],
    ids=str,
)
def test_bad_input_is_one_line_and_writes_nothing(words: list[str], message: str, command: Command) -> None:
    for name, content in FILES.items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_bytes(content.encode() if isinstance(content, str) else content)
    before = sorted(Path.cwd().rglob("*"))
    code, out, err = command(*words)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert message in err
    assert sorted(Path.cwd().rglob("*")) == before


@pytest.mark.parametrize("words", [["run", "--no-such-flag"], ["fly"]])
def test_what_is_no_command_or_flag_is_refused(words: list[str], command: Command) -> None:
    assert command(*words)[0] == 2


@pytest.mark.parametrize(
    "words",
    [
        [*RUN, "--task", "boolq:{}"],
        [*RUN, "--model", "{}#m"],
        [*RUN, "--model", "local/{}"],
        ["show", "{}"],
        ["check", "--engine", "inline", "--image", "{}", "Penguins fly."],
        ["check", "--engine", "inline", "--docs", "{}", "Penguins fly."],
        ["{}"],
    ],
)
def test_no_secret_of_an_address_is_printed(words: list[str], command: Command) -> None:
    address = "https://jane:hunter2000@127.0.0.1:9/cases.csv?sig=canary2000"
    code, out, err = command(*(each.format(address) for each in words))
    assert (code, err[:7]) == (2, "error: ")
    assert "2000" not in out + err


@pytest.mark.parametrize(
    "words",
    [["view"], ["show"], ["judge"], ["run"], ["run", "--out"], ["run", "--prompts"], ["analyze", "--table"]],
    ids=" ".join,
)
@pytest.mark.parametrize("key", ["hunter2000", "hun/ter2000"])
def test_no_key_in_the_address_of_a_bucket_is_printed(words: list[str], key: str, command: Command) -> None:
    for uri in (f"s3://KEY2000:{key}@bucket/runs", f"s3://bucket/runs?secret_key={key}"):
        code, out, err = command(*words, uri)
        assert (code, err[:7]) == (2, "error: ")
        assert "2000" not in out + err


@pytest.mark.parametrize("words", [["tasks"], ["--help"], ["explain", "accuracy"]], ids=" ".join)
def test_a_full_disk_behind_the_output_is_one_line(words: list[str]) -> None:
    with open("/dev/full", "w") as full:
        ended = subprocess.run([sys.executable, "-m", "moot", *words], stdout=full, stderr=subprocess.PIPE, text=True)
    assert (ended.returncode, ended.stderr) == (2, "error: the output cannot be written: No space left on device\n")


@pytest.mark.parametrize("length", [1, 2**20])
def test_a_reader_that_has_gone_is_no_error(length: int) -> None:
    """Whether the text is still buffered when writing it fails, or not."""
    show = f"from moot.deploy.cli import main; main._command = lambda: lambda **_: print('x' * {length}); main.main()"
    reader, writer = os.pipe()
    os.close(reader)
    ended = subprocess.run([sys.executable, "-c", show], stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    assert (ended.returncode, ended.stderr) == (1, "")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (BrokenPipeError(errno.EPIPE, "Broken pipe"), None),
        (OSError(errno.EIO, "Input/output error", "there"), "error: there cannot be read or written: "),
        (OSError(errno.ENOSPC, "No space left on device", "there"), "error: there cannot be written: "),
        (OSError(errno.EMFILE, "Too many open files"), None),
    ],
)
def test_only_errors_of_a_disk_are_said_in_one_line(
    error: OSError, said: str | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(**_: Any) -> NoReturn:
        raise error

    monkeypatch.setattr(main, "_command", lambda: fail)
    with pytest.raises(OSError if said is None else SystemExit) as raised:
        main.main()
    assert raised.value is error if said is None else capsys.readouterr().err.startswith(said)


def test_a_run_with_closed_standard_streams_ends_in_order(tmp_path: Path) -> None:
    command = f"exec {sys.executable} -m moot run --engine inline --limit 1 --quiet --out {tmp_path}/run <&- >&- 2>&-"
    assert subprocess.run(["bash", "-c", command], check=False).returncode == 0
