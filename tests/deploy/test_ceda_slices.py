"""CEDA on slices of the real benchmarks and on real pictures, by way of both vendors' SDKs; the server is simulated."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from openai_server import simulated_server, stats_of
from vendor_roles import KEY_ENV, Vendor, ceda_roles

from moot.actors.models.pictures import load_image
from moot.actors.models.trial import STEP_KEY as PROBE
from moot.deploy.reading.detection.detection import Detection
from moot.deploy.running.outcome import Run
from moot.deploy.running.run import run
from moot.protocols.claims import HALLUCINATED, SUPPORTED, answered_claim

DATA = Path(__file__).parents[2].parent / "shared" / "data"
BLIND, BENCH = DATA / "vlm_blind", DATA / "hallusionbench"
CLAIMS = 12

pytestmark = [pytest.mark.slow, pytest.mark.needs("data/vlm_blind", "data/hallusionbench", "data/fever")]


@dataclass(frozen=True)
class Slice:
    """A slice, and whether its claims come with a text to check them by."""

    task: str
    has_text: bool
    claims: int = CLAIMS


SLICES = {
    "FEVER with evidence": Slice("fever:fever/fever_symmetric_dev.jsonl", has_text=True),
    "FEVER without": Slice("fever:fever/paper_dev.jsonl", has_text=False),
    "HaluEval questions": Slice("halueval:halueval/qa_one-turn_data.json", has_text=True),
    "HaluEval summaries": Slice("halueval:halueval/summarization_data.json", has_text=True, claims=2),
    "TruthfulQA": Slice("truthfulqa:truthfulqa/TruthfulQA.csv", has_text=False),
    "QAGS": Slice("qags:qags/mturk_cnndm.jsonl", has_text=True),
    "NQ": Slice("nq:nq_open/NQ-open.dev.jsonl", has_text=False),
}


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


def f1(pairs: Counter[tuple[str, str | None]], positive: str) -> float:
    """From counts of gold label and answer."""
    hits = pairs[positive, positive]
    called = sum(n for (_, answer), n in pairs.items() if answer == positive)
    there = sum(n for (gold, _), n in pairs.items() if gold == positive)
    return 2 * hits / (called + there)


def assert_figures(found: Detection, verdicts: list[dict[str, Any]]) -> None:
    """The figures are what verdicts and gold labels come to, and the trivial answers stand beside them."""
    assert found.whole is not None
    pairs = Counter((row["gold"], row["answer"]) for row in verdicts)
    golds = Counter(row["gold"] for row in verdicts)
    assert (found.claims, found.finished, found.failed, found.open) == (len(verdicts), len(verdicts), 0, 0)
    assert found.whole.n == len(verdicts)
    whole = found.whole.by("verdict")
    assert whole is not None
    right = sum(n for (gold, answer), n in pairs.items() if gold == answer)
    assert whole.accuracy.value == pytest.approx(right / len(verdicts))
    for label in golds:
        figures, trivial = whole.of(label), found.whole.by(f"always {label}")
        assert trivial is not None
        assert figures.n == golds[label]
        assert figures.f1.value == pytest.approx(f1(pairs, label))
        assert trivial.accuracy.value == pytest.approx(golds[label] / len(verdicts))
        assert trivial.of(label).f1.value == pytest.approx(2 * golds[label] / (golds[label] + len(verdicts)))
    assert found.whole.only == (next(iter(golds)) if len(golds) == 1 else None)
    assert (whole.macro_f1.value is None) == (len(golds) == 1)
    assert found.whole.by("judges' bare verdict") is not None
    assert found.seconds is not None
    assert found.seconds.n == len(verdicts)


@pytest.mark.parametrize("name", SLICES)
def test_a_slice_is_checked_whole(name: str, tmp_path: Path) -> None:
    part = SLICES[name]
    kind, _, file = part.task.partition(":")
    with simulated_server(None, seed=3) as port:
        done = check(f"{kind}:{DATA / file}", port, tmp_path / "run", limit=part.claims)
        stats = stats_of(port)
    verdicts = done.table("verdicts").to_pylist()
    assert (done.done, len(verdicts)) == (part.claims, part.claims)
    assert done.summary.detection is not None
    assert_figures(done.summary.detection, verdicts)
    assert all(("no-evidence" in row["flags"]) != part.has_text for row in verdicts)
    gathered = events(done, "evidence")
    assert all(bool(gathered[row["case_id"]]["items"]) == part.has_text for row in verdicts)
    turns = done.table("turns").to_pylist()
    assert {row["model"] for row in turns} == {"openai/simulated", "anthropic/simulated"}
    asked = {f"{row['case_id']}/{row['attempt']}/{row['path']}" for row in turns}
    assert {step: told["calls"] for step, told in stats["by_step"].items() if step != PROBE} == dict.fromkeys(asked, 1)
    assert stats["pictures"] == 0


def test_passages_are_quoted_word_for_word(tmp_path: Path) -> None:
    """What a claim is checked by is the file's own text, chunk by chunk."""
    with simulated_server(None, seed=3) as port:
        done = check(f"fever:{DATA / 'fever/fever_symmetric_dev.jsonl'}", port, tmp_path / "run", limit=CLAIMS)
    passages = {row["case_id"]: row["passage"] for row in done.table("cases").to_pylist()}
    for case, gathered in events(done, "evidence").items():
        for item in gathered["items"]:
            assert item["kind"] == "passage"
            assert " ".join(item["text"].split()) in " ".join(passages[case].split())


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
            rows.append(
                {
                    "id": f"blind-{number}-{label}",
                    "claim": answered_claim(told["question"], answer),
                    "label": label,
                    "images": [told["file"]],
                    "group": told["file"],
                    "category": told["task"],
                }
            )
            pictures[f"blind-{number}-{label}"] = BLIND / told["file"]
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
    found = done.summary.detection
    assert found is not None
    assert_figures(found, done.table("verdicts").to_pylist())
    assert [each.category for each in found.by_category] == sorted({_task_of(path) for path in pictures.values()})


