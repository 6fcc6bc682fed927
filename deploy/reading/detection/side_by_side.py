"""Runs over the same claims side by side, with the trivial answers below."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from moot.deploy.reading.detection.detection import Seconds
from moot.deploy.reading.detection.estimates import Estimate, in_percent, in_seconds, signed_points, without_interval
from moot.deploy.reading.detection.figures import ALWAYS, BARE, VERDICT, ClaimSet
from moot.deploy.reading.report.blocks import Table
from moot.protocols.claims import HALLUCINATED, SUPPORTED


class RunOfClaims(NamedTuple):
    """What a row says of a run.

    Attributes:
        claims, seconds: None when unknown, or when it is over anything else.
        against: its macro F1 minus the first run's, on the claims of both; None for the first run.
        trained_on, group_trained_on: claims that are left out because its classifier was trained on them, or on others
            of their groups.
    """

    claims: ClaimSet | None
    seconds: Seconds | None
    against: Estimate | None
    trained_on: int = 0
    group_trained_on: int = 0


def claims_blocks(names: Sequence[str], runs: Sequence[RunOfClaims]) -> list[Table]:
    """The F1 of each run, and of the trivial answers to the claims of the first that has any; and the differences."""
    known = next((run.claims for run in runs if run.claims), None)
    judged = any(run.claims and run.claims.has_bare for run in runs)
    rows = [
        (name, *_figures(run.claims, VERDICT), *((_bare(run.claims),) if judged else ()), _seconds(run))
        for name, run in zip(names, runs, strict=True)
    ]
    rows += [(name, *_figures(known, name), *(("-",) if judged else ()), "-") for name in ALWAYS.values()]
    heads = ("run", f"F1 /{SUPPORTED}", f"F1 /{HALLUCINATED}", "F1 /macro", *(("bare /macro",) if judged else ()))
    title = "claims: F1, %, each with its own class as the positive one; one left open is a miss"
    blocks = [Table(title, (*heads, "s /case"), rows)]
    against = [
        (name, signed_points(run.against)) for name, run in zip(names, runs, strict=True) if run.against is not None
    ]
    if against:
        title = f"macro F1 against {names[0]}, on the claims of both ([95 %, groups drawn anew])"
        blocks.append(Table(title, ("run", "points"), against))
    return blocks


def claims_notes(names: Sequence[str], runs: Sequence[RunOfClaims]) -> list[str]:
    """What stands under the tables: whose claims are left out because the run's classifier was trained on them."""
    return [
        f"{name}: {run.trained_on + run.group_trained_on:,} claims left out: its classifier was trained on "
        f"{run.trained_on:,} of them, and on others of the groups of {run.group_trained_on:,}"
        for name, run in zip(names, runs, strict=True)
        if run.trained_on or run.group_trained_on
    ]


def _figures(claims: ClaimSet | None, by: str) -> tuple[str, str, str]:
    return (_f1(claims, by, SUPPORTED), _f1(claims, by, HALLUCINATED), _f1(claims, by))


def _f1(claims: ClaimSet | None, by: str, label: str = "") -> str:
    """The F1 of a label, or the mean of both; the recall, where only one class occurs."""
    found = claims.by(by) if claims is not None else None
    if claims is None or found is None:
        return "-"
    if claims.only is not None:
        return f"recall {without_interval(found.accuracy)}" if label == claims.only else "-"
    return without_interval(found.of(label).f1) if label else in_percent(found.macro_f1)


def _bare(claims: ClaimSet | None) -> str:
    found = claims.by(BARE) if claims is not None else None
    return "-" if found is None else without_interval(found.macro_f1)


def _seconds(run: RunOfClaims) -> str:
    return "unknown" if run.seconds is None else in_seconds(run.seconds.mean)
