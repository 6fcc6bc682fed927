"""Does the confidence of a reply's first tokens say whether it is true? Recorded answers of four models to TruthfulQA.

    python tests/bench/early_confidence.py FOLDER [--json FILE]

FOLDER holds `truthfulqa_gpt3_logprobs` (see `recorded_answers.py`). It prints the findings and tables of
`deploy/docs/early-confidence.md`; the figures are those of `early_confidence_figures.py`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

from early_confidence_figures import STATISTICS, TARGETS, WINDOWS, Classes, Found, Row, Sweep, found_in
from printed import numbered, table

RISING = "logprob.content.first-10.slope"


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
    lines = [*findings(found), "", *classes_table(found.classes), "", *sweeps_table(found.sweeps)]
    for target in TARGETS:
        own = [sweep for sweep in found.sweeps if sweep.target == target]
        lines += ["", f"True for {target}:", "", *features_table(own)]
    return lines


def findings(found: Found) -> list[str]:
    """What the tables say, as a numbered list."""
    rows, sweeps = found.rows, found.sweeps
    alone = [sweep for sweep in sweeps if sweep.model != "all"]
    top, surviving = max(alone, key=lambda sweep: sweep.best.folded), [s for s in sweeps if s.best.max_p_value < 0.05]
    best, in_sample = top.best, sorted(sweep.best.folded for sweep in sweeps)
    held_out, true = sorted(sweep.held_out for sweep in sweeps), sorted(sweep.true for sweep in alone)
    chance = sorted(sweep.by_chance for sweep in alone)
    together = [sweep for sweep in sweeps if sweep.model == "all"]
    rising = [sweep.row(RISING) for sweep in sweeps]
    rises = sum(sweep.best == row for sweep, row in zip(sweeps, rising, strict=True))
    return numbered(
        (
            f"No feature of the first 3, 5 or 10 tokens or of the whole answer is found to tell true answers from "
            f"false ones. Of {len(rows)} tests {sum(row.p_value < 0.05 for row in rows)} have p < .05 alone, where "
            f"chance gives {0.05 * len(rows):.0f}; {sum(row.q_value < 0.05 for row in rows)} have q < .05 (the least q "
            f"is {min(row.q_value for row in rows):.2f}). As the best of its sweep {len(surviving)} of {len(sweeps)} "
            f"has p < .05{_listed(surviving)}, as chance would have it.",
            f"The best of many looks like a finding: {best.words} ({top.model}, true for {top.target}) has an AUROC of "
            f"{best.auroc}, n {best.n}, p {best.p_value:.2g} alone. As the best of {len(top.rows)} it has p "
            f"{best.max_p_value:.2f}; a feature chosen on other questions has {top.held_out:.2f}. Over the "
            f"{len(sweeps)} sweeps the best feature has {in_sample[0]:.2f} to {in_sample[-1]:.2f} (whichever way it "
            f"points), on held-out questions {held_out[0]:.2f} to {held_out[-1]:.2f}, mean "
            f"{sum(held_out) / len(held_out):.2f}.",
            f"That is no proof that there is nothing. A model has {true[0]} to {true[-1]} true answers, and the best "
            f"of noise is {chance[0]:.2f} to {chance[-1]:.2f} away from .5 once in twenty times: only a strong signal "
            f"could show. One fixed feature, the mean of the whole answer, has over all models "
            f"{_per_target(together, 'logprob.full.mean')}.",
            f"Worth a test on OTHER answers, and no more: {rising[0].words} is the best feature of {rises} sweeps and "
            f"above .5 in {sum(row.auroc.value > 0.5 for row in rising)} of {len(rising)} (which share questions). "
            f"Over all models it has {_per_target(together, RISING)}, with p as the best of {len(top.rows)} of "
            f"{' and '.join(f'{sweep.row(RISING).max_p_value:.2f}' for sweep in together)}.",
        )
    )


def _per_target(sweeps: Sequence[Sweep], feature: str) -> str:
    """A feature's AUROC for each target."""
    return " and ".join(f"{sweep.row(feature).auroc} (true for {sweep.target})" for sweep in sweeps)


def _listed(sweeps: Sequence[Sweep]) -> str:
    """Each sweep with its best feature, in brackets."""
    named = [f"{s.best.words}, {s.model}, true for {s.target}: {s.best.max_p_value:.2f}" for s in sweeps]
    return f" ({'; '.join(named)})" if named else ""


def classes_table(found: Iterable[Classes]) -> list[str]:
    """A row per model."""
    return table(
        ("model", "true for people", "false", "left out", "the judge says the same"),
        (
            (
                one.model,
                one.true,
                one.false,
                f"{sum(one.left_out.values())}: "
                + ", ".join(f"{name or 'none'} {count}" for name, count in sorted(one.left_out.items())),
                f"{one.same / one.both:.0%} of {one.both}",
            )
            for one in found
        ),
    )


def sweeps_table(found: Iterable[Sweep]) -> list[str]:
    """A row per model and target."""
    heads = ("model", "true for", "true of n", "length", "whole answer's mean", "best feature", "n", "AUROC", "PB")
    return table(
        (*heads, "p alone", "q", "p of the best", "held out"),
        (
            (
                one.model,
                one.target,
                f"{one.true} of {one.n}",
                one.length.auroc,
                one.row("logprob.full.mean").auroc,
                f"{one.best.words}, {one.best.direction}",
                one.best.n,
                one.best.auroc,
                f"{one.best.point_biserial:+.2f}",
                f"{one.best.p_value:.2g}",
                f"{one.best.q_value:.2f}",
                f"{one.best.max_p_value:.2f}",
                f"{one.held_out:.2f}",
            )
            for one in found
        ),
    )


def features_table(sweeps: Sequence[Sweep]) -> list[str]:
    """A row per feature from content on, a column per model."""

    def cell(row: Row) -> str:
        return f"{row.auroc}{'*' * (row.p_value < 0.05)}"

    names = [f"logprob.content.{window}.{statistic}" for window in WINDOWS for statistic in STATISTICS]
    smallest = {name: min(sweep.row(name).n for sweep in sweeps) for name in names}
    rows = [
        (
            sweeps[0].row(name).words.removesuffix(" (from content)"),
            smallest[name],
            *(cell(s.row(name)) for s in sweeps),
        )
        for name in names
    ]
    lengths = ("Length in tokens", min(sweep.length.n for sweep in sweeps), *(cell(sweep.length) for sweep in sweeps))
    return table(("from content", "least n", *(sweep.model for sweep in sweeps)), [*rows, lengths])


if __name__ == "__main__":
    sys.exit(main())
