"""Gamma: its formula, what never raises it, and when two reasons are one."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.protocols.crit.appraisal import CritDocument, appraise
from moot.protocols.crit.repeats import first_alike
from moot.protocols.crit.replies import Argument, Reading
from moot.protocols.crit.scoring import EQUAL_WEIGHTS, NO_REASONS, Gamma, Rivals, WeightedReason, gamma_of

shares = st.floats(0.0, 1.0)
reasons = st.builds(WeightedReason, shares, shares)
rivals = st.builds(WeightedReason, shares, shares, st.just(True))
mixtures = st.tuples(st.lists(reasons, min_size=1, max_size=6), st.lists(rivals, max_size=6)).map(
    lambda pair: [*pair[0], *pair[1]]
)
marks = st.floats(0.0, 10.0)
readings = st.lists(st.tuples(marks, marks), min_size=1, max_size=5)


def score(weighed: list[WeightedReason], rivals: Rivals = "printed") -> float:
    found = gamma_of(weighed, rivals).score
    assert found is not None
    return found


def read(reasons: list[tuple[str, float, float]], rivals: list[tuple[str, float, float]] | None = None) -> Reading:
    return Reading(
        claim="It works.",
        reasons=[Argument(text=text, validity=v, credibility=c) for text, v, c in reasons],
        rivals=[Argument(text=text, validity=v, credibility=c) for text, v, c in rivals or []],
        justification="So.",
        reflection="",
    )


DOCUMENT = CritDocument("It works.", "It works, because it does.")


class TestFormula:
    def test_worked_by_hand(self) -> None:
        weighed = [WeightedReason(0.8, 0.9), WeightedReason(0.4, 0.3, rival=True), WeightedReason(0.5, 0.6)]
        # (0.9 x 0.8 + 0.3 x (1 - 0.4) + 0.6 x 0.5) / (0.9 + 0.3 + 0.6) = 1.2 / 1.8
        assert score(weighed) == pytest.approx(2 / 3)

    def test_no_credible_source_at_all_gives_equal_weights_and_says_so(self) -> None:
        found = gamma_of([WeightedReason(0.8, 0.0), WeightedReason(0.6, 0.0, rival=True)])
        assert found.score == pytest.approx((0.8 + 0.4) / 2)
        assert found.note == EQUAL_WEIGHTS

    def test_one_side_without_credibility_keeps_the_weights(self) -> None:
        assert gamma_of([WeightedReason(0.8, 0.5), WeightedReason(1.0, 0.0, rival=True)]) == Gamma(0.8)

    @pytest.mark.parametrize("rivals", [[], [WeightedReason(0.1, 0.9, rival=True)]])
    def test_without_a_reason_there_is_no_score(self, rivals: list[WeightedReason]) -> None:
        assert gamma_of(rivals) == Gamma(None, NO_REASONS)

    @given(mixtures)
    def test_lies_between_the_least_and_the_greatest_s(self, weighed: list[WeightedReason]) -> None:
        said = [one.s for one in weighed]
        assert min(said) <= score(weighed) <= max(said)

    @given(mixtures, st.randoms(use_true_random=False))
    def test_order_does_not_matter(self, weighed: list[WeightedReason], random: object) -> None:
        shuffled = list(weighed)
        random.shuffle(shuffled)  # type: ignore[attr-defined]
        assert score(shuffled) == score(weighed)

    @given(mixtures, st.floats(0.01, 1.0))
    def test_the_scale_of_the_weights_does_not_matter(self, weighed: list[WeightedReason], factor: float) -> None:
        scaled = [replace(one, theta=one.theta * factor) for one in weighed]
        if any(0.0 < one.theta < 1e-300 for one in weighed):
            return  # scaling makes these 0
        assert math.isclose(score(scaled), score(weighed), rel_tol=1e-9, abs_tol=1e-12)

    @given(mixtures, rivals, shares)
    def test_a_stronger_rival_never_raises_it(
        self, weighed: list[WeightedReason], rival: WeightedReason, stronger: float
    ) -> None:
        stronger = max(stronger, rival.gamma)
        assert score([*weighed, replace(rival, gamma=stronger)]) <= score([*weighed, rival])


@pytest.mark.parametrize("counted", ["printed", "capped"])
@given(weighed=mixtures, reason=reasons, stronger=shares)
def test_a_stronger_reason_never_lowers_the_score(
    counted: Rivals, weighed: list[WeightedReason], reason: WeightedReason, stronger: float
) -> None:
    better = replace(reason, gamma=max(stronger, reason.gamma))
    assert score([*weighed, better], counted) >= score([*weighed, reason], counted) - 1e-12


class TestCapped:
    """`crit.rivals=capped`: no rival raises the score, by what it says or by its credibility."""

    def test_worked_by_hand(self) -> None:
        weighed = [WeightedReason(0.6, 1.0), WeightedReason(0.7, 0.5, rival=True), WeightedReason(0.1, 1.0, rival=True)]
        # (1.0 x 0.6 + 0.5 x 0.3) / 1.5 = 0.5; with the feeble rival's 0.9 it would be 0.66
        assert score(weighed, "capped") == pytest.approx(0.5)
        assert gamma_of(weighed, "capped").capped
        assert gamma_of(weighed[:2], "capped") == gamma_of(weighed[:2])

    @given(mixtures)
    def test_the_score_is_the_fixed_point_of_its_formula(self, weighed: list[WeightedReason]) -> None:
        found = score(weighed, "capped")
        if any(0.0 < one.theta < 1e-9 for one in weighed) or not any(one.theta for one in weighed if not one.rival):
            return
        said = [(one.theta, min(one.s, found) if one.rival else one.s) for one in weighed]
        assert sum(w * s for w, s in said) / sum(w for w, _ in said) == pytest.approx(found, abs=1e-9)

    @given(mixtures, rivals)
    def test_a_further_rival_never_raises_it(self, weighed: list[WeightedReason], rival: WeightedReason) -> None:
        assert score([*weighed, rival], "capped") <= score(weighed, "capped") + 1e-12

    @given(mixtures, rivals, shares, shares)
    def test_a_stronger_rival_never_raises_it(
        self, weighed: list[WeightedReason], rival: WeightedReason, gamma: float, theta: float
    ) -> None:
        stronger = WeightedReason(max(gamma, rival.gamma), max(theta, rival.theta), rival=True)
        assert score([*weighed, stronger], "capped") <= score([*weighed, rival], "capped") + 1e-12

    @given(mixtures)
    def test_is_never_above_the_printed_one_nor_above_the_best_reason(self, weighed: list[WeightedReason]) -> None:
        best = max(one.gamma for one in weighed if not one.rival)
        assert score(weighed, "capped") <= min(score(weighed), best) + 1e-12


class TestRepeats:
    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ("It is cheap.", "it is   CHEAP"),
            ("The clinic tests show raised bilirubin.", "Clinic tests show the raised bilirubin"),
            (
                "The trial found fewer deaths among treated patients.",
                "Trial found fewer deaths among the patients treated.",
            ),
        ],
    )
    def test_are_found(self, one: str, other: str) -> None:
        assert first_alike([one, other]) == [None, 0]
        assert first_alike([other, one]) == [None, 0]

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ("The patient in the second ward has a fever today.", "The patient in the second ward has no fever today."),
            ("It doesn't spread through water in the city.", "It spreads through water in the city."),
            ("The trial had 40 patients from the same clinic.", "The trial had 400 patients from the same clinic."),
            ("It is cheap.", "It is quick."),
            ("", "It is so."),
        ],
    )
    def test_are_not_taken_for_others(self, one: str, other: str) -> None:
        assert first_alike([one, other]) == [None, None]

    @given(readings, readings, st.data())
    def test_repeating_a_reason_does_not_raise_the_score(
        self, reasons: list[tuple[float, float]], rivals: list[tuple[float, float]], data: st.DataObject
    ) -> None:
        said = [(f"reason number {i}", *pair) for i, pair in enumerate(reasons)]
        against = [(f"rival number {i}", *pair) for i, pair in enumerate(rivals)]
        before = appraise(DOCUMENT, read(said, against)).score
        again = data.draw(st.sampled_from(said))
        repeated = (f" {again[0].upper()}.", data.draw(marks), data.draw(marks))
        after = appraise(DOCUMENT, read([*said, repeated], against))
        assert before is not None
        assert after.score == before
        assert "repeated-reasons" in after.notes
        assert after.reasons[-1].repeats == said.index(again)

    def test_a_repeated_rival_counts_once_too(self) -> None:
        against = [("It is dear.", 8.0, 8.0)]
        once = appraise(DOCUMENT, read([("It is quick.", 6.0, 6.0)], against))
        twice = appraise(DOCUMENT, read([("It is quick.", 6.0, 6.0)], against * 2))
        assert twice.score == once.score
        assert twice.notes == ("repeated-reasons",)
        assert once.notes == ()


class TestAppraisal:
    def test_marks_out_of_ten_become_shares(self) -> None:
        found = appraise(DOCUMENT, read([("It is quick.", 8.0, 9.0)], [("It is dear.", 4.0, 3.0)]))
        assert found.score == pytest.approx(0.75)
        assert [found.reasons[0].weighed, found.rivals[0].weighed] == [
            WeightedReason(0.8, 0.9),
            WeightedReason(0.4, 0.3, True),
        ]

    def test_marks_that_may_be_meant_from_0_to_1_are_noted_not_changed(self) -> None:
        found = appraise(DOCUMENT, read([("It is quick.", 0.8, 1.0)]))
        assert found.score == pytest.approx(0.08)
        assert found.notes == ("scale-doubtful",)
        assert appraise(DOCUMENT, read([("It is quick.", 0.0, 1.0)])).notes == ()

    def test_a_contradiction_is_ignored_without_facts(self) -> None:
        marked = read([("It is quick.", 8.0, 8.0)])
        marked = marked.model_copy(
            update={"reasons": [marked.reasons[0].model_copy(update={"contradicts_facts": True})]}
        )
        bare = appraise(DOCUMENT, marked)
        assert (bare.score, bare.notes) == (0.8, ("contradiction-without-facts",))
        given = appraise(replace(DOCUMENT, facts="It is slow."), marked)
        assert (given.score, given.notes) == (0.0, ())
        assert given.reasons[0].stated == 0.8
