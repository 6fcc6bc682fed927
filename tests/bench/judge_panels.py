"""How far recorded people and judges agree, what the order of two texts does to judges, and what a panel is worth.

    python tests/bench/judge_panels.py FOLDER [--json FILE]

FOLDER holds `pandalm`, `qags`, `llmbar_natural` and `judgebench` (see `recorded_judges.py`). It prints the findings and
tables of `deploy/docs/judge-panels.md`; the figures are those of `judge_figures.py`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from judge_figures import AgainstPeople, Agreement, Found, Order, Score, found_in
from printed import numbered, table


def main() -> int:
    """Print the tables, and write all figures where asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--json", type=Path, help="write all figures to this file, too")
    given = parser.parse_args()
    found = found_in(given.folder)
    print("\n".join(page(found)))
    if given.json:
        given.json.write_text(json.dumps(asdict(found), indent=1) + "\n", encoding="utf-8")
    return 0


def page(found: Found) -> list[str]:
    """The lines of what is printed."""
    lines = [*findings(found), "", *agreement_table(found.agreements), "", *people_table(found.people)]
    for name, orders in found.orders.items():
        lines += ["", f"{name}:", "", *order_table(orders)]
    for name, scores in found.scores.items():
        lines += ["", f"{name}:", "", *score_table(scores)]
    return lines


def findings(found: Found) -> list[str]:
    """What the tables say, as a numbered list."""
    people, judges, cnndm, xsum = found.agreements[:4]
    gpt, panda, both_judges, person = found.people
    llmbar, judgebench = found.orders["LLMBar natural"], found.orders["JudgeBench"]
    moved = max(llmbar, key=lambda one: one.changed.value)
    steady = min(judgebench, key=lambda one: one.changed.value)
    *alone, one_order, panel = found.scores["LLMBar natural"]
    apart = one_order.less_panel.signed if one_order.less_panel else "unknown"
    best = max(alone, key=lambda one: one.score.value)
    placed = [one for one in (*llmbar, *judgebench) if one.counts.first_twice + one.counts.second_twice]
    first = sum(one.counts.first_twice for one in placed)
    kept = [one.right.value for one in llmbar]
    texts = [
        f"People agree where judges do not. On the same {people.units} pairs two people said the same in "
        f"{people.raw.value:.0%} of the cases, the two judges in {judges.raw.value:.0%} (alpha {people.alpha} and "
        f"{judges.alpha}). A judge said what most people said in {panda.majority.value:.0%} ({panda.name}) and "
        f"{gpt.majority.value:.0%} ({gpt.name}), a person in {person.majority.value:.0%}. Where both judges agreed "
        f"({both_judges.units} pairs) they were with the people in {both_judges.majority.value:.0%}: judges that agree "
        f"can be wrong together.",
        f"The place moves judges. All {len(placed)} whose winner ever changed with the order changed it more often to "
        f"the text shown first: {first} of {sum(_changes(one) for one in placed)} changes; "
        f"{sum(one.p_value < 0.05 for one in placed)} have p < .05 alone. {moved.judge} changed in "
        f"{_changes(moved)} of {moved.counts.decided} pairs. A winner that both orders give is worth more: on "
        f"LLMBar it was right in {min(kept):.0%} to {max(kept):.0%} of a judge's such pairs.",
        f"A panel asked in one order is moved, too; voting over both orders mends it. On LLMBar text 2 is the right "
        f"one in {found.text2_right['LLMBar natural']:.0%} of {panel.pairs} pairs: with it second the majority of "
        f"{len(alone)} judges is right in {one_order.text1_first:.0%}, with it first in {one_order.text2_first:.0%}. "
        f"Over both orders it is right in {panel.score}; an order alone differs by {apart}. "
        f"That is better than {_behind(alone)} of the {len(alone)} judges, the interval of the difference considered, "
        f"but no better than the best of them, {best.name} ({best.score}): many weak judges do not replace a good one.",
        f"Alpha alone misleads. On QAGS it is {cnndm.alpha} for cnndm and {xsum.alpha} for xsum, nearly the same; AC1 "
        f"is {cnndm.ac1} and {xsum.ac1}. {cnndm.commonest:.0%} of the answers are alike on cnndm, {xsum.commonest:.0%} "
        f"on xsum, and alpha puts more of the former agreement down to chance ({cnndm.units} and {xsum.units} "
        f"sentences).",
        f"Not to be moved is not to be right: {steady.judge} never changed with the order and is right in "
        f"{steady.right} of {steady.counts.judged} pairs of JudgeBench.",
    ]
    return numbered(texts)


def _changes(one: Order) -> int:
    return one.counts.first_twice + one.counts.second_twice


def _behind(judges: Iterable[Score]) -> int:
    """How many judges are behind the panel by an interval that does not hold 0."""
    return sum(one.less_panel is not None and one.less_panel.high < 0.0 for one in judges)


def agreement_table(found: Iterable[Agreement]) -> list[str]:
    """A row per table of ratings."""
    return table(
        ("who", "units", "clusters", "commonest", "raw agreement", "AC1", "alpha", "AC2, alpha, ordinal"),
        (
            (
                one.name,
                one.units,
                one.clusters,
                f"{one.commonest:.0%}",
                one.raw,
                one.ac1,
                one.alpha,
                None if one.ordinal_ac2 is None else f"{one.ordinal_ac2}, {one.ordinal_alpha}",
            )
            for one in found
        ),
    )


def people_table(found: Iterable[AgainstPeople]) -> list[str]:
    """A row per judge, and people."""
    return table(
        ("PandaLM", "units", "says what most people say", "says what one person says"),
        ((one.name, one.units, one.majority, one.one_person) for one in found),
    )


def order_table(found: Iterable[Order]) -> list[str]:
    """A row per judge."""
    heads = ("judge", "decided pairs", "first shown", "changed", "to the first, second", "p", "a tie in one, both")
    return table(
        (*heads, "right where unchanged"),
        (
            (
                one.judge,
                f"{one.counts.decided} of {one.counts.pairs + one.counts.missing}",
                one.first_shown,
                one.changed,
                f"{one.counts.first_twice}, {one.counts.second_twice}",
                f"{one.p_value:.2g}",
                f"{one.counts.first_and_tie + one.counts.second_and_tie}, {one.counts.tied_twice}",
                f"{one.right} of {one.counts.judged}",
            )
            for one in found
        ),
    )


def score_table(found: Iterable[Score]) -> list[str]:
    """A row per judge and panel."""
    return table(
        (
            "who",
            "pairs",
            "undecided",
            "text 1 first",
            "text 2 first",
            "both orders",
            "ties",
            "ties as wrong",
            "less the panel in both",
        ),
        (
            (
                one.name,
                one.pairs,
                one.undecided,
                f"{one.text1_first:.2f}",
                f"{one.text2_first:.2f}",
                one.score,
                one.ties,
                f"{one.strict:.2f}",
                one.less_panel and one.less_panel.signed,
            )
            for one in found
        ),
    )


if __name__ == "__main__":
    sys.exit(main())
