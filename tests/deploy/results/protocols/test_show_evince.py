"""A debate of distributions as a transcript: positions, changes of contentiousness, withheld arguments, outcome."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from planted_records import EVIL, PlantedSession, Printed

from moot.deploy.results.distributions import distribution_line, distribution_rows
from moot.deploy.results.protocols.evince import consensus_pairs
from moot.deploy.results.recorded_data import EventView
from moot.deploy.results.show import show
from moot.deploy.results.transcript import build_transcript
from moot.deploy.results.transcript_blocks import known_event

A, B = {"HCV": 0.4, "HBV": 0.35, "(other)": 0.25}, {"HBV": 0.6, EVIL: 0.4}
STATED = [{"label": "HBV", "probability": 0.6}, {"label": EVIL, "probability": 0.3}]
POINT = {"text": EVIL, "gamma": 0.8, "theta": 0.5, "s": 0.8, "contradicts_facts": True, "repeats": None, "deeper": None}
RIVAL = {**POINT, "text": "a rival", "s": 0.2, "contradicts_facts": False, "repeats": 0}
DEEPER = {**POINT, "deeper": {"reasons": [{**POINT, "text": "from below"}], "rivals": []}}
READ = {"missing": "", "calls": 2, "depth": 1, "reasons": [DEEPER], "rivals": [RIVAL]}


def test_who_opens_is_shown_first(session: PlantedSession) -> None:
    session.case("c1", labels=("HCV", "HBV"), gold="HCV")
    for turn in ("round/0/agent/0", "round/0/agent/1"):
        session.reply("c1", turn, 5, data=json.dumps({"distribution": [], "arguments": ["one"]}))
    session.event("c1", "round", "round/0", {"round": 0, "order": ["agent/1", "agent/0"]})
    session.verdict("c1", "HBV", "stalled")
    found = build_transcript(session.plant(), "c1").sections[0]
    assert [turn.path for turn in found.turns] == ["round/0/agent/1", "round/0/agent/0"]


@pytest.fixture
def debate(session: PlantedSession) -> Path:
    session.case("c1", labels=("HCV", "HBV", EVIL), gold="HCV")
    session.evince("c1", [(0.9, A, B), (0.7, B, A), (0.5, A, A)], words=[0.1, None, 0.4])
    swap = dict(next(e for _, _, e, _ in session.events if e.path == "round/1").data)
    swap |= {"swapped": True, "silent": ["agent/1"]}
    session.event("c1", "round", "round/1", swap)
    for turn, changes in (("round/0/agent/0", []), ("round/0/agent/1", _changes())):
        session.event("c1", "distribution", turn, {"given": [[EVIL, 0.4]], "cleaned": B, "changes": changes})
        session.reply("c1", turn, 5, data=json.dumps({"distribution": STATED, "arguments": ["one " * 20, EVIL]}))
    gate = {"on": True, "threshold": 0.5, "crit": 0.31, "passed": False, "why": "below the bar"}
    session.event("c1", "quality-gate", "round/0/agent/0", gate)
    unread = {"crit": None, "passed": True, "why": "no score", "opponents": ["agent/0"]}
    session.event("c1", "quality-gate", "round/0/agent/1", gate | unread)
    off = {"on": False, "threshold": None, "crit": 0.2, "passed": True, "why": "the gate is off"}
    session.event("c1", "quality-gate", "round/1/agent/0", off)
    session.event("c1", "crit", "crit/round/0/agent/0", _crit())
    session.reply("c1", "crit/round/0/agent/0/judge/0", 9, data=json.dumps({"reasons": [{"text": "t"}]}))
    dial = {"before": 0.9, "after": 0.7, "schedule": "adaptive", "why": "cooled: closer", "score": 0.4}
    session.event("c1", "contentiousness", "round/0", dial)
    stop = {"reason": "stalled", "round": 2, "max_rounds": 4, "moves": {"agent/0": 0.0}, "jsd": 0.2, "tau": 0.05}
    session.event("c1", "stop", "stop", stop)
    weights = {"agent/0": 0.6, "agent/1": 0.4}
    end = {"weights": weights, "weights_from": "crit", "distribution": B, "entropy": 0.67, "confidence": 0.6}
    session.event("c1", "consensus", "consensus", end)
    session.event("c1", "follow-ups", "follow-ups", {"questions": ["Travelled?"], "tests": [EVIL], "failed": 0})
    payload = {"distribution_from": "consensus", "crit_mean": 0.75, "arguments": {"agent/0": ["long"]}}
    payload |= {"mixture_entropy_first": 1.5, "mixture_entropy_last": 0.67}
    session.verdict("c1", "HBV", "stalled", rounds=2, confidence=0.6, distribution=B, payload=payload)
    return session.plant(simulated=True)


def _crit() -> dict[str, Any]:
    found = {"score": 0.75, "by_judge": {"judge/0": 0.75, "judge/1": None}, "missing": {"judge/1": "timeout: late"}}
    judges = {"judge/0": READ, "judge/1": {"missing": "timeout: late", "calls": 1, "depth": 0}}
    return found | {"weak": ["a weak one"], "contradicted": ["no fever"], "notes": ["budget-spent"], "judges": judges}


def _changes() -> list[dict[str, Any]]:
    return [
        {"what": "alias", "label": "Hep C", "to": "HCV"},
        {"what": "unknown", "label": EVIL, "to": "(other)"},
        {"what": "repeated", "label": "HBV", "value": 0.1},
        {"what": "negative", "label": "HAV", "value": -0.1},
        {"what": "not-a-number", "label": "HEV"},
        {"what": "renormalised", "value": 0.95},
        {"what": "percent", "value": 95.0},
        {"what": EVIL, "label": EVIL},
    ]


def test_text_says_it_all(debate: Path, printed: Printed) -> None:
    text = " ".join(printed(show, debate, "c1", width=220).split())
    for expected in (
        "distribution: HBV 0.6, [bold red]x[/]",
        "is not one of the labels: its mass went to (other)",
        "repaired: the probabilities summed to 95: read as percent",
        "WITHHELD from the others (below the bar: CRIT 3.1/10, bar 5.0/10)",
        "kappa 0.9 to 0.7 for the next round (schedule adaptive: cooled: closer)",
        "(other) 0.25 0.0",
        "agreeing words among agreeing and opposing ones: 0.4",
        "judge/0 > reason from below (contradicts the given facts) 0.8 0.5 0.8",
        "judge/0 rival a rival 0.8 0.5 repeated",
        "judge/1 is missing: timeout: late",
        "ended after round 2, stalled: the sides no longer move and do not agree",
        "tau: 0.05",
        "weights (by CRIT): agent/0 0.6, agent/1 0.4",
        "confidence 0.6, entropy 0.67 nat",
        "ask: Travelled?",
        "entropy of the mixture 1.5 nat at first, 0.67 nat at the end",
    ):
        assert expected in text, expected
    assert "arguments.agent/0" not in text, "what the turns say is not said again with the verdict"


def test_stages_come_in_the_order_of_the_debate(debate: Path) -> None:
    found = build_transcript(debate, "c1").sections
    assert [section.title for section in found] == [
        "Round 0", "Round 0: the judges on its arguments", "Round 1", "Round 2", "Why the debate stopped", "Consensus",
        "Follow-up questions",
    ]  # fmt: skip
    kinds = [event.kind for event in found[0].events]
    assert kinds == ["distribution", "quality-gate", "distribution", "quality-gate", "round", "contentiousness"]


def test_the_top_few_the_rest_and_the_other() -> None:
    many = {f"l{i:02}": 0.05 - i / 1000 for i in range(20)} | {"(other)": 0.0, "none": 0.0}
    rows = distribution_rows([many, {"l19": 1.0}], shown=3)
    assert [label for label, _ in rows] == ["l19", "l00", "l01", "(17 further labels)", "(other)"]
    assert rows[-1][1] == [0.0, 0.0]
    assert sum(values[0] or 0.0 for _, values in rows) == pytest.approx(sum(many.values()))
    assert [label for label, _ in distribution_rows([{"a": 0.5, "b": 0.3, "c": 0.2}], shown=2)] == ["a", "b", "c"]
    unknown = distribution_rows([{"a": None, "b": 0.3, "c": 0.2, "d": 0.1}], shown=1)
    assert unknown == [("a", [None]), ("(3 further labels)", [pytest.approx(0.6)])]
    assert distribution_line({}) == "-"


def test_events_of_other_protocols_are_not_taken_for_these() -> None:
    for kind, data in (
        ("round", {"round": 1, "d": 0.5, "answers": {"agent/0": "Yes"}}),
        ("round", {"round": 1, "distributions": {"agent/0": {"a": "high"}}}),
        ("stop", {"reason": "because", "round": 3}),
        ("consensus", {"answer": "Yes"}),
        ("crit", {"score": "good", "by_judge": {}}),
        ("contentiousness", {"level": 0.9}),
        ("mine", {}),
    ):
        assert known_event(EventView(kind=kind, path="round/1", data=data)) is None, (kind, data)
    assert consensus_pairs({"distribution_from": "votes", "crit_mean": 0.5}) is None
    assert consensus_pairs({"distribution_from": "consensus", "crit_mean": "high"}) is None
    assert consensus_pairs({"distribution_from": "consensus"}) == []
