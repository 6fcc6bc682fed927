"""The evidence R_q of a case and its K perturbed variants (SELENE section 3.4)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from moot.protocols.case import Case
from moot.protocols.floor import Floor, Request
from moot.protocols.long_texts import is_long
from moot.protocols.messages import Failure
from moot.protocols.replies import Reply
from moot.protocols.reply_limits import longest, most
from moot.protocols.seeds import seeded
from moot.protocols.selene.agent_state import AgentState
from moot.protocols.text.folding import fold
from moot.protocols.text.sentences import split_sentences

Piece = Annotated[str, Field(json_schema_extra=longest(600))]


class Paraphrase(Reply):
    """The evidence in other words, one string per piece."""

    length_follows_input: ClassVar[bool] = True

    sentences: list[Piece] = Field(min_length=1, json_schema_extra=most(60, "evidence"))


@dataclass(frozen=True, slots=True)
class Evidence:
    """Evidence for judging a case.

    Attributes:
        sentences: the pieces, in order.
        source: `passage`, or `rationales` if the case has none and the agents' statements are used.
    """

    sentences: tuple[str, ...]
    source: Literal["passage", "rationales"]


@dataclass(frozen=True, slots=True)
class Variants:
    """K perturbed evidence sets, shared by all candidates of a case.

    Attributes:
        sets: the created sets; the unchanged evidence if there are none.
        kind: how they were made; `none` for the unchanged evidence.
        failed: number of failed paraphrases, which are left out.
        unperturbed: whether perturbed evidence was requested and every set is the unchanged evidence: a single
            sentence has no subset, or every paraphrase failed.
    """

    sets: tuple[tuple[str, ...], ...]
    kind: Literal["subset", "paraphrase", "none"]
    failed: int = 0
    unperturbed: bool = False


async def evidence_of(case: Case, floor: Floor, agent_states: Sequence[AgentState]) -> Evidence:
    """The passage in sentences; without one, the statements of the agents' last replies, each once."""
    if case.passage.strip():
        if is_long(case.passage):
            return Evidence(tuple(await floor.compute(split_sentences, case.passage)), "passage")
        return Evidence(tuple(split_sentences(case.passage)), "passage")
    unique: dict[str, str] = {}
    for state in agent_states:
        for sentence in split_sentences(state.reasoning):
            unique.setdefault(fold(sentence), sentence)
    return Evidence(tuple(unique.values()), "rationales")


def subset_variants(sentences: Sequence[str], k: int, seed: int) -> tuple[tuple[str, ...], ...]:
    """K seeded samples of at least half of the sentences, in shuffled order.

    At least one sentence is left out if half of them allows it, so that each sample is perturbed.
    """
    half = math.ceil(len(sentences) / 2)
    most = max(half, len(sentences) - 1)
    sets: list[tuple[str, ...]] = []
    for variant in range(k):
        chance = seeded(seed, f"evidence/{variant}")
        sets.append(tuple(chance.sample(list(sentences), chance.randint(half, most))))
    return tuple(sets)


async def paraphrase_variants(floor: Floor, sentences: Sequence[str], k: int) -> tuple[tuple[str, ...], ...]:
    """K paraphrases by a judge model, paths `evidence/paraphrase/K`; a failed one is left out.

    Pieces without words do not count. A paraphrase with fewer than half of the pieces lost evidence and has failed.
    Its tokens count as those of any request.
    """
    requests = [
        Request(
            "judge/0",
            "selene/paraphrase",
            {"evidence": list(sentences)},
            Paraphrase,
            f"evidence/paraphrase/{variant}",
            sample=variant,
        )
        for variant in range(k)
    ]
    turns = await floor.ask_all(requests)
    rewritten = (
        tuple(piece.strip() for piece in turn.reply.sentences if fold(piece))
        for turn in turns
        if not isinstance(turn, Failure)
    )
    return tuple(pieces for pieces in rewritten if len(pieces) >= math.ceil(len(sentences) / 2))


async def perturb(floor: Floor, evidence: Evidence, k: int, kind: Literal["subset", "paraphrase"]) -> Variants:
    """K variants of the evidence; the unchanged evidence if there is none or every paraphrase failed."""
    if not evidence.sentences:
        return Variants(((),), "none", unperturbed=True)
    if kind == "paraphrase":
        sets = await paraphrase_variants(floor, evidence.sentences, k)
    elif is_long(evidence.sentences):
        sets = await floor.compute(subset_variants, evidence.sentences, k, floor.seed)
    else:
        sets = subset_variants(evidence.sentences, k, floor.seed)
    if not sets:
        return Variants((evidence.sentences,), "none", failed=k, unperturbed=True)
    return Variants(sets, kind, failed=k - len(sets), unperturbed=all(each == evidence.sentences for each in sets))
