"""A classifier trained on records made by hand: a planted signal is found, noise is not, and what cannot be is said."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from not_none import not_none
from planted_records import PlantedSession
from planted_rulings import FACTS, HASHED, Tells, add_claim, add_claims
from sklearn.metrics import brier_score_loss, f1_score

from moot.actors.classifiers.card import ClassifierCard, HeldOutMetrics, read_card
from moot.actors.record.referenced_files import CLASSIFIER_CARD
from moot.deploy.results.figures.claims import Claim, calibrations
from moot.deploy.studies.training.card import ALWAYS, JUDGES, MASKED, OWN, HeldOutCases
from moot.deploy.studies.training.examples import read_examples
from moot.deploy.studies.training.report import caveats
from moot.deploy.studies.training.train import train_classifier
from moot.protocols.case import Reference
from moot.protocols.claims import CLAIM_LABELS, HALLUCINATED, SUPPORTED
from moot.protocols.errors import ConfigError, RecordError

Claims = Callable[..., Path]


@pytest.fixture
def claims(session: PlantedSession) -> Claims:
    """Plants a run of claims; `change` adds to its session."""

    def make(
        n: int,
        tells: Tells = "argument",
        *,
        change: Callable[[PlantedSession], object] = lambda session: None,
        facts: dict[str, Any] | None = None,
        **options: Any,
    ) -> Path:
        made = add_claims(session.new(), n, tells, **options)
        change(made)
        return made.plant(**{**FACTS, **(facts or {})})

    return make


def figures(card: ClassifierCard, name: str) -> HeldOutMetrics:
    (found,) = [each for each in card.held_out if each.name == name]
    return found


def test_a_signal_in_the_argument_is_found_with_and_without_verdict_words(claims: Claims, tmp_path: Path) -> None:
    card = train_classifier(claims(100), tmp_path / "clf")
    for name in (OWN, MASKED):
        found = figures(card, name)
        assert (found.auroc.value or 0.0) > 0.97
        assert (found.accuracy.value or 0.0) > (figures(card, JUDGES).accuracy.value or 1.0)
        assert (found.ece or 1.0) < (found.ece_null_high or 0.0)
    assert read_card(tmp_path / "clf") == card
    assert caveats(card) == []


def test_a_signal_in_verdict_words_disappears_without_them(claims: Claims, tmp_path: Path) -> None:
    card = train_classifier(claims(100, "verdict"), tmp_path / "clf")
    assert (figures(card, OWN).auroc.value or 0.0) > 0.97
    masked = figures(card, MASKED).auroc
    assert (masked.low or 1.0) < 0.5 < (masked.high or 0.0)
    assert any("the same without verdict words" in remark and "n = 100" in remark for remark in caveats(card))


def test_nothing_is_found_where_there_is_nothing(claims: Claims, tmp_path: Path) -> None:
    cards = [train_classifier(claims(40, "nothing", seed=seed), tmp_path / f"clf-{seed}") for seed in range(5)]
    aurocs = [figures(card, OWN).auroc for card in cards]
    assert sum((each.low or 1.0) < 0.5 < (each.high or 0.0) for each in aurocs) >= 4  # of 95 % intervals
    assert np.mean([each.value for each in aurocs if each.value is not None]) == pytest.approx(0.5, abs=0.12)
    told = [any("not shown to distinguish hallucinated" in remark for remark in caveats(card)) for card in cards]
    assert told == [(each.low or 0.0) <= 0.5 for each in aurocs]


def test_the_baselines_are_plain_counts(claims: Claims, tmp_path: Path) -> None:
    run = claims(40, change=lambda s: add_claim(s, "tie", "both passages speak for themselves", HALLUCINATED, None))
    card = train_classifier(run, tmp_path / "clf")
    rows = read_examples([run]).rows
    truth = [row.hallucinated for row in rows]
    judged, always = figures(card, JUDGES), figures(card, ALWAYS)
    assert judged.n == 41
    assert judged.accuracy.value == pytest.approx(np.mean([r.judged_hallucinated == r.hallucinated for r in rows]))
    decided = [bool(row.judged_hallucinated) for row in rows]
    assert judged.f1_hallucinated.value == pytest.approx(f1_score(truth, decided))  # a tie is no false alarm here
    assert judged.brier is None
    assert always.f1_hallucinated.value == 0.0
    assert always.f1_supported.value == pytest.approx(f1_score([not t for t in truth], [True] * len(truth)))
    assert always.auroc.value == 0.5


def test_cases_of_a_group_are_one_for_the_folds_and_the_same_content_is_one_case(
    claims: Claims, tmp_path: Path
) -> None:
    paired = claims(40, group_of=lambda number: f"question {number // 2}")
    assert train_classifier(paired, tmp_path / "paired").training.groups == 20
    first, second = claims(30), claims(30, "nothing")  # the same claims, other summaries
    made = train_classifier([first, second], tmp_path / "twice").training
    assert (made.n, made.cases, made.groups) == (60, 30, 30)


def test_claims_and_sources_are_joined_across_runs_in_whatever_order(session: PlantedSession) -> None:
    """One run knows no groups, another has the first one's claim on a page, in another spelling, with others."""
    add_claim(session, "a", "the first summary", HALLUCINATED, 0, question="It is FALSE, is n't it ?")
    add_claim(session, "b", "the second summary", SUPPORTED, 1, question="Alone.")
    other = session.new()
    page = {"reference": Reference(group="The Page")}
    add_claim(other, "a", "the third summary", HALLUCINATED, 0, question="It is false, isn't it?", passage="P.", **page)
    add_claim(other, "c", "the fourth summary", SUPPORTED, 1, question="Another one.", **page)
    third = session.new()
    add_claim(third, "d", "the fifth one", SUPPORTED, 1, question="A third.", reference=Reference(group="the page "))
    runs = [each.plant(**FACTS) for each in (session, other, third)]
    found = [read_examples(order) for order in permutations(runs)]
    groups = {row.text: row.group for row in found[0].rows}
    joined = {groups[f"the {which} summary"] for which in ("first", "third", "fourth")} | {groups["the fifth one"]}
    assert len(joined) == 1
    assert groups["the second summary"] not in joined
    assert len({each.digest({}) for each in found}) == 1
    assert all(each.rows == found[0].rows for each in found)


