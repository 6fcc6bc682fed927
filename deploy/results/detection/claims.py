"""Claims of a run, from its record: gold label, answer, judges' bare verdict, probabilities and stances."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from moot.actors.classifiers.card import read_card
from moot.actors.record.referenced_files import CLASSIFIER_CARD
from moot.actors.record.schema import CaseKey
from moot.deploy.results.record.readers import decode_json
from moot.deploy.results.record.rows import VerdictRow
from moot.deploy.results.record.run_record import RunRecord
from moot.protocols.ceda.events import ClaimPayload
from moot.protocols.ceda.stance import Stance
from moot.protocols.claims import CLAIM_LABELS, HALLUCINATED, SUPPORTED, text_hash


@dataclass(frozen=True, slots=True)
class Claim:
    """Claim with its outcome.

    Attributes:
        case_id: the case's id.
        gold: `supported` or `hallucinated`; None when the file has no label.
        group: the group of dependent claims; the case's id for an independent claim.
        tags: tags of the claim's reference.
        state: `open` and `withdrawn` are without a verdict.
        answer: the verdict's label; None for an abstention, and without a verdict.
        judged: whether the verdict contains the judges' bare verdict.
        bare: the judges' bare verdict as a label; None for a tie, or without a usable judgment.
        p_classifier, p_judges: probability that the claim is hallucinated, in [0, 1]; None when unknown.
        trained_on: `claim` when the run's classifier was trained on this claim, in any spelling; `group` when it was
            trained on another claim of its group; None for neither, and without a classifier.
        stances: stances of the debaters' first messages on the claim, by debater; the second debater has read the
            first's message. None when unknown.
        wall_s: seconds from the debate's start to its verdict; None when unknown.
        tokens: tokens of the debate, without measurement-only calls; None when unknown.
    """

    case_id: str
    gold: str | None
    group: str
    tags: Mapping[str, str] = field(default_factory=dict)
    state: Literal["open", "withdrawn", "failed", "finished"] = "finished"
    answer: str | None = None
    judged: bool = False
    bare: str | None = None
    p_classifier: float | None = None
    p_judges: float | None = None
    trained_on: Literal["claim", "group"] | None = None
    stances: Mapping[str, Stance | None] = field(default_factory=dict)
    wall_s: float | None = None
    tokens: int | None = None

    @property
    def is_hallucinated(self) -> float | None:
        """Class index of the gold label: 1 for hallucinated, 0 for supported; None when it is unknown."""
        return class_of(self.gold)


def class_of(label: str | None) -> float | None:
    """Class index of a claim's label, its index in `CLAIM_LABELS`; None for any other text.

    >>> class_of("supported"), class_of("hallucinated"), class_of(None)
    (0.0, 1.0, None)
    """
    return float(CLAIM_LABELS.index(label)) if label in CLAIM_LABELS else None


def read_claims(record: RunRecord, tokens: Mapping[CaseKey, int | None] | None = None) -> list[Claim]:
    """Claims among a run's cases, in the order of the task's file; empty for other tasks.

    Args:
        record: the run's record.
        tokens: tokens by debate, as far as they are known.

    Raises:
        RecordError: the record cannot be read.
        ConfigError: the copy of the classifier's card was changed.
    """
    rows = _cases_of_claims(record.cases)
    if not rows:
        return []
    latest, references = record.by_case, record.references
    columns = (record.verdict_table[name].to_pylist() for name in ("case_id", "attempt", "payload", "wall_s"))
    stated = {(case_id, attempt): (payload, wall_s) for case_id, attempt, payload, wall_s in zip(*columns, strict=True)}
    groups = trained_groups(record.folder) or frozenset()
    found = []
    for row in sorted(rows, key=lambda row: (row["index"], row["case_id"])):
        reference = references[row["case_id"]]
        given = {
            "case_id": row["case_id"],
            "gold": row["gold"] if row["gold"] in CLAIM_LABELS else None,
            "group": references.group(row["case_id"]),
            "tags": reference.tags,
        }
        verdict = latest.get(row["case_id"])
        if verdict is None or verdict.failed:
            found.append(Claim(**given, state="failed" if verdict else record.without_verdict(row["case_id"])))
        else:
            payload, wall_s = stated[verdict.key]
            outcome = _outcome(verdict, data := decode_json(payload))
            known = training_data(data, reference.group, groups)
            used = (tokens or {}).get(verdict.key)
            found.append(Claim(**given, **outcome, trained_on=known, wall_s=wall_s, tokens=used))
    return found


def _cases_of_claims(cases: pa.Table) -> list[dict[str, Any]]:
    """Rows of the cases whose labels are those of claims."""
    labels = cases["labels"]
    cases = cases.filter(pc.fill_null(pc.equal(pc.list_value_length(labels), len(CLAIM_LABELS)), False))
    cases = cases.filter(pc.fill_null(pc.equal(pc.list_element(cases["labels"], 0), CLAIM_LABELS[0]), False))
    rows = cases.select(["case_id", "index", "labels", "gold"]).to_pylist()
    return [row for row in rows if tuple(row["labels"]) == CLAIM_LABELS]


def ids_trained_on(claims: Iterable[Claim]) -> frozenset[str]:
    """Ids of the claims excluded from every score of a run: its classifier was trained on them or on their groups.

    Empty for a run without a classifier, and for other tasks.
    """
    return frozenset(claim.case_id for claim in claims if claim.trained_on)


def trained_groups(folder: str | Path) -> frozenset[str] | None:
    """Hashes of the groups in the training data of a run's classifier; None for a run without a classifier.

    Raises:
        ConfigError: the copy of the classifier's card was changed.
    """
    run = Path(folder)
    return frozenset(read_card(run).trained_on_groups) if (run / CLASSIFIER_CARD).is_file() else None


def training_data(payload: Mapping[str, Any], group: str, groups: frozenset[str]) -> Literal["claim", "group"] | None:
    """Overlap of a claim with the training data of its classifier; see `Claim.trained_on`.

    Args:
        payload: payload of the claim's verdict.
        group: group of the claim; empty for an independent claim.
        groups: hashes of the groups in the training data, see `trained_groups`.
    """
    reading = (ClaimPayload.read(payload) or ClaimPayload()).classifier
    if reading is None:
        return None
    return "claim" if reading.trained_on else "group" if group and text_hash(group) in groups else None


def _outcome(verdict: VerdictRow, payload: Mapping[str, Any]) -> dict[str, Any]:
    claim = ClaimPayload.read(payload) or ClaimPayload()
    return {
        "answer": verdict.answer if verdict.answer in CLAIM_LABELS else None,
        "judged": "verdict" in claim.model_fields_set,
        "bare": None if claim.verdict is None else (SUPPORTED if claim.verdict == 1 else HALLUCINATED),
        "p_classifier": claim.classifier and claim.classifier.p_hallucinated,
        "p_judges": claim.p_judges,
        "stances": claim.first_stances,
    }
