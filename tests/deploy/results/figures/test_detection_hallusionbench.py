"""HallusionBench as its authors score it: worked by hand, and on their own rows counted in another way."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from not_none import not_none
from places import DATA

from moot.deploy.results.figures.claims import ALWAYS_NO, VERDICT, Claim, HallusionAccuracies, hallusion_accuracies
from moot.protocols.claims import HALLUCINATED, SUPPORTED
from moot.protocols.tasks.hallusionbench import EASY_QUESTIONS, FIGURE_QUESTIONS, HARD_QUESTIONS

SLICE = DATA / "hallusionbench"


def question(place: str, gold: str, answer: str | None) -> Claim:
    """A claim at `PART/SET/FIGURE/QUESTION`, gold and answer `yes`, `no` or None."""
    part, number, figure, asked = place.split("/")
    labels = {"yes": SUPPORTED, "no": HALLUCINATED}
    tags = {"category": part, "subcategory": "math", "set": number, "figure": figure, "question": asked}
    return Claim(
        case_id=place,
        gold=labels[gold],
        group=f"{part}/math/{number}",
        tags={**tags, "visual_input": "0" if part == "VS" and figure == "0" else "1"},
        answer=None if answer is None else labels[answer],
    )


WORKED = [
    # VD, set 1: the original figure is right throughout, the edited one half
    question("VD/1/0/0", "yes", "yes"),
    question("VD/1/0/1", "no", "no"),
    question("VD/1/1/0", "no", "no"),
    question("VD/1/1/1", "yes", "no"),
    # VD, set 2: nothing is known of the only question, which is wrong where there is a figure
    question("VD/2/0/0", "no", None),
    # VS, set 1: the first without its figure and left open, the second answered wrong there
    question("VS/1/0/0", "yes", None),
    question("VS/1/0/1", "yes", "no"),
    question("VS/1/1/0", "yes", "yes"),
    question("VS/1/1/1", "yes", "yes"),
    question("VS/1/2/0", "no", None),
]


def shares(found: HallusionAccuracies) -> list[tuple[float | None, int]]:
    figures = (found.question, found.figure, found.pair, found.easy, found.hard)
    return [(each.share.value, each.n) for each in figures]


def by(claims: list[Claim], name: str, part: str | None = None) -> HallusionAccuracies:
    found = not_none(hallusion_accuracies(claims))
    return next(each for each in found if (each.by, each.part) == (name, part))


def test_is_the_example_worked_by_hand() -> None:
    whole = by(WORKED, VERDICT)
    assert shares(whole) == [
        (6 / 10, 10),  # VD 0/0, 0/1, 1/0; VS 0/0 (open, without figure), 1/0, 1/1
        (2 / 5, 5),  # VD 1/0 and VS 1/1; not VD 1/1, VD 2/0, VS 1/2; VS 1/0 is no figure
        (1 / 5, 5),  # VD 1 question 0; VD 1/1, VD 2/0, VS 0 (figure 2), VS 1 (without figure) are not
        (3 / 5, 5),  # VD 1/0, VD 1/1, VS 1/0; not VD 2/0, VS 1/1
        (2 / 4, 4),  # VD 1/0 and VS 1/1; VD 1/1 and VS 1/0 are not; VD 2 has no edited figure
    ]
    assert whole.left_open_right == 1
    assert shares(by(WORKED, VERDICT, "VD")) == [(3 / 5, 5), (1 / 3, 3), (1 / 3, 3), (2 / 3, 3), (1 / 2, 2)]
    assert shares(by(WORKED, VERDICT, "VS")) == [(3 / 5, 5), (1 / 2, 2), (0.0, 2), (1 / 2, 2), (1 / 2, 2)]
    never = by(WORKED, ALWAYS_NO)
    assert shares(never) == [(4 / 10, 10), (2 / 5, 5), (1 / 5, 5), (2 / 5, 5), (1 / 4, 4)]
    assert never.left_open_right == 0


def test_what_is_not_complete_is_in_no_figure_and_no_pair() -> None:
    claims = [replace(claim, state="failed") if claim.case_id == "VD/1/0/0" else claim for claim in WORKED]
    found = by(claims, VERDICT)
    assert (found.question.n, found.question.incomplete) == (9, 1)
    assert (found.figure.n, found.figure.incomplete) == (4, 1)
    assert (found.pair.n, found.pair.incomplete) == (4, 1)
    trained = [replace(claim, trained_on="claim" if claim.case_id == "VD/1/0/0" else None) for claim in WORKED]
    assert shares(by(trained, VERDICT)) == shares(found)


def sized(claims: list[Claim]) -> list[Claim]:
    """The claims as the loader tags them when these are the whole file."""

    def of(claim: Claim, *names: str) -> list[Claim]:
        return [each for each in claims if all(each.tags[name] == claim.tags[name] for name in names)]

    found = []
    for claim in claims:
        pair = of(claim, "category", "subcategory", "set", "question")
        easy = sum(each.tags["figure"] == "0" for each in pair)
        sizes = {
            FIGURE_QUESTIONS: len(of(claim, "category", "subcategory", "set", "figure")),
            EASY_QUESTIONS: easy,
            HARD_QUESTIONS: len(pair) - easy,
        }
        found.append(replace(claim, tags={**claim.tags, **{name: str(size) for name, size in sizes.items()}}))
    return found


def test_only_a_unit_with_all_its_questions_of_the_file_counts() -> None:
    """Without VS 1/2/0 the first VS pair would be right, as would VD figure 1/0 without its second question."""
    whole = sized(WORKED)
    assert hallusion_accuracies(whole) == hallusion_accuracies(WORKED)
    left = [claim for claim in whole if claim.case_id not in ("VS/1/2/0", "VD/1/0/1")]
    found = by(left, VERDICT)
    assert shares(found) == [
        (5 / 8, 8),
        (1 / 3, 3),  # VS 1/1; not VD 1/1, VD 2/0; VD 1/0 is incomplete
        (1 / 3, 3),  # VD 1 question 0; not VD 2/0, VS 1 question 1; VD 1 question 1, VS 1 question 0 are incomplete
        (2 / 4, 4),  # VD 1/0, VS 1/0; not VD 2/0, VS 1/1; nothing is there of the easy part of VD 1 question 1
        (2 / 3, 3),  # VD 1 question 0, VS 1 question 1; not VD 1 question 1; VS 1 question 0 is incomplete
    ]
    assert [each.incomplete for each in (found.figure, found.pair, found.easy, found.hard)] == [1, 2, 0, 1]
    untagged = [claim for claim in WORKED if claim.case_id not in ("VS/1/2/0", "VD/1/0/1")]
    assert by(untagged, VERDICT).pair.n == 5, "an older record does not say what is missing"


@pytest.mark.needs("data/hallusionbench")
def test_always_no_is_right_on_more_than_half_of_the_real_questions() -> None:
    claims = []
    names = ("category", "subcategory", "set_id", "figure_id", "question_id")
    for row in json.loads((SLICE / "HallusionBench.json").read_text()):
        tags = {name.removesuffix("_id"): row[name] for name in (*names, "visual_input")}
        key = [row[name] for name in names]
        gold = {"1": SUPPORTED, "0": HALLUCINATED}[row["gt_answer"]]
        claims.append(Claim(case_id="/".join(key), gold=gold, group="/".join(key[:3]), tags=tags, answer=None))
    found = by(claims, ALWAYS_NO)
    share = sum(claim.gold == HALLUCINATED for claim in claims) / len(claims)
    assert found.question.share.value == pytest.approx(share)
    assert share > 0.5
    figures = {claim.case_id.rpartition("/")[0] for claim in claims if not claim.case_id.startswith("VS/")}
    figures |= {claim.case_id.rpartition("/")[0] for claim in claims if claim.tags["figure"] != "0"}
    pairs = {(claim.group, claim.tags["question"]) for claim in claims}
    assert (found.question.n, found.figure.n, found.pair.n) == (180, len(figures), len(pairs))