def test_what_cannot_be_used_is_counted(claims: Claims, tmp_path: Path) -> None:
    def change(session: PlantedSession) -> None:
        add_claim(session, "open", "the passages are silent", None, 1)
        add_claim(session, "silent", "  ", SUPPORTED, None)
        session.case("failed", gold=SUPPORTED, labels=(SUPPORTED, HALLUCINATED))
        session.verdict("failed", None, failure="server", error="it broke")
        session.case("boolean", gold="Yes")
        session.event("boolean", "ruling", "ruling", {"summary": "it is so", "verdict": 1})
        session.verdict("boolean", "Yes")

    made = train_classifier(claims(20, change=change), tmp_path / "clf").training
    assert made.n == 20
    assert made.left_out == {
        "no gold label": 1,
        "no summary": 1,
        "failed": 1,
        "a gold label other than supported and hallucinated": 1,
    }


def test_it_learns_from_what_it_will_read_and_of_older_records_from_the_summary(claims: Claims) -> None:
    def change(session: PlantedSession) -> None:
        add_claim(session, "points", "it is so", SUPPORTED, 1)
        session.case("newer", gold=SUPPORTED, labels=(SUPPORTED, HALLUCINATED), question="Another claim.")
        told = {"summary": "it is so", "classifier_text": "it is so\nAgreed: the year", "verdict": 1}
        session.event("newer", "ruling", "ruling", told)
        session.verdict("newer", SUPPORTED)

    texts = [row.text for row in read_examples([claims(20, change=change)]).rows]
    assert "it is so" in texts
    assert "it is so\nAgreed: the year" in texts


