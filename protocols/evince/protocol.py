"""EVINCE: sides that state distributions, answer each other, and are moderated by the divergences between them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from types import MappingProxyType
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field

from moot.metrics.divergence import entropy, mixture
from moot.metrics.transport import embedding_distance
from moot.protocols.asked_lengths import asked
from moot.protocols.base import CaseField, DebateProtocol
from moot.protocols.case import Case, case_slots, label_in_words
from moot.protocols.crit.replies import Reading
from moot.protocols.distribution import OTHER, CleanedDistribution
from moot.protocols.errors import CaseUnfit
from moot.protocols.evince.events import (
    ConsensusPayload,
    ConsensusReached,
    EvidenceRetrieved,
    EvinceRoundEnded,
    FollowUpsNamed,
)
from moot.protocols.evince.moderation import EvinceRounds, Reason, RoundResult
from moot.protocols.evince.settings import EvinceSettings
from moot.protocols.evince.side_state import SideState, in_words, reply_for
from moot.protocols.evince.turn_loop import TurnLoop
from moot.protocols.floor import Floor, Request
from moot.protocols.messages import Failure, Verdict
from moot.protocols.nearest_texts import nearest_texts
from moot.protocols.replies import Reply
from moot.protocols.seeds import seeded
from moot.protocols.text.folding import fold

_EQUAL = 1e-9


@dataclass(frozen=True, slots=True)
class Consensus:
    """Consensus of the sides.

    Attributes:
        cleaned: `P = sum(G_i P_i) / sum(G_i)` over the labels and "(other)", with the CRIT scores G of a debate; the
            mean of an ensemble.
        weights: by side, summing to 1.
        weights_from: `crit`, or `equal` of an ensemble, and if a score is unknown or all are 0.
        entropy: in nats.
        uncertainty: entropy over `ln(min(top_k, labels))`, at most 1.
        answer: the most probable label; None if "(other)" is: the sides mean something outside the set.
        confidence: its probability; that of "(other)" counts against it.
    """

    cleaned: CleanedDistribution
    weights: dict[str, float]
    weights_from: Literal["crit", "equal"]
    entropy: float
    uncertainty: float
    answer: str | None
    confidence: float | None

    def distribution(self) -> dict[str, float]:
        """Probabilities by label and "(other)", in a verdict's form."""
        masses = zip(self.cleaned.labels, self.cleaned.probabilities, strict=True)
        return {label: min(1.0, float(p)) for label, p in masses}

    def event(self) -> ConsensusReached:
        """Recorded form."""
        return ConsensusReached(
            weights=self.weights,
            weights_from=self.weights_from,
            distribution=self.cleaned.named(),
            entropy=self.entropy,
            uncertainty=self.uncertainty,
            answer=self.answer,
            confidence=self.confidence,
            path="consensus",
        )


def consensus_of(side_states: Sequence[SideState], settings: EvinceSettings, *, seed: int) -> Consensus:
    """Weigh the sides' last distributions (EVINCE, figure 7.1, step 3); ties are broken by the case's seed.

    Those of an ensemble have equal weights: it is the average that the source compares debates with (section 7.2).
    """
    scores = [side_state.crit for side_state in side_states]
    known = [score for score in scores if score is not None]
    by_crit = settings.debates and len(known) == len(scores) and sum(known) > 0.0
    weights = np.array(known if by_crit else [1.0] * len(scores))
    weights = weights / weights.sum()
    labels = side_states[0].cleaned.labels
    mixed = mixture(np.stack([side_state.cleaned.probabilities for side_state in side_states]), weights)
    spread = float(entropy(mixed))
    most = math.log(max(2, min(settings.top_k, len(labels) - 1)))
    best = [label for label, p in zip(labels, mixed, strict=True) if mixed.max() - p <= _EQUAL]
    winner = best[0] if len(best) == 1 else seeded(seed, "tie/consensus").choice(best)
    return Consensus(
        cleaned=CleanedDistribution(labels, mixed),
        weights={s.name: float(w) for s, w in zip(side_states, weights, strict=True)},
        weights_from="crit" if by_crit else "equal",
        entropy=spread,
        uncertainty=min(1.0, spread / most),
        answer=None if winner == OTHER else winner,
        confidence=None if winner == OTHER else min(1.0, float(mixed.max())),
    )