def _task_of(picture: Path) -> str:
    return picture.name.partition("_")[0]


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
    verdicts = done.table("verdicts").to_pylist()
    found = done.summary.detection
    assert found is not None
    assert_figures(found, verdicts)
    assert found.hallusionbench is not None
    scored = {(each.by, each.part): each for each in found.hallusionbench}
    no = scored["always no", None]
    right = [row["gold"] == HALLUCINATED for row in verdicts]
    assert no.question.n == len(verdicts) == 29
    assert no.question.share.value == pytest.approx(sum(right) / len(right))
    assert scored["always no", "VS"].question.n == 25
    assert scored["always no", "VD"].question.n == 4
    answered = scored["verdict", None]
    open_right = sum(row["answer"] is None for row in verdicts if row["case_id"] not in told)
    hits = sum(row["answer"] == row["gold"] for row in verdicts)
    assert answered.left_open_right == open_right
    assert answered.question.share.value == pytest.approx((hits + open_right) / 29)
    assert {row["gold"] for row in verdicts} == {SUPPORTED, HALLUCINATED}


def test_a_picture_without_metadata_is_sent_as_the_file_has_it() -> None:
    pictures = [*BLIND.glob("*.png"), BENCH / "VD" / "video" / "1_1.png"]
    assert len(pictures) == 9
    assert sorted({file.name.partition("_")[0] for file in pictures if sent_of(file) == file.read_bytes()}) == [
        "LineIntersection",
        "TouchingCircle",
    ]


def test_an_equal_picture_under_an_equal_prompt_is_sent_once(
    blind: tuple[str, dict[str, Path]], tmp_path: Path
) -> None:
    """With the fixed prompt sixteen claims need eight descriptions."""
    task, pictures = blind
    with simulated_server(None, seed=3) as port:
        roles = ceda_roles(port, "anthropic")
        done = run(
            task=task,
            protocol="ceda",
            engine="inline",
            out=tmp_path / "run",
            roles=roles,
            set={"vision.prompt": "fixed"},
        )
        stats = stats_of(port)
    sizes = {picture: len(sent_of(picture)) for picture in pictures.values()}
    assert (stats["pictures"], stats["picture_bytes"]) == (len(sizes), sum(sizes.values())) == (8, sum(sizes.values()))
    told = described(done)
    assert all(told_of(picture) in told[case] for case, picture in pictures.items())
