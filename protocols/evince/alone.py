"""One side without a debate: the baseline that a pair is held against."""

from __future__ import annotations

from typing import Any

from moot.metrics.divergence import entropy
from moot.protocols.evince.consensus import consensus_of
from moot.protocols.evince.talk import Talk
from moot.protocols.messages import Event, Verdict


async def say_alone(talk: Talk) -> Verdict:
    """The distribution of the only side as the verdict.

    Notes a `round` with what is known of one side: there is nothing to be apart from, and nobody judges.

    Raises:
        QuorumFailed: no distribution came.
    """
    await talk.open_together()
    (standing,) = talk.standings()
    alone = consensus_of([standing], top_k=talk.settings.top_k, seed=talk.floor.seed)
    data: dict[str, Any] = {
        "round": 0,
        "order": talk.order,
        "distributions": {standing.name: standing.cleaned.named()},
        "entropy": {standing.name: float(entropy(standing.cleaned.probabilities))},
    }
    talk.floor.note(Event("round", "round/0", data))
    payload: dict[str, Any] = {
        "distribution_from": "consensus",
        "entropy": alone.entropy,
        "uncertainty": alone.uncertainty,
        "distributions": {standing.name: standing.cleaned.named()},
        "arguments": {standing.name: list(standing.arguments)},
    }
    found = {"distribution-mended": bool(standing.cleaned.changes), "other-leads": alone.answer is None}
    return Verdict(
        answer=alone.answer,
        how="alone",
        confidence=alone.confidence,
        distribution=alone.distribution(),
        rounds=0,
        flags=tuple(name for name, holds in found.items() if holds),
        payload=payload,
    )