async def answer_alone(turn_loop: TurnLoop) -> Verdict:
    """Verdict of a debate with a single side: its distribution.

    Notes a `round` with the known values of one side: there are no divergences, and no judges.

    Raises:
        QuorumFailed: the side gave no distribution.
    """
    await turn_loop.open_independently()
    (side_state,) = turn_loop.states()
    alone = consensus_of([side_state], turn_loop.settings, seed=turn_loop.floor.seed)
    stated = {side_state.name: side_state.cleaned.named()}
    own = {side_state.name: float(entropy(side_state.cleaned.probabilities))}
    turn_loop.floor.note(
        EvinceRoundEnded(round=0, order=turn_loop.order, distributions=stated, entropy=own, path="round/0")
    )
    payload = ConsensusPayload(
        distribution_from="consensus",
        entropy=alone.entropy,
        uncertainty=alone.uncertainty,
        distributions=stated,
        arguments={side_state.name: list(side_state.arguments)},
    )
    found = {"distribution-mended": bool(side_state.cleaned.changes), "other-leads": alone.answer is None}
    return Verdict(
        answer=alone.answer,
        how="alone",
        confidence=alone.confidence,
        distribution=alone.distribution(),
        rounds=0,
        flags=tuple(name for name, holds in found.items() if holds),
        payload=payload.model_dump(exclude_unset=True),
    )


Floats = npt.NDArray[np.float64]

_READS: frozenset[CaseField] = frozenset({"passage", "choices", "images"})

_JOINT_LEVEL = 0.3
"""Contentiousness of the sides' joint statements at the end (SocraSynth, section 6.3.2.2)."""


ToFindOut = Annotated[str, Field(json_schema_extra=asked("one_sentence"))]


class FollowUps(Reply):
    """Open questions of a side."""

    questions: list[ToFindOut] = Field(default=[], max_length=50, json_schema_extra=asked("to_find_out"))
    tests: list[ToFindOut] = Field(default=[], max_length=50, json_schema_extra=asked("to_test"))


