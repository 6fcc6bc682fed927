"""A debate on a subject as a document: complete, in order, and with nothing taken for a command or for markup."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt
from planted_records import PlantedSession, Printed

from moot.deploy.results.protocols.socrasynth_document import (
    build_document,
    document_blocks,
    stop_reason_words,
    too_close,
)
from moot.deploy.results.report.render import report_markdown
from moot.deploy.results.show import show
from moot.deploy.results.transcript import build_transcript
from moot.deploy.runs.run import run
from moot.protocols.socrasynth.events import PanelJudged, SocraSynthStopped

EVIL = "[bold red]x[/] \x1b[2J\x1b]0;t\x07 \u202egnp.exe\u202c\n```\n# out | <script> **b**"
PARTS = ["Topics", "Joint proposal", "The panel", "Arguments", "Rounds", "Round by round", "Cost"]


@pytest.fixture(scope="module")
def finished_record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three subjects, debated and compared with a single answer."""
    folder = tmp_path_factory.mktemp("subjects") / "run"
    settings = {"versus_qa": True, "crit_topics": True, "topics.count": 3}
    judges: dict[str, Any] = {"judge": ["simulated"] * 2}
    run(protocol="socrasynth", engine="inline", limit=3, out=str(folder), set=settings, roles=judges)
    return folder


def sheet(order: int, scores: list[Any], **more: Any) -> dict[str, Any]:
    known = [pair for pair in scores if pair]
    totals = {"A": sum(a for a, _ in known), "B": sum(b for _, b in known)} if known else {"A": None, "B": None}
    found = {"order": order, "judge": "judge/0", "scores": scores, "totals": totals, "winner": "A"}
    return {**found, "rationales": ["" for _ in scores], "missing": [], **more}


TOPICS = {
    "proposed": {"agent/0": [{"title": EVIL, "description": EVIL}]},
    "refined": {f"agent/{i}": [{"title": title, "description": ""}] for i, title in enumerate(("First", "Second"))},
    "topics": [{"title": EVIL, "description": EVIL}, {"title": "Air", "description": ""}],
    "wanted": 3, "merged": [{"into": "Air", "from": ["A1", "B1", "air"]}], "dropped": ["Noise"], "by": "moderator",
}  # fmt: skip


def opening_round(*topics: str, **more: Any) -> dict[str, Any]:
    """The data of the event of an opening in which nothing was out of the ordinary."""
    found: dict[str, Any] = {"round": 0, "kappa": 0.9, "topics": list(topics), "crit": {}, "gamma": None}
    return {**found, "finished": [], "conceded": [], "asked": [], "left_out": {}, "failed": {}, **more}


def closing(*topics: str, **more: Any) -> dict[str, Any]:
    """The same of what the sides closed with."""
    found = {"kappa": 0.3, "topics": list(topics), "crit": {}, "crit_by_topic": {}, "gamma": None, "failed": {}}
    return {**found, **more}


@pytest.fixture
def planted_debate(planted: Callable[..., Path], session: PlantedSession) -> Path:
    """A debate in which much went wrong, and in which models and a person wrote what they should not."""
    session.case("c1", question=EVIL, passage=EVIL, gold=None)
    session.event("c1", "topics", "topics", TOPICS)
    told = {"arguments": [{"topic": 1, "argument": EVIL}, {"topic": 9, "argument": "nowhere"}]}
    session.reply("c1", "round/0/agent/0", 10, data=json.dumps(told), outcome="repaired")
    session.reply("c1", "round/0/agent/1", None, outcome="failed", failure="timeout", error=EVIL)
    session.event("c1", "round", "round/0", opening_round(
        EVIL, "Air", temperature=0.45, crit={"agent/0": 0.52, "agent/1": None}, finished=["agent/0"],
        conceded=["agent/1"], asked=[EVIL], left_out={"agent/0": ["Air"]}, failed={"agent/1": "timeout"},
    ))  # fmt: skip
    for at, action, text, outcome in (
        ("", "set kappa", "a typo", "Not used: a number."),
        ("/1", "ask", EVIL, "Done: ask."),
    ):
        moderated = {"action": action, "text": text, "by": "person", "outcome": outcome}
        session.event("c1", "moderation", f"moderation/round/0{at}", moderated)
    added = {"presented_all": False, "additions": [{"topic": 2, "addition": EVIL}]}
    session.reply("c1", "confirm/agent/0", 10, data=json.dumps(added))
    session.event("c1", "confirm", "confirm", {
        "round": 0, "topics": [EVIL, "Air"], "presented_all": {"agent/0": False, "agent/1": None},
        "added": {"agent/0": ["Air"]}, "conceded": ["agent/0"], "failed": {"agent/1": "refused"},
    })  # fmt: skip
    session.event("c1", "closing", "closing", closing(
        EVIL, "Air", crit={"agent/0": 0.4, "agent/1": 0.2}, gamma=0.3, failed={"agent/1": "declined"}
    ))  # fmt: skip
    session.event("c1", "joint", "joint", {
        "kappa": 0.3, "proposal": [EVIL], "questions": [EVIL], "drafted_by": "agent/0", "amended_by": None,
        "consents": {"agent/0": True, "agent/1": None}, "reservations": {"agent/0": [EVIL]},
        "failed": {"agent/1": "refused"},
    })  # fmt: skip
    missing, repairs = [{"topic": 2, "why": EVIL}], [{"topic": 1, "marks": ["first: 8/10"]}]
    session.event("c1", "panel", "panel", {
        "topics": [EVIL, "Air"], "winner": "A", "missing": 1,
        "orders": [sheet(1, [[8, 6], [7, 7]], repairs=repairs), sheet(2, [[5, 6], None], missing=missing)],
        "totals": {"A": 6.5, "B": 6}, "position_bias": {"judge/0": 1.5},
        "models": {"judge/0": EVIL}, "not_independent": [],
    })  # fmt: skip
    session.verdict(
        "c1", "For", "turn-failed", rounds=0, flags=("judges-missing",), confidence=None, payload={"k": EVIL}
    )
    return planted(session, simulated=True)


