"""CEDA on slices of the real benchmarks and on real pictures, by way of both vendors' SDKs; the server is simulated."""

from __future__ import annotations

import json
import shutil
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from not_none import not_none
from openai_server import simulated_server, stats_of
from places import DATA
from vendor_roles import KEY_ENV, Vendor, ceda_roles

from moot.actors.models.pictures import load_image
from moot.actors.models.probe_calls import STEP_KEY as PROBE
from moot.deploy.runs.outcome import Run
from moot.deploy.runs.run import run
from moot.protocols.claims import answered_claim

BLIND, BENCH = DATA / "vlm_blind", DATA / "hallusionbench"
CLAIMS = 12

pytestmark = [pytest.mark.slow, pytest.mark.needs("data/vlm_blind", "data/hallusionbench", "data/fever")]


@pytest.fixture(autouse=True)
def any_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_ENV, "unused-but-long-enough")


def check(task: str, port: int, out: Path, vision: Vendor = "openai", limit: int | None = None) -> Run:
    """Every claim of a task checked, none of which fails."""
    done = run(task=task, protocol="ceda", engine="inline", limit=limit, out=out, roles=ceda_roles(port, vision))
    assert done.failed == 0, [row["error"] for row in done.table("verdicts").to_pylist() if row["failed"]]
    return done


def events(done: Run, kind: str) -> dict[str, dict[str, Any]]:
    """By case its only event of a kind."""
    rows = [row for row in done.table("events").to_pylist() if row["kind"] == kind]
    found = {row["case_id"]: json.loads(row["data"]) for row in rows}
    assert len(found) == len(rows)
    return found


@pytest.mark.parametrize(
    ("task", "has_text", "claims"),
    [
        ("fever:fever/fever_symmetric_dev.jsonl", True, CLAIMS),
        ("fever:fever/paper_dev.jsonl", False, CLAIMS),
        ("halueval:halueval/qa_one-turn_data.json", True, CLAIMS),
        ("halueval:halueval/summarization_data.json", True, 2),
        ("truthfulqa:truthfulqa/TruthfulQA.csv", False, CLAIMS),
        ("qags:qags/mturk_cnndm.jsonl", True, CLAIMS),
        ("nq:nq_open/NQ-open.dev.jsonl", False, CLAIMS),
    ],
)
def test_a_slice_is_checked_whole(task: str, has_text: bool, claims: int, tmp_path: Path) -> None:
    """Some slices come with a text to check claims by."""
    kind, _, file = task.partition(":")
    with simulated_server(None, seed=3) as port:
        done = check(f"{kind}:{DATA / file}", port, tmp_path / "run", limit=claims)
        stats = stats_of(port)
    verdicts = done.table("verdicts").to_pylist()
    assert (done.done, len(verdicts)) == (claims, claims)
    assert all(("no-evidence" in row["flags"]) != has_text for row in verdicts)
    gathered = events(done, "evidence")
    assert all(bool(gathered[row["case_id"]]["items"]) == has_text for row in verdicts)
    passages = {row["case_id"]: " ".join((row["passage"] or "").split()) for row in done.table("cases").to_pylist()}
    quoted = [(" ".join(item["text"].split()), passages[case]) for case in gathered for item in gathered[case]["items"]]
    assert all(text in passage for text, passage in quoted), "the file's own text, word for word"
    turns = done.table("turns").to_pylist()
    assert {row["model"] for row in turns} == {"openai/simulated", "anthropic/simulated"}
    asked = {f"{row['case_id']}/{row['attempt']}/{row['path']}" for row in turns}
    assert {step: told["calls"] for step, told in stats["by_step"].items() if step != PROBE} == dict.fromkeys(asked, 1)
    assert stats["pictures"] == 0


# --- the nine real pictures


def described(done: Run) -> dict[str, str]:
    """By case the description of its picture."""
    gathered = events(done, "evidence")
    pictures = {case: [i for i in data["items"] if i["kind"] == "picture"] for case, data in gathered.items()}
    return {case: items[0]["text"] for case, items in pictures.items() if items}


def sent_of(picture: Path) -> bytes:
    """The bytes that are sent of a file: its own, but for the metadata of those that have some."""
    return load_image(picture).data


def told_of(picture: Path) -> str:
    data = sent_of(picture)
    return f"it has {len(data)} bytes, and their SHA-256 begins with {sha256(data).hexdigest()[:12]}."


@pytest.fixture
def blind(tmp_path: Path) -> tuple[str, dict[str, Path]]:
    """Claims about the eight small pictures, right ones and wrong ones; and by claim its picture."""
    rows, pictures = [], {}
    for number, line in enumerate((BLIND / "index.jsonl").read_text().splitlines()):
        told = json.loads(line)
        shutil.copy(BLIND / told["file"], tmp_path / told["file"])
        for label, answer in ((1, told["answer"]), (0, "17")):
            case, claim = f"blind-{number}-{label}", answered_claim(told["question"], answer)
            rows.append({"id": case, "claim": claim, "label": label, "images": [told["file"]]})
            pictures[case] = BLIND / told["file"]
    (tmp_path / "blind.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return f"claims:{tmp_path / 'blind.jsonl'}", pictures


def test_the_bytes_of_eight_real_pictures_arrive(blind: tuple[str, dict[str, Path]], tmp_path: Path) -> None:
    """By way of OpenAI's SDK; the tests below go by way of Anthropic's."""
    task, pictures = blind
    with simulated_server(None, seed=3) as port:
        done = check(task, port, tmp_path / "run")
        stats = stats_of(port)
    told = described(done)
    assert told.keys() == pictures.keys()
    assert [case for case, picture in pictures.items() if told_of(picture) not in told[case]] == []
    looked = [row for row in done.table("turns").to_pylist() if row["image_hashes"]]
    assert {row["model"] for row in looked} == {"openai/simulated"}
    assert {row["text"] for row in looked} == set(told.values())
    sizes = {text: len(sent_of(pictures[case])) for case, text in told.items()}
    assert (stats["pictures"], stats["picture_bytes"]) == (len(looked), sum(sizes[row["text"]] for row in looked))


def test_hallusionbench_with_its_real_picture(tmp_path: Path) -> None:
    """29 questions of the slice can be asked: 25 come without a picture, 4 with the one that is there."""
    with simulated_server(None, seed=3) as port:
        done = check(f"hallusionbench:{BENCH}:pictures=present", port, tmp_path / "run", "anthropic")
        stats = stats_of(port)
    told = described(done)
    picture = BENCH / "VD" / "video" / "1_1.png"
    assert len(told) == 4
    assert all(told_of(picture) in text for text in told.values())
    assert stats["picture_bytes"] == stats["pictures"] * len(sent_of(picture)) > 0
    scored = {(each.by, each.part): each for each in not_none(not_none(done.summary.detection).hallusionbench)}
    assert [scored["always no", part].question.n for part in (None, "VS", "VD")] == [29, 25, 4]
