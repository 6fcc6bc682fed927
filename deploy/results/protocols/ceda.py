"""CEDA in results: its events and payload in words, and the claims, stances and evidence of a run."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from moot.deploy.results.figures.accuracy import share
from moot.deploy.results.figures.claim_blocks import detection_blocks
from moot.deploy.results.figures.claims import BINS, Claim, SourceCalibration, counted_claims, read_claims, trained_on
from moot.deploy.results.figures.summary import record_summary
from moot.deploy.results.protocol_parts import KnownEvent, Position, ProtocolParts, Stage
from moot.deploy.results.record import RunRecord
from moot.deploy.results.recorded_data import EventView, titled_blocks
from moot.deploy.results.report.blocks import Block, Chart, Heading, Note, Series, Table
from moot.deploy.results.stats import mean_over_cases
from moot.deploy.results.text import cases, count, natural_sort_key, number
from moot.metrics.calibration_error import dependence_inflation, reliability_null_bands
from moot.protocols.ceda.events import (
    CheckPayload,
    EvidenceGathered,
    JudgeRuling,
    RulingGiven,
    StanceTaken,
    StateAdvanced,
)
from moot.protocols.ceda.items import Item
from moot.protocols.ceda.stance import Stance
from moot.protocols.ceda.synthesis import EvidenceSynthesis
from moot.protocols.claims import CLAIM_LABELS, SUPPORTED

VERDICTS: Mapping[int | None, str] = {1: "supported", 0: "hallucinated", None: "undecided"}
"""Texts for a judge's verdict."""


def _evidence(event: EventView, data: EvidenceGathered) -> list[Block]:
    if not data.items:
        return titled_blocks("no evidence")
    readers = {item.id: [name for name, ids in data.shown_to.items() if item.id in ids] for item in data.items}
    rows = [
        (item.id, item.source, similarity_words(item), ", ".join(readers[item.id]) or "judges") for item in data.items
    ]
    lines = [f"{item.id}: {item.text}" for item in data.items]
    lines += [
        f"{' and '.join(each.between)} seem to contradict each other ({each.why}): {each.detail}"
        for each in data.conflicts
    ]
    lines += _synthesis_lines(data.synthesis)
    lines += [f"picture {picture + 1} could not be described" for picture in data.missing_pictures]
    return titled_blocks("evidence", ("", "place", "similarity", "shown to"), rows, lines)


def _synthesis_lines(synthesis: EvidenceSynthesis | None) -> list[str]:
    if synthesis is None:
        return []
    lines = [f"{', '.join(each.sources)} summarised: {each.text}" for each in synthesis.statements]
    lines += [f"not in the cited item, and not used: {synthesis.unfounded}"] if synthesis.unfounded else []
    return lines + ([f"the context agent is missing: {synthesis.missing}"] if synthesis.missing else [])


def _stance(event: EventView, data: StanceTaken) -> list[Block]:
    words = stance_words(data.says, data.of, data.stance)
    if data.stated and data.implied and data.stance != data.implied:
        words += f" (its {data.says} alone would mean: {data.implied})"
    return titled_blocks(f"{data.debater} {words}" + ("; both agree" if data.consensus else ""))


def stance_words(says: Literal["AGREE", "DENY"] | None, of: Literal["claim", "message"], stance: Stance | None) -> str:
    """Text of a stance: AGREE or DENY, its target, and the resulting stance on the claim.

    >>> stance_words("DENY", "message", "denies"), stance_words(None, "claim", None)
    ('says DENY to the message before: denies the claim', 'says neither AGREE nor DENY to the claim: stance unknown')
    """
    target = "the claim" if of == "claim" else "the message before"
    result = f"{stance} the claim" if stance else "stance unknown"
    return f"says {says or 'neither AGREE nor DENY'} to {target}: {result}"


def similarity_words(item: Item) -> str:
    """Text of an evidence item's similarity to the claim; a picture has none, because it is not retrieved."""
    return "-" if item.kind == "picture" else number(item.similarity, 2)


def _ruling(event: EventView, data: RulingGiven) -> list[Block]:
    rows = [(each.judge, ruling_words(each), number(each.confidence, 2)) for each in data.judges]
    lines = []
    if data.classifier is not None:
        trained = "; it was trained on this claim" if data.classifier.trained_on else ""
        lines = [f"the classifier: hallucinated with probability {number(data.classifier.p_hallucinated)}{trained}"]
    return titled_blocks(f"the judges: {VERDICTS[data.verdict]}", ("judge", "verdict", "confidence"), rows, lines)


def ruling_words(ruling: JudgeRuling) -> str:
    """Text of a judge's ruling, or the reason why it is missing."""
    return f"missing: {ruling.missing}" if ruling.missing else VERDICTS[ruling.verdict]


def check_pairs(payload: Mapping[str, Any]) -> list[tuple[str, str]] | None:
    """Pairs of name and text of a payload on a claim, without its events; None for any other payload."""
    check = CheckPayload.read(payload)
    if check is None:
        return None
    pairs = [("label from", f"the {check.source}" if check.source else "nobody")]
    if check.source == "classifier":
        pairs.append(("judges alone", VERDICTS[check.verdict]))
    return [*pairs, ("p_hallucinated", number(check.p_hallucinated))]