def test_a_real_debate_has_every_part_in_order(finished_record: Path, printed: Printed) -> None:
    shown = printed(show, finished_record, "sample-001", width=200)
    places = [re.search(rf"^{part} ─", shown, re.MULTILINE) for part in PARTS]
    assert all(places), PARTS
    starts = [place.start() for place in places if place]
    assert starts == sorted(starts)
    assert shown.startswith("simulated models\n")
    assert "marks on average (3 topics, 2 judges, both orders)" in " ".join(shown.split())
    assert "Debate against a single answer" in shown
    assert re.search(r"^contentiousness kappa \(0 to 1\)", shown, re.MULTILINE)
    assert "## Round by round" in printed(show, finished_record, "sample-001", form="md")


def test_it_says_what_the_record_says(finished_record: Path) -> None:
    document = build_document(build_transcript(finished_record, "sample-001"))
    assert document is not None
    assert document.panel is not None
    assert document.verdict is not None
    assert len(document.panel.orders) == 4
    assert [held.round for held in document.rounds] == list(range(document.verdict.rounds + 1))
    first = [one for one in document.arguments if one.topic == document.topics[0].title]
    said = [(one.round, one.side) for one in first if not one.last_word]
    rounds = [*range(document.verdict.rounds + 1), None]
    assert said == [(number, side) for number in rounds for side in ("A", "B")]
    assert document.trace is not None
    assert document.trace.rounds == list(range(document.verdict.rounds + 1))
    assert {"kappa", "gamma"} <= {series.key for series in document.trace.series}
    assert document.verdict.payload["topics"] == [topic.title for topic in document.topics]


def test_failures_are_reported(planted_debate: Path, printed: Printed) -> None:
    shown = " ".join(printed(show, planted_debate, "c1", width=400).split())
    for expected in (
        "For: A closed better, 6.5 to 6 marks on average (2 topics, 1 judge; both orders known for 1 of 2 pairs "
        "of judge and topic); too close to call: position bias (1.5) is more than the margin (0.5)",
        "ended after the opening: turn-failed",
        "judgments are missing",
        "A1 (First), B1 (Second), air: merged into Air",
        "Noise: dropped, beyond 3 topics",
        "only 2 of 3 topics were found",
        "Drafted by A, not amended; A consents, B did not say whether it consents",
        "8-6",
        "judge/0, order 2, topic 2: missing",
        "Position bias, in marks: judge/0 +1.5",
        "0.9 (temperature 0.45)",
        "B failed: timeout; B concedes; A finished",
        "A left out Air",
        "Asked whether that was all, A conceded and added a last argument on Air; B did not say (refused).",
        "A (for), opening, repaired JSON",
        "A (for), last word",
        "judge/0, order 1, topic 1: not written as numbers: first: 8/10",
        "B: declined, judged by its last arguments",
        "after the opening: ask (",
        "agent/1, round 0: timeout",
    ):
        assert expected in shown, expected
    assert shown.count("repaired JSON") == 1
    assert "a typo" not in shown
    assert "a typo" in printed(show, planted_debate, "c1", form="json")