def test_the_same_training_gives_the_same_card_in_whatever_order_and_is_not_repeated(
    claims: Claims, tmp_path: Path
) -> None:
    one, other = claims(30), claims(30, seed=1)
    card = train_classifier([one, other], tmp_path / "clf")
    before = (tmp_path / "clf" / CLASSIFIER_CARD).stat().st_mtime_ns
    assert train_classifier([other, one], tmp_path / "clf") == card
    assert (tmp_path / "clf" / CLASSIFIER_CARD).stat().st_mtime_ns == before
    again = train_classifier([other, one], tmp_path / "again")
    assert again.head == card.head
    assert again.held_out == card.held_out
    assert again.training.digest == card.training.digest
    for options in ({"seed": 1}, {"folds": 4}):
        with pytest.raises(ConfigError, match="trained on other"):
            train_classifier([one, other], tmp_path / "clf", **options)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="trained on other"):
        train_classifier(one, tmp_path / "clf")


def test_nothing_else_is_written_over_and_nothing_is_left_behind(claims: Claims, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("keep me")
    run = claims(40)
    with pytest.raises(ConfigError, match="has other content"):
        train_classifier(run, tmp_path / "mine")
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="--out"):
        train_classifier(run, tmp_path / "file")
    (tmp_path / "empty").mkdir()
    train_classifier(run, tmp_path / "empty")
    assert [path.name for path in (tmp_path / "empty").iterdir()] == [CLASSIFIER_CARD]
    assert not list(tmp_path.glob(".*.tmp"))


def refused(why: str, *args: Any, **options: Any) -> None:
    with pytest.raises(ConfigError, match=why) as caught:
        train_classifier(*args, **options)
    assert "\n" not in str(caught.value)


def test_what_cannot_be_learnt_from_is_refused_in_one_line(
    claims: Claims, session: PlantedSession, tmp_path: Path
) -> None:
    out = tmp_path / "clf"
    refused("at least 20", claims(10), out)
    one_label = session.new()
    for number in range(30):
        add_claim(one_label, f"c{number}", f"summary {number}", SUPPORTED, 1)
    refused("0 hallucinated cases", one_label.plant(**FACTS), out)
    session.case("c")
    session.verdict("c")
    refused("no judge's summary", session.plant(**FACTS), out)
    run = claims(40)
    refused("twice", [run, run], out)
    refused("--encoder", [run, claims(40, facts={"encoder": "openai/x"})], out)
    refused("`folds`", run, out, folds=1)
    refused("--epochs", run, out, epochs=2)
    refused("leave it out", run, out, setfit="sentence-transformers/x", encoder=HASHED)
    refused("sentence-transformers/NAME", run, out, setfit="hashed-ngrams")
    assert not out.exists()
    with pytest.raises(RecordError, match="no run there"):
        train_classifier(tmp_path / "nowhere", out)


def held_out(outcome: list[float]) -> HeldOutCases:
    """Cases that stand alone, in two folds."""
    n = len(outcome)
    return HeldOutCases(np.array(outcome), np.array([f"g{i:03d}" for i in range(n)]), np.arange(n) // 2 % 2)


def test_the_calibration_error_is_that_of_a_runs_figures() -> None:
    random = np.random.default_rng(2)
    p = random.random(120)
    outcome = (random.random(120) < p**2).astype(float)
    claims = [
        Claim(case_id=str(i), gold=CLAIM_LABELS[int(true)], group=str(i), p_classifier=float(stated))
        for i, (true, stated) in enumerate(zip(outcome, p, strict=True))
    ]
    (run,) = calibrations(claims)
    card = held_out(outcome.tolist()).of_probabilities("x", p)
    assert card.ece == run.calibration_error
    assert card.ece_null_high == not_none(run.calibration_null)[1]
    assert (card.brier and card.brier.value) == run.brier.value
    assert run.brier.value == pytest.approx(brier_score_loss(outcome, p))
