"""A check of a claim as a transcript: evidence with its places, stances, the ruling, and what only looks like them."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.dataset as dataset
import pytest
from not_none import not_none
from PIL import Image as Pillow
from planted_records import CONTROL, EVIL, PlantedSession, Printed

import moot
from moot.deploy.results.protocols.ceda import check_pairs
from moot.deploy.results.recorded_data import EventView
from moot.deploy.results.report.blocks import Block, Items
from moot.deploy.results.show import show
from moot.deploy.results.transcript_blocks import known_event
from moot.deploy.runs.checking.check_result import EvidenceItem, read_checked
from moot.protocols.ceda.events import EvidenceGathered, RulingGiven, StanceTaken, StateAdvanced
from moot.protocols.ceda.items import Item
from moot.protocols.claims import CLAIM_LABELS

TEXT = {"id": "E1", "kind": "document", "document": "a.pdf", "chunk": 2, "page": 4, "picture": None, "text": "In 1932."}
TEXT |= {"similarity": 0.712}
OTHER = TEXT | {"id": "E2", "kind": "passage", "document": "passage", "page": None, "text": EVIL}
SEEN = {"id": "E3", "kind": "picture", "document": "picture 1", "chunk": None, "page": None, "picture": 0}
SEEN |= {"text": "A plate.", "similarity": None}
EVIDENCE: dict[str, Any] = {
    "items": [TEXT, OTHER, SEEN],
    "conflicts": [{"between": ["E1", "E2"], "why": "number", "detail": EVIL}],
    "considered": 3,
    "shown_to": {"debater/0": ["E1", "E3"], "debater/1": ["E3"]},
}
JUDGE = {"judge": "judge/0", "verdict": 0, "confidence": 0.9, "summary": "So.", "consensus": True, "missing": ""}
LOST = JUDGE | {"judge": "judge/1", "verdict": None, "confidence": None, "missing": f"timeout: {EVIL}"}
RULING: dict[str, Any] = {"judges": [JUDGE, LOST], "verdict": 0, "p_hallucinated": 0.9, "summary": "So."}
RULING |= {"classifier": {"p_hallucinated": 0.31, "trained_on": True}}
PAYLOAD: dict[str, Any] = {
    "p_hallucinated": 0.31, "source": "classifier", "verdict": 0, "p_judges": 0.9, "summary": "So.", "agreed": [],
    "classifier": {"p_hallucinated": 0.31, "trained_on": True}, "disputed": [], "stances": {}, "first_stances": {},
}  # fmt: skip


def stance(turn: int, says: str | None, of: str, held: str | None) -> dict[str, Any]:
    debater = f"debater/{(turn + 1) % 2}"
    return {"turn": turn, "debater": debater, "says": says, "of": of, "stance": held, "consensus": turn == 2}


def event(kind: str, data: Any) -> EventView:
    return EventView(kind=kind, path=kind, data=data)


@pytest.fixture
def debate(session: PlantedSession) -> Path:
    session.case("claim", gold=None, question="It opened in 1932.", labels=CLAIM_LABELS)
    session.event("claim", "evidence", "evidence", EVIDENCE)
    for turn, text in ((1, f"DENY. {EVIL}"), (2, "AGREE. So it is."), (3, "Perhaps.")):
        session.reply("claim", f"turn/{turn}", 9, role=f"debater/{(turn + 1) % 2}", text=text)
    session.event("claim", "stance", "turn/1/stance", stance(1, "DENY", "claim", "denies"))
    session.event("claim", "stance", "turn/2/stance", stance(2, "AGREE", "message", "denies"))
    session.event("claim", "stance", "turn/3/stance", stance(3, None, "message", None))
    session.event("claim", "ruling", "ruling", RULING)
    state = {"version": 0, "stage": "initial", "by": "user", "added": {"claim": "It opened in 1932.", "material": {}}}
    session.event("claim", "state", "state/0", state)
    flags = ("classifier-overruled",)
    session.verdict("claim", "supported", "max turns", rounds=3, confidence=0.69, payload=PAYLOAD, flags=flags)
    return session.plant(simulated=True)


@pytest.mark.parametrize("form", ["text", "md"])
def test_every_step_is_there_in_words(
    debate: Path, printed: Printed, outside_fences: Callable[[str], list[str]], form: str
) -> None:
    text = printed(show, debate, "claim", form=form, width=220)
    said = " ".join(text.replace("\\", "").split())
    for words in (
        "a.pdf, page 4, chunk 3",
        "E1 and E2 seem to contradict each other (number): [bold red]x",
        "debater/0 says DENY to the claim: denies the claim",
        "debater/1 says AGREE to the message before: denies the claim; both agree",
        "debater/0 says neither AGREE nor DENY to the message before: stance unknown",
        "missing: timeout: [bold red]x",
        "the classifier: hallucinated with probability 0.31; it was trained on this claim",
        "version 0 (initial), by user: claim, material",
    ):
        assert words in said
    assert not CONTROL.search(text)
    if form == "md":
        assert "| E3 | picture 1 | - | debater/0, debater/1 |" in text
        assert "| E2 | passage, chunk 3 | 0.71 | judges |" in text
        assert "| judges alone | hallucinated |" in text
        assert not [line for line in outside_fences(text) if line.startswith("# out") or "<script" in line]


def test_the_check_that_is_read_from_it(debate: Path) -> None:
    found = not_none(read_checked(debate))
    assert (found.label, found.source, found.p_hallucinated, found.exit_code) == ("supported", "classifier", 0.31, 0)
    assert [item.place for item in found.evidence] == ["a.pdf, page 4, chunk 3", "passage, chunk 3", "picture 1"]
    assert [message.says for message in found.messages] == ["DENY", "AGREE", None]
    assert found.messages[0].text == f"DENY. {EVIL}"
    assert [judge.missing for judge in found.judges] == ["", f"timeout: {EVIL}"]


def lines_of(shown: list[Block] | None) -> list[str]:
    return [line for block in shown or () if isinstance(block, Items) for line in block.items]


def test_what_a_model_made_of_the_evidence_is_shown_with_what_was_not_used() -> None:
    made = {"statements": [{"text": "It is of 1932.", "facts": [["E1", "In 1932"]]}], "unfounded": 2}
    shown = known_event(event("evidence", EVIDENCE | {"synthesis": made}))
    assert {"E1 summarised: It is of 1932.", "not in the cited item, and not used: 2"} <= set(lines_of(shown))
    lost = known_event(event("evidence", EVIDENCE | {"synthesis": {"missing": "refused: no"}}))
    assert "the context agent is missing: refused: no" in lines_of(lost)


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("evidence", {"items": "E1"}),
        ("evidence", {"items": [TEXT | {"kind": "rumour"}]}),
        ("evidence", {"items": [TEXT | {"similarity": "near"}]}),
        ("evidence", {}),
        ("stance", {"side": "left"}),
        ("stance", stance(1, "MAYBE", "claim", None)),
        ("ruling", {"judges": [JUDGE | {"verdict": 2}], "verdict": 0}),
        ("ruling", {"score": 3}),
        ("state", {"version": "one"}),
        ("state", {"round": 1}),
    ],
)
def test_events_of_another_shape_are_shown_as_any_other(
    session: PlantedSession, printed: Printed, kind: str, data: dict[str, Any]
) -> None:
    assert known_event(event(kind, data)) is None
    session.case("claim")
    session.event("claim", kind, f"some/{kind}", data)
    session.verdict("claim")
    assert f"{kind}, some {kind}" in printed(show, session.plant(), "claim")


@pytest.mark.parametrize(
    ("changes", "source"),
    [
        ({}, "the classifier"),
        ({"classifier": None}, "the judges"),
        ({"classifier": None, "p_hallucinated": None}, "the judges"),
        ({"classifier": None, "verdict": None, "p_hallucinated": None}, "nobody"),
    ],
)
def test_where_the_label_is_from(changes: dict[str, Any], source: str) -> None:
    assert (check_pairs(PAYLOAD | changes) or [])[0] == ("label from", source)


SHAPES = {each.kind: each for each in (EvidenceGathered, StanceTaken, RulingGiven, StateAdvanced)}


def _picture(shade: int) -> bytes:
    drawn = io.BytesIO()
    Pillow.new("RGB", (8, 8), (shade, 0, 0)).save(drawn, "PNG")
    return drawn.getvalue()


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Of bundled claims, and of one with a passage, a document and pictures."""
    folder = tmp_path_factory.mktemp("runs")
    case = {
        "claim": "The bridge opened in 1932.",
        "label": True,
        "passage": "The bridge opened in 1932. It is made of steel.",
        "documents": ["The bridge opened in 1934."],
        "images": [_picture(1), _picture(2), _picture(1)],
    }
    found = []
    options: dict[str, Any] = {"engine": "inline", "protocol": "ceda", "limit": 8}
    runs: dict[str, dict[str, Any]] = {
        "bundled": {"task": "sample-claims"},
        "own": {"task": [case]},
        "context": {"task": [case], "set": {"context.by": "model"}},
    }
    for name, more in runs.items():
        assert moot.run(out=folder / name, **options, **more).failed == 0
        found += dataset.dataset(folder / name / "events").to_table().to_pylist()
    return [event for event in found if event["kind"] in SHAPES]