def test_skipped_turns_are_counted_and_are_no_arguments(
    planted: Callable[..., Path], session: PlantedSession, printed: Printed
) -> None:
    session.case("c1", question="Should we?", gold=None)
    session.event("c1", "topics", "topics", TOPICS)
    session.event("c1", "round", "round/0", opening_round("Costs", "Air"))
    added = {"presented_all": True, "additions": [{"topic": 2, "addition": "Trees."}]}
    session.reply("c1", "confirm/agent/0", 10, data=json.dumps(added))
    session.event("c1", "confirm", "confirm", {
        "round": 0, "topics": ["Costs", "Air"], "presented_all": {"agent/0": True, "agent/1": None}, "added": {},
        "passed_over": {"agent/0": 1}, "conceded": [], "failed": {"agent/1": "refused"},
    })  # fmt: skip
    shown = " ".join(printed(show, planted(session), "c1", width=400).split())
    assert "A confirmed that it had presented all (left out: 1 more argument in the same reply); B did not" in shown
    assert "Trees." not in shown


def test_markdown_cannot_be_broken_out_of(planted_debate: Path) -> None:
    document = build_document(build_transcript(planted_debate, "c1"))
    assert document is not None
    shown = report_markdown(document_blocks(document))
    html = MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(shown)
    assert "<script" not in html
    assert "<code" not in html
    assert html.count("<h1>") == 1
    # What is strong is the verdict, the facts, who speaks, and that the models are simulated: none of it said by them.
    assert html.count("<strong>") == 3 + len(document.arguments)
    quotes = re.findall(r"<blockquote>(.*?)</blockquote>", html, re.DOTALL)
    assert len(quotes) == 1 + len(document.arguments)
    assert all(quote.count("# out | &lt;script&gt; **b**") == 1 for quote in quotes)


@pytest.mark.parametrize(
    "changed", [{"topics": "none"}, {"merged": [{"into": "x"}]}, {"proposed": None}, {"wanted": "many"}]
)
def test_other_protocols_keep_their_transcript(
    planted: Callable[..., Path], session: PlantedSession, printed: Printed, changed: dict[str, Any]
) -> None:
    session.case("c1")
    session.event("c1", "topics", "topics", TOPICS | changed)
    folder = planted(session)
    assert build_document(build_transcript(folder, "c1")) is None
    assert "topics" in [line.strip() for line in printed(show, folder, "c1").splitlines()]


def test_a_debate_without_a_verdict_or_that_failed_says_so(
    planted: Callable[..., Path], session: PlantedSession, printed: Printed
) -> None:
    for case_id in ("open", "waits", "failed"):
        session.case(case_id, question="Should we?")
        session.event(case_id, "topics", "topics", TOPICS)
    session.event("waits", "parked", "moderation/round/0", {"title": "Opening"})
    session.verdict("failed", None, "failed", failure="quorum", error="no opening of agent/1")
    folder = planted(session)
    for case_id, said in (
        ("open", "No verdict yet: the debate is not over"),
        ("waits", "No verdict yet: the debate waits for a person"),
        ("failed", "The debate failed (quorum): no opening of agent/1"),
    ):
        assert said in " ".join(printed(show, folder, case_id).split())


