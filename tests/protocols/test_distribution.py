"""What models write as a distribution: mended in the open, or refused."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.protocols.distribution import OTHER, CleanedDistribution, Likelihood, Predicted, clean
from moot.protocols.reply_parsing import InvalidReply, parse_reply

LABELS = ("Flu", "Common cold", "Dengue")


def cleaned(distribution: Any, labels: tuple[str, ...] = LABELS) -> CleanedDistribution:
    return clean(Predicted.model_validate({"distribution": distribution}).distribution, labels)


def whats(found: CleanedDistribution) -> list[str]:
    return [change["what"] for change in found.changes]


def test_a_label_that_fits_several_choices_is_none_of_them() -> None:
    written = [["aa", 0.5], ["aA", 0.25], ["B. No, C.", 0.25]]
    given = Predicted.model_validate({"distribution": written}).distribution
    assert clean(given, ("A", "B", "C"), ("AA", "Aa", "aa")).named() == {"C": 0.5, OTHER: 0.5}


class TestForms:
    @pytest.mark.parametrize(
        "written",
        [
            {"Flu": 0.75, "Dengue": 0.25},
            [["Flu", 0.75], ["Dengue", 0.25]],
            [{"label": "Flu", "probability": 0.75}, {"label": "Dengue", "probability": 0.25}],
            {"Flu": "75%", "Dengue": "25 %"},
            {"Flu": "0.75", "Dengue": "0.25"},
        ],
        ids=["mapping", "pairs", "objects", "percent", "text"],
    )
    def test_all_say_the_same(self, written: Any) -> None:
        found = cleaned(written)
        assert found.named() == {"Flu": 0.75, "Dengue": 0.25}
        assert found.labels == (*LABELS, OTHER)
        assert not found.changes

    @pytest.mark.parametrize(
        "written",
        [[], [["Flu", 0.0]], [["Flu", -1]], [["Flu", math.nan]], [["Flu", math.inf]], "Flu", None, [["Flu", "high"]],
         [["Flu", True]], [["Flu"]], [["Flu", 1e308], ["Dengue", 1e308]]],
        ids=str,
    )  # fmt: skip
    def test_no_mass_at_all_is_refused(self, written: Any) -> None:
        with pytest.raises(InvalidReply):
            parse_reply(json.dumps({"distribution": written}), Predicted)

    def test_what_is_refused_says_why(self) -> None:
        with pytest.raises(InvalidReply, match="no label"):
            parse_reply('{"distribution": [["Flu", 0]]}', Predicted)


class TestMending:
    def test_unknown_mass_is_put_apart_not_lost(self) -> None:
        found = cleaned({"Flu": 0.5, "Viral infection": 0.3, "Bacteria": 0.2})
        assert found.named() == {"Flu": 0.5, OTHER: 0.5}
        assert [dict(change) for change in found.changes] == [
            {"what": "unknown", "label": "Viral infection", "to": OTHER},
            {"what": "unknown", "label": "Bacteria", "to": OTHER},
        ]

    def test_spellings_and_repeats_are_added_up(self) -> None:
        found = cleaned([["FLU", 0.3], ["Flu", 0.3], ["common  cold", 0.4]])
        assert found.named() == {"Flu": 0.6, "Common cold": 0.4}
        assert whats(found) == ["alias", "repeated", "alias"]

    def test_aliases_of_the_task(self) -> None:
        given_ = Predicted.model_validate({"distribution": {"grippe": 0.5, "dengue fever": 0.5}}).distribution
        found = clean(given_, LABELS, aliases=(("influenza", "Grippe"), (), ("dengue fever",)))
        assert found.named() == {"Flu": 0.5, "Dengue": 0.5}
        assert [dict(change) for change in found.changes] == [
            {"what": "alias", "label": "grippe", "to": "Flu"},
            {"what": "alias", "label": "dengue fever", "to": "Dengue"},
        ]

    def test_what_is_no_probability_is_dropped_and_reported(self) -> None:
        found = cleaned([["Flu", 1.0], ["Dengue", -0.5], ["Common cold", "lots"]])
        assert found.named() == {"Flu": 1.0}
        assert whats(found) == ["negative", "not-a-number"]

    def test_a_class_that_is_called_other_is_not_the_rest(self) -> None:
        found = cleaned({"other": 0.5, "Plague": 0.5}, ("Flu", "other"))
        assert found.named() == {"other": 0.5, OTHER: 0.5}


written = st.lists(
    st.tuples(
        st.sampled_from([*LABELS, "flu", "DENGUE", "Plague", ""]),
        st.one_of(st.floats(), st.floats(0.0, 1.0), st.integers(-5, 200), st.sampled_from(["5%", "x", "-1"])),
    ),
    min_size=1,
    max_size=12,
)


@given(written)
def test_a_distribution_comes_out_or_a_refusal(pairs: list[tuple[str, Any]]) -> None:
    try:
        given_ = Predicted.model_validate({"distribution": pairs}).distribution
    except ValueError:
        return
    found = clean(given_, LABELS)
    assert np.all(found.probabilities >= 0.0)
    assert found.probabilities.sum() == pytest.approx(1.0, abs=1e-9)
    label, probability = found.top
    assert probability == max(found.named().values())
    assert label in found.labels


@given(st.lists(st.floats(0.01, 1.0), min_size=3, max_size=3))
def test_clean_input_is_left_as_it_is(masses: list[float]) -> None:
    total = math.fsum(masses)
    given_ = [Likelihood(label=label, probability=m / total) for label, m in zip(LABELS, masses, strict=True)]
    found = clean(given_, LABELS)
    assert found.probabilities[:3] == pytest.approx([m / total for m in masses], abs=1e-9)
    assert not found.changes


def test_a_reply_lives_through_the_journal() -> None:
    """NaN has no place in JSON: it becomes null there, and NaN again when it is read back."""
    first = parse_reply('{"distribution": [["Flu", 0.5], ["Dengue", "?"]]}', Predicted)
    again = Predicted.model_validate(json.loads(json.dumps(first.data).replace("NaN", "null")))
    assert math.isnan(again.distribution[1].probability)
    assert clean(again.distribution, LABELS).named() == {"Flu": 1.0}