def _state(event: EventView, data: StateAdvanced) -> list[Block]:
    return titled_blocks(
        f"version {data.version} ({data.stage}), by {data.by}: {', '.join(data.added) or 'nothing new'}"
    )


MOST_LISTED, MOST_RANKS, MOST_DOCUMENTS = 100, 10, 15
"""Items of evidence that are listed, places in the ranking that are drawn, and documents that are."""

_LEFT_OPEN = "left open"
_STANCES: Mapping[Stance | None, str] = {"supports": "supports", "denies": "denies", None: "not clear"}
_LONGEST_TEXT = 160


def ceda(run: RunRecord) -> Iterator[Block]:
    """Claims that were checked; nothing for a run over anything else."""
    gathered = [(row.case_id, each) for row, each in run.counted_events(EvidenceGathered)]
    stances = [(row.case_id, each) for row, each in run.counted_events(StanceTaken)]
    claims = counted_claims(read_claims(run))
    if not gathered and not stances and not claims:
        return
    yield Heading("Claims and their evidence")
    detection = record_summary(run).detection
    if claims:
        yield _confusion(claims)
    yield from (
        _reliability(found, claims)
        for found in (() if detection is None else detection.calibration)
        if found.calibration_null is not None
    )
    if stances:
        yield _stances_by_turn(stances)
        yield from _right_by_turn(run, stances)
    if gathered:
        yield from _evidence_charts(run, gathered)
    if claims and detection is not None:
        yield Heading("How well claims are classified", 3)
        yield from detection_blocks(detection)


def _confusion(claims: Sequence[Claim]) -> Table:
    """The confusion matrix: a row for each gold label, a column for each answer."""
    counts = Counter((claim.gold, claim.answer or _LEFT_OPEN) for claim in claims)
    answers = (*CLAIM_LABELS, _LEFT_OPEN)
    rows = [(f"is {gold}", *(count(counts[gold, answer]) for answer in answers)) for gold in CLAIM_LABELS]
    header = ("gold label", *(f"called {answer}" for answer in CLAIM_LABELS), _LEFT_OPEN)
    return Table(f"Confusion matrix of {cases(len(claims))}: what claims are, and what they were called", header, rows)


def _reliability(found: SourceCalibration, claims: Sequence[Claim]) -> Chart:
    stated = [(claim, claim.p_classifier if found.source == "classifier" else claim.p_judges) for claim in claims]
    known = [(p, claim.is_hallucinated, claim.group) for claim, p in stated if p is not None]
    p, truth, groups = zip(*known, strict=True)
    bands = reliability_null_bands(p, bins=BINS, inflation=dependence_inflation(p, truth, groups))
    x, low, high = [each.p_hallucinated for each in found.bins], [b.low for b in bands], [b.high for b in bands]
    return Chart(
        f"claims-reliability-{found.source}",
        f"Reliability: of the claims that the {found.source} gave a probability of being hallucinated, how many are?",
        [
            Series("if calibrated (95 %)", x, low=low, high=high, mark="band", style=4),
            Series("calibrated", [0.0, 1.0], [0.0, 1.0], mark="line", style=4),
            Series("measured", x, [each.hallucinated for each in found.bins], style=0),
        ],
        x_label="stated probability, mean of the bin",
        y_label="share hallucinated",
        x_range=(0.0, 1.0),
        y_range=(0.0, 1.0),
        note="Points on the diagonal are calibrated; above it, claims are hallucinated more often than stated. A "
        f"calibrated source would fall into the band 95 % of the time. n = {count(found.n)}.",
    )


def _stances_by_turn(stances: Sequence[tuple[str, StanceTaken]]) -> Chart:
    counts = Counter((each.turn, each.stance) for _, each in stances)
    turns = sorted({turn for turn, _ in counts})
    words = [str(turn) for turn in turns]
    by_stance = {words: [float(counts[turn, stance]) for turn in turns] for stance, words in _STANCES.items()}
    return Chart(
        "stances",
        "Where debaters stand on the claim, message by message",
        [Series(name, words, values, mark="bars") for name, values in by_stance.items() if any(values)],
        x_label="message",
        y_label="debates",
        note="The first message answers the claim, each later one the message before. A debate ends when both sides "
        "hold the same, so later messages are of the debates that were still open.",
    )