@pytest.mark.parametrize(
    ("totals", "bias", "winners", "said"),
    [
        ((29, 29.5), {"judge/0": 2.5}, "AB", "position bias (2.5) is more than the margin (0.5)"),
        ((31, 29), {"judge/0": 0, "judge/1": -2}, "AA", "position bias (2) is as much as the margin (2)"),
        ((31, 29), {"judge/0": None, "judge/1": 1.5}, "AA", ""),
        ((31, 29), {"judge/0": 1}, "AB", "every judge's winner changes with the order"),
        ((30, 30), {"judge/0": 3}, "AB", ""),
        ((None, None), {"judge/0": None}, (None, None), ""),
    ],
)
def test_a_verdict_is_too_close_to_call_where_the_order_weighs_as_much(
    totals: tuple[float | None, float | None], bias: dict[str, float | None], winners: Any, said: str
) -> None:
    a, b = totals
    winner = None if a is None or b is None else "tie" if a == b else "A" if a > b else "B"
    panel = PanelJudged.model_validate({
        "topics": ["Air"], "winner": winner, "totals": {"A": a, "B": b}, "position_bias": bias, "missing": 0,
        "orders": [sheet(order, [[7, 7]], winner=each) for order, each in enumerate(winners, start=1)],
        "models": {}, "not_independent": [],
    })  # fmt: skip
    assert too_close(panel) == said


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"labels": None}, "A argues for (says yes to) and B against: Should we?"),
        ({"labels": ("Ja", "Nein"), "aliases": (("yes",), ("no",))}, "A argues for (says yes to) and B against:"),
        ({"labels": ("Yes", "No", "Maybe")}, "A argues for the answer that it finds most probable, B for its"),
        ({"labels": ("A", "B"), "choices": ("flu", "cold")}, "Possible answers: A) flu, B) cold."),
    ],
)
def test_each_sides_position_is_stated(
    asked: dict[str, Any], said: str, planted: Callable[..., Path], session: PlantedSession, printed: Printed
) -> None:
    session.case("c1", gold=None, question="Should we?", **asked)
    session.event("c1", "topics", "topics", TOPICS)
    folder = planted(session)
    assert said in " ".join(printed(show, folder, "c1", width=200).split())
    found = build_document(build_transcript(folder, "c1"))
    assert found is not None
    assert bool(found.open_answers) == (len(asked["labels"] or ()) == 3 or "choices" in asked)


@pytest.fixture
def edited_debate(planted: Callable[..., Path], session: PlantedSession) -> Callable[..., Path]:
    """A debate whose topics a person has edited twice; the sides have closed on them, or have not yet."""
    session.case("c1", gold=None, question="Should we?")
    listed = [{"title": title, "description": f"on {title}"} for title in ("Air", "Noise", "Cost")]
    session.reply("c1", "topics/moderator", 10, data=json.dumps({"topics": [*listed, {"title": "Trams"}]}))
    topics = {"topics": [*listed[:2], {"title": "Jobs", "description": "of drivers"}], "by": "person", "wanted": 4}
    session.event("c1", "topics", "topics", {**TOPICS, **topics, "merged": [], "dropped": []})
    told = [{"topic": place, "argument": f"argued {title}"} for place, title in enumerate(("Air", "Noise", "Jobs"), 1)]
    session.reply("c1", "round/0/agent/0", 10, data=json.dumps({"arguments": told}))
    session.event("c1", "round", "round/0", opening_round("Air", "Noise", "Jobs"))
    for place, (text, outcome) in enumerate([
        ("Trees: how many\nJobs: of drivers", "Done: edit topics."),
        ("", "Not used: editing needs the whole list as its text."),
        ("Noise\nTrees: how many", "Done: edit topics."),
    ]):  # fmt: skip
        at = f"moderation/round/0/{place}" if place else "moderation/round/0"
        session.event(
            "c1", "moderation", at, {"action": "edit topics", "text": text, "by": "person", "outcome": outcome}
        )

    def make(*, closed: bool) -> Path:
        if closed:
            session.event("c1", "closing", "closing", closing("Noise", "Trees"))
        return planted(session)

    return make


@pytest.mark.parametrize("closed", [True, False])
def test_the_topics_are_those_of_the_end_whatever_a_person_edited(
    closed: bool, edited_debate: Callable[..., Path], printed: Printed
) -> None:
    folder = edited_debate(closed=closed)
    document = build_document(build_transcript(folder, "c1"))
    assert document is not None
    described = [(topic.title, topic.description) for topic in document.topics]
    # A title alone takes the topic's description away, as the protocol reads it.
    assert described == [("Noise", ""), ("Trees", "how many")]
    assert [topic.title for topic in document.dropped_topics] == ["Air", "Cost", "Trams", "Jobs"]
    shown = " ".join(printed(show, folder, "c1").split())
    assert "the last word was a person's" in shown
    for title in ("Air", "Cost", "Trams", "Jobs"):
        assert f"{title}: removed by a person" in shown
    assert re.search(r" 1\. Noise .*argued Noise.* 2\. Trees .*Removed: Air .*argued Air", shown)
    assert "Removed: Cost" not in shown, "nothing was argued on it"
    assert shown.count("after the opening: edit topics") == 2


def test_the_rise_that_ended_the_rounds_is_on_the_scale_of_their_table() -> None:
    stop = SocraSynthStopped(
        reason="plateau", round=2, gammas=[0.5, 0.5, 0.5], patience=2, min_delta=0.01, max_rounds=5
    )
    expected = "the quality of the arguments rose by less than 0.1 in 2 rounds, on the scale from 0 to 10"
    assert stop_reason_words(stop, "plateau") == expected