def test_every_event_fits_and_no_field_is_made_up(events: list[dict[str, Any]]) -> None:
    """A default would hide a field that the protocol does not give."""
    assert {event["kind"] for event in events} == SHAPES.keys()
    for event in events:
        read = SHAPES[event["kind"]].model_validate_json(event["data"])
        assert read.model_dump(exclude_unset=True) == read.model_dump(), event


def test_every_event_is_shown_in_words(events: list[dict[str, Any]]) -> None:
    for event in events:
        view = EventView(kind=event["kind"], path=event["path"], data=json.loads(event["data"]))
        assert known_event(view) is not None, event


def test_places_are_in_the_words_of_the_prompts(events: list[dict[str, Any]]) -> None:
    items = [item for event in events if event["kind"] == "evidence" for item in json.loads(event["data"])["items"]]
    assert {item["kind"] for item in items} == {"passage", "document", "picture"}
    for item in items:
        assert EvidenceItem.model_validate(item).place == Item(**item).source


def test_a_picture_that_nobody_could_describe_is_named() -> None:
    data = {"items": [{"id": "E1", "kind": "picture", "picture": 0, "text": "A plate."}], "missing_pictures": [1]}
    shown = not_none(known_event(EventView(kind="evidence", path="evidence", data=data)))
    assert isinstance(last := shown[-1], Items)
    assert last.items[-1] == "picture 2 could not be described"
