"""Panel verdicts of a run of debates on subjects, where no answer is right or wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from moot.actors.record.schema import CaseKey
from moot.deploy.results.record import RunRecord, VerdictRow
from moot.deploy.results.report.display import FrozenModel
from moot.deploy.results.text import counts_in_words, mean_of, number, percent, signed
from moot.protocols.rubrics.events import ReplyAssessed
from moot.protocols.socrasynth.events import Better, JointProposal, SocraSynthPayload


class PanelVerdictCounts(FrozenModel):
    """Counts of panel verdicts over finished debates.

    Attributes:
        winners: debates by the side with the better closing: `For`, `Against`, `Tie`, and `none` where it is unknown;
            without debates on a closed list, whose sides argue for answers of their own.
        consensus: debates on a closed list by the way to consensus: `at once`, `concession`, `proposal`, and `none`.
        first_mover_advantage: advantage of the first position, in marks, mean over `judgings`; None when unknown.
        judgings: pairs of a debate and a judge that judged it in both orders.
        joint: debates by their joint proposal: `both consent`, `reservations` (a side does not consent), `not known`
            (a side's consent is unknown), `no proposal`.
        versus: debates by the outcome of their comparison with a single answer: `debate` or `answer` is better, `tie`,
            and `none` where it is unknown; None if no debate was compared.
        versus_topics: their topics likewise; None also in older records, which compared debates as a whole.
    """

    winners: dict[str, int]
    consensus: dict[str, int]
    first_mover_advantage: float | None
    judgings: int
    joint: dict[str, int]
    versus: dict[str, int] | None = None
    versus_topics: dict[str, int] | None = None


SOCRASYNTH_KEY = '"position_bias"'
"""Text that the JSON of every `SocraSynthPayload` contains."""


def count_panel_verdicts(record: RunRecord, finished: Sequence[VerdictRow]) -> PanelVerdictCounts | None:
    """Panel verdict counts of a run; None without a panel verdict.

    Raises:
        RecordError: the record cannot be read.
    """
    keys = {verdict.key for verdict in finished}
    known = [payload for key, payload in record.payloads(SocraSynthPayload, SOCRASYNTH_KEY) if key in keys]
    if not known:
        return None
    biases = [bias for payload in known for bias in payload.position_bias.values() if bias is not None]
    winners = Counter(payload.winner or "none" for payload in known if payload.positions is None)
    consensus = Counter(payload.consensus or "none" for payload in known if payload.positions is not None)
    joint = Counter(_agreement(payload.joint) for payload in known)
    compared = [payload for payload in known if "versus" in payload.model_fields_set]
    return PanelVerdictCounts(
        winners={name: winners[name] for name in ("For", "Against", "Tie", "none")},
        consensus={name: consensus[name] for name in ("at once", "concession", "proposal", "none")},
        first_mover_advantage=mean_of(biases),
        judgings=len(biases),
        joint={name: joint[name] for name in ("both consent", "reservations", "not known", "no proposal")},
        versus=outcomes([payload.versus for payload in compared]),
        versus_topics=outcomes([better for payload in compared for better in payload.versus_topics]),
    )


def outcomes(found: Sequence[Better | None]) -> dict[str, int] | None:
    """Comparisons with a single answer by their outcome; None without any."""
    counts = Counter(better or "none" for better in found)
    return {name: counts[name] for name in ("debate", "answer", "tie", "none")} if found else None


def _agreement(joint: JointProposal | None) -> str:
    if joint is None:
        return "no proposal"
    consents = set(joint.consents.values())
    return "reservations" if False in consents else "not known" if None in consents or not consents else "both consent"


def panel_verdict_rows(found: PanelVerdictCounts) -> Iterable[tuple[str, str]]:
    """Rows of the panel verdicts, as name and text."""
    advantage = found.first_mover_advantage
    if any(found.winners.values()):
        yield "verdicts", counts_in_words(found.winners)
    if any(found.consensus.values()):
        yield "consensus", counts_in_words(found.consensus)
    yield (
        "position bias",
        f"{signed(advantage, 2)} marks (n = {found.judgings:,})" if advantage is not None else "unknown",
    )
    yield "joint proposals", counts_in_words(found.joint)
    if found.versus is not None:
        yield "debate or answer", counts_in_words(found.versus)
    if found.versus_topics is not None:
        yield "debate or answer, by topic", counts_in_words(found.versus_topics)


class RoleReasoning(FrozenModel):
    """Reasoning quality of one role's judged replies.

    Attributes:
        role: the role.
        quality: mean Q of the replies with a judgment; None without any.
        flagged: share of them that at least half of their judgments flag; None without any.
        replies: replies with a judgment.
        judgments: requested judgments.
        missing: judgments that failed; the means exclude them.
    """

    role: str
    quality: float | None
    flagged: float | None
    replies: int
    judgments: int
    missing: int


def reasoning_by_role(record: RunRecord, finished: Collection[CaseKey]) -> list[RoleReasoning] | None:
    """Reasoning quality by role, from the `assessment` events of finished debates; None without such events."""
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
