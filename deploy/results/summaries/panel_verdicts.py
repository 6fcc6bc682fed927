"""Panel verdicts of a run of debates on subjects, where no answer is right or wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from moot.actors.record.schema import CaseKey
from moot.deploy.results.base_models import FrozenModel
from moot.deploy.results.record.rows import VerdictRow
from moot.deploy.results.record.run_record import RunRecord
from moot.deploy.results.text import counts_in_words, mean_of, number, percent, signed
from moot.protocols.rubrics.events import ReplyAssessed
from moot.protocols.socrasynth.events import JointProposal, SocraSynthPayload


class PanelVerdictCounts(FrozenModel):
    """Counts of panel verdicts.

    Attributes:
        winners: finished debates by who closed better: `For`, `Against`, `Tie`, and `none` where that is unknown;
            without those on a closed list, whose sides argue for answers of their own.
        consensus: finished debates on a closed list by how the sides reached consensus: `at once`, `concession`,
            `proposal`, and `none`.
        first_mover_advantage: the advantage of the first position, in marks, mean over `judgings`; None when unknown.
        judgings: pairs of a debate and a judge that judged it in both orders.
        joint: finished debates by their joint proposal: `both consent`, `reservations` (a side does not), `not known`
            (a side did not say), `no proposal`.
    """

    winners: dict[str, int]
    consensus: dict[str, int]
    first_mover_advantage: float | None
    judgings: int
    joint: dict[str, int]


SOCRASYNTH_KEY = '"position_bias"'
"""What every `SocraSynthPayload` has in its JSON."""


def count_panel_verdicts(record: RunRecord, finished: Sequence[VerdictRow]) -> PanelVerdictCounts | None:
    """Counts the panel verdicts of a run; None without any.

    Raises:
        RecordError: the record cannot be read.
    """
    keys = {verdict.key for verdict in finished}
    known = [payload for key, payload in record.payloads(SocraSynthPayload, SOCRASYNTH_KEY) if key in keys]
    if not known:
        return None
    worth = [bias for payload in known for bias in payload.position_bias.values() if bias is not None]
    winners = Counter(payload.winner or "none" for payload in known if payload.positions is None)
    consensus = Counter(payload.consensus or "none" for payload in known if payload.positions is not None)
    joint = Counter(_agreement(payload.joint) for payload in known)
    return PanelVerdictCounts(
        winners={name: winners[name] for name in ("For", "Against", "Tie", "none")},
        consensus={name: consensus[name] for name in ("at once", "concession", "proposal", "none")},
        first_mover_advantage=mean_of(worth),
        judgings=len(worth),
        joint={name: joint[name] for name in ("both consent", "reservations", "not known", "no proposal")},
    )


def _agreement(joint: JointProposal | None) -> str:
    if joint is None:
        return "no proposal"
    consents = set(joint.consents.values())
    return "reservations" if False in consents else "not known" if None in consents or not consents else "both consent"


def panel_verdict_rows(found: PanelVerdictCounts) -> Iterable[tuple[str, str]]:
    """Rows of the panel verdicts, as name and text."""
    worth = found.first_mover_advantage
    if any(found.winners.values()):
        yield "verdicts", counts_in_words(found.winners)
    if any(found.consensus.values()):
        yield "consensus", counts_in_words(found.consensus)
    yield (
        "position bias",
        f"{signed(worth, 2)} marks (n = {found.judgings:,})" if worth is not None else "unknown",
    )
    yield "joint proposals", counts_in_words(found.joint)


class RoleReasoning(FrozenModel):
    """Reasoning quality of one role's judged replies.

    Attributes:
        role: the role.
        quality: mean Q of the replies with a judgment; None without any.
        flagged: share of them that at least half of their judgments flag; None without any.
        replies: number of replies with a judgment.
        judgments: requested ones; `missing` of them failed and are excluded from the means.
    """

    role: str
    quality: float | None
    flagged: float | None
    replies: int
    judgments: int
    missing: int


def reasoning_by_role(record: RunRecord, finished: Collection[CaseKey]) -> list[RoleReasoning] | None:
    """Reasoning quality by role, from the `assessment` events of finished debates; None when there are none."""
    found: dict[str, list[ReplyAssessed]] = {}
    for event, assessment in record.typed_events(ReplyAssessed):
        if event.key in finished:
            found.setdefault(assessment.role, []).append(assessment)
    return [_of_role(role, assessments) for role, assessments in sorted(found.items())] or None


def _of_role(role: str, assessments: Sequence[ReplyAssessed]) -> RoleReasoning:
    return RoleReasoning(
        role=role,
        quality=mean_of(each.quality for each in assessments),
        flagged=mean_of(each.flagged for each in assessments),
        replies=sum(each.quality is not None for each in assessments),
        judgments=sum(len(each.judges) for each in assessments),
        missing=sum(each.missing for each in assessments),
    )


def reasoning_rows(found: Iterable[RoleReasoning]) -> Iterable[tuple[str, str]]:
    """Rows of the reasoning quality, as name and text."""
    for each in found:
        words = f"Q {number(each.quality, 2)}, flagged {percent(each.flagged)} (n = {each.replies:,})"
        if each.missing:
            words += f"; {each.missing:,} of {each.judgments:,} judgments missing"
        yield f"reasoning: {each.role}", words
