"""The evidence R_q of a case and its K perturbed variants (SELENE section 3.4)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

import msgspec
from pydantic import Field

from moot.protocols.case import Case
from moot.protocols.chunk_retrieval import nearest_chunks
from moot.protocols.floor import Floor, Request
from moot.protocols.long_texts import is_long
from moot.protocols.messages import Failure
from moot.protocols.replies import Reply
from moot.protocols.reply_limits import longest, most
from moot.protocols.seeds import seeded
from moot.protocols.selene.agent_state import AgentState
from moot.protocols.selene.events import EvidenceRetrieved, RetrievedPiece
from moot.protocols.text.folding import fold
from moot.protocols.text.sentences import split_sentences

_MOST_DRAWS = 20
"""Most draws of a sample that is to differ from the earlier ones."""

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
        source: `passage`, `documents` or both, or `rationales` if the case has neither and the agents' statements are
            used.
    """

    sentences: tuple[str, ...]
    source: Literal["passage", "documents", "passage and documents", "rationales"]


@dataclass(frozen=True, slots=True)
class Variants:
    """K perturbed evidence sets, shared by all candidates of a case.

    Attributes:
        sets: the created sets, each different from the others and from the evidence; the unchanged evidence if there
            are none.
        kind: how they were made; `none` for the unchanged evidence.
        failed: number of failed paraphrases, which are left out.
        repeated: number of sets that were left out because they say what the evidence or an earlier set says.
        unperturbed: whether perturbed evidence was requested and none was made: a single sentence has no subset, or
            every paraphrase failed or repeated the evidence.
    """

    sets: tuple[tuple[str, ...], ...]
    kind: Literal["subset", "paraphrase", "none"]
    failed: int = 0
    repeated: int = 0
    unperturbed: bool = False


async def with_retrieved(case: Case, floor: Floor, n: int) -> Case:
    """The case as it is debated: its documents are the `n` chunks, of them and of the run's library, that are nearest
    to its question and choices, nearest first. Notes `retrieved`, unless nothing is found.
    """
    query = "\n".join((case.question, *case.choices))
    chunks = await nearest_chunks(query, case, floor, n=n, least_similarity=0.0, with_passage=False) if n else []
    if chunks:
        pieces = [RetrievedPiece.model_validate(chunk, from_attributes=True) for chunk in chunks]
        floor.note(EvidenceRetrieved(pieces=pieces, path="retrieval"))
    return msgspec.structs.replace(case, documents=tuple(chunk.text for chunk in chunks))


async def evidence_of(case: Case, floor: Floor, agent_states: Sequence[AgentState]) -> Evidence:
    """The passage in sentences and the retrieved chunks; without either, the statements of the agents' last replies,
    each once.

    Args:
        case: as `with_retrieved` gives it.
    """
    if case.passage.strip():
        long = is_long(case.passage)
        passage = await floor.compute(split_sentences, case.passage) if long else split_sentences(case.passage)
        return Evidence((*passage, *case.documents), "passage and documents" if case.documents else "passage")
    if case.documents:
        return Evidence(case.documents, "documents")
    unique: dict[str, str] = {}
    for state in agent_states:
        for sentence in split_sentences(state.reasoning):
            unique.setdefault(fold(sentence), sentence)
    return Evidence(tuple(unique.values()), "rationales")


def subset_variants(sentences: Sequence[str], k: int, seed: int) -> tuple[tuple[str, ...], ...]:
    """K seeded samples of at least half of the sentences, in shuffled order.

    At least one sentence is left out if half of them allows it, so that each sample is perturbed. A sample is drawn
    again while it repeats an earlier one; few sentences have fewer than K samples, and then some repeat.
    """
    half = math.ceil(len(sentences) / 2)
    most = max(half, len(sentences) - 1)
    sets: list[tuple[str, ...]] = []
    for variant in range(k):
        chance = seeded(seed, f"evidence/{variant}")
        for _ in range(_MOST_DRAWS):
            drawn = tuple(chance.sample(list(sentences), chance.randint(half, most)))
            if drawn not in sets:
                break
        sets.append(drawn)
    return tuple(sets)


async def paraphrase_variants(floor: Floor, sentences: Sequence[str], k: int, path: str) -> tuple[tuple[str, ...], ...]:
    """K paraphrases by a judge model, paths `PATH/paraphrase/K`; a failed one is left out.

    Each is asked for in a manner of its own: at temperature 0 a judge would answer equal asks alike. Pieces without
    words do not count. A paraphrase with fewer than half of the pieces lost evidence and has failed. Its tokens count
    as those of any request.
    """
    requests = [
        Request(
            "judge/0",
            "selene/paraphrase",
            {"evidence": list(sentences), "version": variant + 1, "versions": k},
            Paraphrase,
            f"{path}/paraphrase/{variant}",
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


@dataclass(slots=True)
class CaseVariants:
    """The variants of a case's evidence, made once for equal evidence: an audit of the judging pays for no paraphrase
    that the judging has.

    Args:
        floor: of the case.
        k, kind: as in `perturb`.
    """

    floor: Floor
    k: int
    kind: Literal["subset", "paraphrase"]
    _made: dict[Evidence, Variants] = field(default_factory=dict)

    async def of(self, evidence: Evidence, path: str = "evidence") -> Variants:
        """Variants of the evidence; paths begin with `path` where they are paraphrased anew."""
        if evidence not in self._made:
            self._made[evidence] = await perturb(self.floor, evidence, self.k, self.kind, path=path)
        return self._made[evidence]


async def perturb(
    floor: Floor, evidence: Evidence, k: int, kind: Literal["subset", "paraphrase"], *, path: str = "evidence"
) -> Variants:
    """At most K different variants of the evidence; the unchanged evidence if there are none.

    A set that repeats the evidence or another set measures no perturbation, and is left out.
    """
    if not evidence.sentences:
        return Variants(((),), "none", unperturbed=True)
    if kind == "paraphrase":
        made = await paraphrase_variants(floor, evidence.sentences, k, path)
    elif is_long(evidence.sentences):
        made = await floor.compute(subset_variants, evidence.sentences, k, floor.seed)
    else:
        made = subset_variants(evidence.sentences, k, floor.seed)
    failed = k - len(made)
    sets = _distinct(made, evidence.sentences)
    if not sets:
        return Variants((evidence.sentences,), "none", failed, repeated=len(made), unperturbed=True)
    return Variants(sets, kind, failed, repeated=len(made) - len(sets))


def _distinct(sets: Sequence[tuple[str, ...]], original: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """The sets that differ from the original and from those before them, in more than case and punctuation."""
    known = {_folded(original)}
    kept = []
    for each in sets:
        if (folded := _folded(each)) not in known:
            known.add(folded)
            kept.append(each)
    return tuple(kept)


def _folded(sentences: Sequence[str]) -> tuple[str, ...]:
    return tuple(map(fold, sentences))