class Evince(DebateProtocol):
    """EVINCE (chapter 7): debates over a closed list of labels, with distributions in every turn.

    Args:
        settings: see `EvinceSettings`.
        name: name of this configuration for users.

    Attributes:
        roles: `agent`, and `judge` if any turn is read.
    """

    name = "evince"
    Settings = EvinceSettings
    settings: EvinceSettings
    needs_labels = True
    reads_documents = True
    prompt_folders = frozenset({"evince", "crit"})
    sample = "sample-symptoms"
    judges_apart = True
    reply_tokens = MappingProxyType({"agent": 800, "judge": 1500})

    def __init__(self, settings: EvinceSettings | None = None, name: str | None = None) -> None:
        self.settings = settings if settings is not None else EvinceSettings()
        self.name = name or self.name
        self.roles = ("agent", "judge") if self.settings.judged else ("agent",)
        self.most_members = {"agent": self.settings.agents}
        self.unread_settings = self.settings.unread
        self.reads = _READS | {"documents"} if self._retrieves else _READS
        self.replies = _asked(self.settings)

    @property
    def _retrieves(self) -> bool:
        """Whether a second debate or CRIT's lower levels may read documents."""
        settings = self.settings
        return bool((settings.debates and settings.retrieve) or (settings.judged and settings.crit.max_depth))

    def effective_settings(self) -> Mapping[str, Any]:
        """Settings, with ineffective ones normalised: equal results debate alike."""
        return self.settings.effective().model_dump(mode="json")

    async def run(self, case: Case, floor: Floor) -> Verdict:
        """Debate one case.

        Notes the events `distribution` and `quality-gate` per turn, `crit` per turn that is read, `round` and
        `contentiousness` per round, `stop`, `consensus`, and, where they happen, `retrieved` and `follow-ups`. Of a
        single side there are its `distribution` and a `round` only.

        Raises:
            CaseUnfit: the case has no closed list of labels.
            QuorumFailed: fewer than two sides gave a distribution, or the only one gave none.
        """
        if case.labels is None:
            raise CaseUnfit("evince debates over a closed list of labels, and this case has none")
        if OTHER in case.labels:
            raise CaseUnfit(f"evince calls everything outside the list {OTHER!r}: rename the label of that name")
        settings = self.settings
        turn_loop = TurnLoop(case, floor, settings)
        if settings.agents == 1:
            return await answer_alone(turn_loop)
        ground = await _ground(case, floor) if settings.ground == "embedding" else None
        rounds = EvinceRounds(turn_loop, ground)
        reason = await rounds.run()
        consensus = consensus_of(turn_loop.states(), settings, seed=floor.seed)
        uncertain = consensus.uncertainty >= settings.retrieve_from
        if settings.debates and settings.retrieve and uncertain:
            turn_loop.evidence = await _retrieve(case, floor, consensus, settings.retrieve)
        if turn_loop.evidence:
            reason = await rounds.run()
            consensus = consensus_of(turn_loop.states(), settings, seed=floor.seed)
        floor.note(consensus.event())
        follow_ups = await self._follow_ups(case, floor, turn_loop, consensus)
        return _verdict(turn_loop, rounds.completed, consensus, reason, follow_ups)

    async def _follow_ups(
        self, case: Case, floor: Floor, turn_loop: TurnLoop, consensus: Consensus
    ) -> dict[str, list[str]] | None:
        """Questions and tests of all sides, each once; None if no side was asked, or all requests failed."""
        wanted = self.settings.follow_ups
        unsure = consensus.confidence is None or consensus.confidence < self.settings.unsure_below
        if wanted == "never" or (wanted == "unsure" and not unsure):
            return None
        dialled = self.settings.schedule not in ("none", "ensemble")
        slots = case_slots(case) | {
            "contentiousness": f"{_JOINT_LEVEL:.2f}" if dialled else "",
            "distribution": in_words(consensus.cleaned),
            "arguments": turn_loop.shown_arguments(),
        }
        turns = await floor.ask_all(
            [Request(name, "evince/follow_ups", slots, FollowUps, f"follow-ups/{name}") for name in turn_loop.names]
        )
        replies = [turn.reply for turn in turns if not isinstance(turn, Failure)]
        if not replies:
            turn_loop.failed += [turn.path for turn in turns]
            return None
        found = {
            "questions": _distinct(text for reply in replies for text in reply.questions),
            "tests": _distinct(text for reply in replies for text in reply.tests),
        }
        floor.note(FollowUpsNamed(**found, failed=len(turns) - len(replies), path="follow-ups"))
        return found


def _asked(settings: EvinceSettings) -> Mapping[str, tuple[type[Reply], ...]]:
    """By role family, the reply types that a debate may ask for; no rebuttals if arguments are hidden."""
    shown = (False, True) if settings.debates and settings.history == "full" else (False,)
    turns = [reply_for(answer_first=settings.answer_first, rebut=rebut) for rebut in shown]
    follow_ups = (FollowUps,) if settings.agents > 1 and settings.follow_ups != "never" else ()
    return {"agent": (*turns, *follow_ups), **({"judge": (Reading,)} if settings.judged else {})}


async def _ground(case: Case, floor: Floor) -> Floats:
    """Distances between the labels' embeddings; "(other)" has the distance of an unrelated text to each."""
    assert case.labels is not None
    texts = [f"{label} {text}" for label, text in zip(case.labels, case.choices, strict=True)] if case.choices else []
    distances = embedding_distance(await floor.embed(texts or case.labels))
    return np.pad(distances, (0, 1), constant_values=0.0) + _to_other(len(case.labels))


