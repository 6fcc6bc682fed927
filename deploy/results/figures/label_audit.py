"""Label audit: cases whose label is contradicted by a converged, confident consensus of good arguments.

Debates see no labels; the comparison is made from the record.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from moot.deploy.results.figures.confidence import ConsensusVerdict, consensus_verdicts
from moot.deploy.results.report.blocks import Block, Heading, Note, Table
from moot.deploy.results.report.display import FrozenModel
from moot.deploy.results.report.render import banner
from moot.deploy.results.run_info import read_run_info
from moot.deploy.results.text import cases as number_of_cases
from moot.deploy.results.text import number, visible_line
from moot.protocols.crit.scoring import out_of_ten
from moot.protocols.errors import ConfigError

CONFIDENCE, CRIT = 0.8, 0.7
"""Least confidence of a consensus and least mean CRIT score of its arguments; both in [0, 1]."""

NOTE = (
    "These are cases to look at, not errors that were found: models that share a mistake agree on it, too. The source's"
    " shares of wrong labels (5 % in one chapter, 15 % in another) are not comparable: other cases, another rule."
)
_HEADER = ("case", "gold", "consensus", "confidence", "CRIT", "question")
_QUESTION_LENGTH = 60


class LabelIssue(FrozenModel):
    """Label to review.

    Attributes:
        confidence: probability of the answer in the consensus.
        crit_mean: mean CRIT score of the sides, in [0, 1].
    """

    case_id: str
    gold: str
    consensus: str
    confidence: float
    crit_mean: float
    question: str


class LabelAudit(FrozenModel):
    """Labels of a run to review, sorted by falling confidence of the consensus that contradicts them.

    Attributes:
        confidence_from, crit_from: the lower bounds, both in [0, 1].
        compared: cases with a converged consensus and a label.
        unknown: cases whose consensus contradicts the label, of which the confidence, the CRIT score, or whether the
            sides had converged is unknown.
        note: the limits of the audit.
    """

    schema_version: int
    run: str
    simulated: bool
    confidence_from: float
    crit_from: float
    compared: int
    unknown: int
    labels: list[LabelIssue]
    note: str = NOTE


def audit_labels(folder: str | Path, confidence: float = CONFIDENCE, crit: float = CRIT) -> LabelAudit:
    """Label audit of a run.

    Args:
        folder: the run's folder.
        confidence: least confidence of a consensus, in [0, 1].
        crit: least mean CRIT score of its arguments, in [0, 1].

    Raises:
        ConfigError: a bound is outside [0, 1].
        RecordError: the folder has no run or cannot be read.
    """
    for flag, bound in (("--confidence", confidence), ("--crit", crit)):
        if not 0.0 <= bound <= 1.0:
            raise ConfigError(f"{flag} {bound:g}: a number from 0 to 1 is expected")
    facts = read_run_info(folder)
    verdicts = consensus_verdicts(folder)
    compared = converged(verdicts)
    against = [each for each in _comparable(verdicts) if not each.correct and each.converged is not False]
    return LabelAudit(
        schema_version=facts.schema_version,
        run=facts.name,
        simulated=facts.simulated,
        confidence_from=confidence,
        crit_from=crit,
        compared=len(compared),
        unknown=sum(None in (each.confidence, each.crit_mean, each.converged) for each in against),
        labels=contradicted(compared, confidence, crit),
    )


def converged(verdicts: Iterable[ConsensusVerdict]) -> list[ConsensusVerdict]:
    """Verdicts that can be compared with a label, and whose sides are known to have converged."""
    return [verdict for verdict in _comparable(verdicts) if verdict.converged]


def _comparable(verdicts: Iterable[ConsensusVerdict]) -> list[ConsensusVerdict]:
    return [verdict for verdict in verdicts if verdict.answer is not None and verdict.correct is not None]


def contradicted(
    compared: Iterable[ConsensusVerdict], confidence: float = CONFIDENCE, crit: float = CRIT
) -> list[LabelIssue]:
    """Verdicts of `converged` that contradict their label with at least this confidence and CRIT score."""
    found = [
        LabelIssue(
            case_id=verdict.case_id,
            gold=verdict.gold,
            consensus=verdict.answer,
            confidence=verdict.confidence,
            crit_mean=verdict.crit_mean,
            question=verdict.question,
        )
        for verdict in compared
        if verdict.correct is False and verdict.gold is not None and verdict.answer is not None
        if verdict.confidence is not None and verdict.confidence >= confidence
        if verdict.crit_mean is not None and verdict.crit_mean >= crit
    ]
    return sorted(found, key=lambda each: (-each.confidence, -each.crit_mean, each.case_id))


def _head(found: LabelAudit) -> str:
    unknown = "confidence, CRIT or whether the sides converged is unknown"
    more = f"; of {found.unknown:,} more that might, {unknown}" if found.unknown else ""
    if not found.compared:
        return f"no case has a label and a converged consensus that could contradict it{more}"
    bounds = f"confidence >= {number(found.confidence_from)} and CRIT >= {out_of_ten(found.crit_from)}"
    of = f"{number_of_cases(found.compared)} with a label and a converged consensus"
    verb = "contradicts" if found.compared == 1 else "contradict"
    return f"{len(found.labels):,} of {of} {verb} the label with {bounds}{more}"


def _rows(labels: Sequence[LabelIssue]) -> list[tuple[str, ...]]:
    rows = list[tuple[str, ...]]()
    for each in labels:
        question = visible_line(each.question)
        if len(question) > _QUESTION_LENGTH:
            question = f"{question[: _QUESTION_LENGTH - 3]}..."
        figures = (number(each.confidence), out_of_ten(each.crit_mean))
        rows.append((each.case_id, each.gold, each.consensus, *figures, question))
    return rows


def label_audit_blocks(found: LabelAudit) -> list[Block]:
    """Report blocks of a label audit: the list with its bounds and limits."""
    head = [*banner(found.simulated), Heading(f"Labels to look at: {found.run}", 1), Note(_head(found))]
    return [*head, Table("", _HEADER, _rows(found.labels)), Note(NOTE, "dim")] if found.labels else head