def _right_by_turn(run: RunRecord, stances: Sequence[tuple[str, StanceTaken]]) -> Iterator[Chart]:
    """Share of stances that fit the gold label, by message; nothing without gold labels."""
    right: dict[int, list[tuple[str, bool]]] = defaultdict(list)
    for case_id, each in stances:
        verdict = run.by_case.get(case_id)
        if case_id in trained_on(run):
            continue
        if verdict is not None and verdict.gold in CLAIM_LABELS and each.stance is not None:
            right[each.turn].append((case_id, (each.stance == "supports") == (verdict.gold == SUPPORTED)))
    shares = {turn: share(right[turn], run.references.group) for turn in sorted(right)}
    known = {
        str(turn): (value, ends or (None, None), n) for turn, (value, ends, n) in shares.items() if value is not None
    }
    if known:
        counts = ", ".join(count(n) for _, _, n in known.values())
        yield Chart(
            "stances-right",
            "How often the stance is right, message by message",
            [
                Series(
                    "right",
                    list(known),
                    [value for value, _, _ in known.values()],
                    low=[ends[0] for _, ends, _ in known.values()],
                    high=[ends[1] for _, ends, _ in known.values()],
                )
            ],
            x_label="message",
            y_label="share right",
            y_range=(0.0, 1.0),
            note=f"Of messages with a known stance on claims with a gold label ({counts}); bars are 95 % intervals, "
            "which claims of one text do not have. "
            "Later messages are of debates in which the sides did not agree at once, and so of harder claims.",
        )


def _evidence_charts(run: RunRecord, gathered: Sequence[tuple[str, EvidenceGathered]]) -> Iterator[Block]:
    at_odds = sum(bool(each.conflicts) for _, each in gathered)
    without = sum(not each.items for _, each in gathered)
    items = [(case_id, item) for case_id, each in gathered for item in each.items]
    sentence = f"{count(len(items))} items of evidence for {cases(len(gathered))}"
    sentence += f"; none for {count(without)}" if without else ""
    yield Note(f"{sentence}. Items seem to be at odds with each other in {cases(at_odds)}.")
    yield from _similarity(run, items)
    yield from _documents(items)
    if items:
        yield _places(gathered, len(items))


def _similarity(run: RunRecord, items: Sequence[tuple[str, Item]]) -> Iterator[Chart]:
    by_rank: dict[str, list[tuple[str, float | None]]] = defaultdict(list)
    for case_id, item in items:
        if item.similarity is not None:
            by_rank[item.id].append((case_id, item.similarity))
    ranks = sorted(by_rank, key=lambda name: natural_sort_key(name.removeprefix("E")))[:MOST_RANKS]
    if ranks:
        means = [mean_over_cases(by_rank[rank], run.references.group) for rank in ranks]
        low, high = [each.low for each in means], [each.high for each in means]
        yield Chart(
            "evidence-similarity",
            "How near the evidence is to its claim, by place in the ranking",
            [Series("cosine similarity", ranks, [each.mean for each in means], low=low, high=high, mark="line")],
            x_label="item",
            y_label="cosine with the claim",
            note="Means over claims with such an item, with 95 % intervals over groups of claims, where there are ten "
            "or more. Low values from E1 on say that the texts hold little about the claims.",
        )


def _documents(items: Sequence[tuple[str, Item]]) -> Iterator[Chart]:
    """Documents of the evidence; empty where every claim has its own passage."""
    named = dict.fromkeys((case_id, item.document or item.kind) for case_id, item in items)
    claims = Counter(name for _, name in named)  # of equal counts the first named comes first
    if len(claims) > 1:
        most = claims.most_common(MOST_DOCUMENTS)
        shown = f" (the {MOST_DOCUMENTS} most used of {len(claims):,})" if len(claims) > MOST_DOCUMENTS else ""
        yield Chart(
            "evidence-documents",
            f"Which documents the evidence comes from{shown}",
            [Series("claims", [name for name, _ in most], [float(n) for _, n in most], mark="bars")],
            x_label="document",
            y_label="claims",
        )


def _places(gathered: Sequence[tuple[str, EvidenceGathered]], total: int) -> Table:
    rows: list[tuple[str, ...]] = []
    for case_id, each in gathered:
        for item in each.items:
            readers = ", ".join(name for name, ids in each.shown_to.items() if item.id in ids) or "judges"
            rows.append((case_id, item.id, item.source, similarity_words(item), readers, _beginning(item.text)))
        if len(rows) >= MOST_LISTED:
            break
    shown = f"the first {MOST_LISTED} of {total:,} items" if total > MOST_LISTED else f"{total:,} items"
    header = ("case", "", "place", "similarity", "shown to", "text")
    return Table(f"Evidence with its place: {shown}", header, rows[:MOST_LISTED], folded=True, case_column=0)


def _beginning(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_TEXT else f"{line[:_LONGEST_TEXT].rstrip()} …"


PARTS = ProtocolParts(
    events=(
        KnownEvent(EvidenceGathered, _evidence),
        KnownEvent(StanceTaken, _stance, position=lambda taken: Position(taken.stance, None)),
        KnownEvent(RulingGiven, _ruling),
        KnownEvent(StateAdvanced, _state),
    ),
    stages=(
        Stage("preparation", re.compile(r"vision/"), "Reading the pictures"),
        Stage("preparation", re.compile(r"evidence$"), "Evidence"),
        Stage("debate", re.compile(r"turn/(\d+)(/|$)"), "Message {}"),
        Stage("after", re.compile(r"state/\d+$"), "State, version by version"),
    ),
    payload=check_pairs,
    report=ceda,
)