def _to_other(labels: int) -> Floats:
    """sqrt(2), the distance of orthogonal texts, in the last row and column, except the corner."""
    added = np.zeros((labels + 1, labels + 1))
    added[-1, :-1] = added[:-1, -1] = np.sqrt(2.0)
    return added


async def _retrieve(case: Case, floor: Floor, consensus: Consensus, n: int) -> tuple[str, ...]:
    """The case's documents and the library's passages nearest to the case and its most probable labels (maxim 4.4).

    Notes `retrieved`, unless nothing is found.
    """
    likely = [label_in_words(case, label) for label in consensus.cleaned.named() if label != OTHER]
    query = "\n".join(part for part in (case.question, case.passage, ", ".join(likely)) if part)
    nearest = await nearest_texts(query, case.documents, floor, n)
    if nearest.texts:
        h, doubt = consensus.entropy, consensus.uncertainty
        floor.note(EvidenceRetrieved(**nearest.record(), entropy=h, uncertainty=doubt, path="retrieved"))
    return nearest.texts


def _distinct(texts: Iterable[str]) -> list[str]:
    return list({fold(text): text.strip() for text in reversed(list(texts)) if fold(text)}.values())[::-1]


def _flags(turn_loop: TurnLoop, completed: Sequence[RoundResult], consensus: Consensus) -> tuple[str, ...]:
    judged = turn_loop.settings.judged
    found = {
        "turn-failed": any(path.startswith("round/") for path in turn_loop.failed),
        "swapped": any(each.shift is not None and each.shift.swapped for each in completed),
        "argument-withheld": any(not side_state.passed for side_state in turn_loop.turns),
        "judges-missing": judged and any(side_state.crit is None for side_state in turn_loop.states()),
        "distribution-mended": any(side_state.cleaned.changes for side_state in turn_loop.turns),
        "other-leads": consensus.answer is None,
        "follow-ups-failed": any(path.startswith("follow-ups/") for path in turn_loop.failed),
        "retrieved": bool(turn_loop.evidence),
    }
    return tuple(name for name, holds in found.items() if holds)


def _converged(completed: Sequence[RoundResult], settings: EvinceSettings) -> bool | None:
    """Whether the sides had converged in the end; False of an ensemble, None where the last round cannot show it."""
    last = completed[-1]
    if last.comparable:
        return last.rest(settings.epsilon, settings.tau) == "converged"
    return None if settings.debates else False


def _verdict(
    turn_loop: TurnLoop,
    completed: Sequence[RoundResult],
    consensus: Consensus,
    reason: Reason,
    follow_ups: dict[str, list[str]] | None,
) -> Verdict:
    settings, side_states = turn_loop.settings, turn_loop.states()
    crit = {side_state.name: side_state.crit for side_state in side_states}
    known = [score for score in crit.values() if score is not None]
    payload = ConsensusPayload(
        distribution_from="consensus",
        weights=consensus.weights,
        weights_from=consensus.weights_from,
        crit=crit,
        crit_mean=fmean(known) if known and len(known) == len(crit) else None,
        entropy=consensus.entropy,
        uncertainty=consensus.uncertainty,
        mixture_entropy_first=completed[0].numbers.mixture_entropy,
        mixture_entropy_last=completed[-1].numbers.mixture_entropy,
        jsd=completed[-1].numbers.jsd,
        converged=_converged(completed, settings),
        distributions={side_state.name: side_state.cleaned.named() for side_state in side_states},
        arguments={side_state.name: list(side_state.arguments) for side_state in side_states},
        follow_ups=follow_ups,
    )
    return Verdict(
        answer=consensus.answer,
        how=reason,
        confidence=consensus.confidence,
        distribution=consensus.distribution(),
        rounds=completed[-1].number,
        flags=_flags(turn_loop, completed, consensus),
        payload=payload.model_dump(),
    )
