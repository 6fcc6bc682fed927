"""No gold label ever crosses into a message; and, of the same runs, what a panel of judges is sent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
import short_protocols
from many_settings import SETTINGS, EveryProtocol, ManySettings, key_of, made_cases, other_cases, roles_of_all
from openai_server import ScriptedServer
from small_runs import FinishedRun, run_debates, same_model_roles, stable_rows

from moot.actors.debate.moderator import Assignment
from moot.actors.record.recovery import History
from moot.actors.remote.envelopes import AskEnvelope, CancelEnvelope, ReplyEnvelope
from moot.protocols.case import Case, Criterion, LabelledCase, Reference
from moot.protocols.messages import Ask, AskResult

TABLES = ("turns", "tokens", "judgments", "events", "embeddings")


def _cases() -> list[LabelledCase]:
    return [case for i, name in enumerate(SETTINGS) for case in made_cases(2, name, start=2 * i)]


def _scored(labelled: LabelledCase, number: int) -> LabelledCase:
    """The case with a right answer in a reference, of either scoring."""
    scored = number % 2 == 0
    reference = Reference(
        scoring="score" if scored else "short answer",
        accepted=("Yes", "No") if number % 3 else ("No",),
        ratings=(float(number % 3), None) if scored else (),
        group=f"essay-{number // 2}",
    )
    criterion = Criterion(trait="Style", lowest=0, highest=3, guide="3: good") if scored else None
    case = msgspec.structs.replace(labelled.case, criterion=criterion, domain="rubric scoring")
    return LabelledCase(case, labelled.index, labelled.gold, reference=reference)


def _permuted(cases: list[LabelledCase]) -> list[LabelledCase]:
    """The same with other gold labels, accepted answers, ratings and groups."""
    gold = [labelled.gold for labelled in cases]
    Random(3).shuffle(gold)
    other = Reference(scoring="short answer", accepted=("zebra",), ratings=(7.5, None), group="zebras")
    permuted = [LabelledCase(c.case, c.index, g, reference=other) for c, g in zip(cases, gold, strict=True)]
    assert sum(a.gold != b.gold for a, b in zip(cases, permuted, strict=True)) > len(cases) // 4
    return permuted


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> list[FinishedRun]:
    """Every protocol in every setting, with two sets of gold labels and references."""
    plain = _cases()
    cases = [*plain, *other_cases(4)]
    for number, each in enumerate(plain):
        essay = msgspec.structs.replace(each.case, id=f"essay-{number}")
        cases.append(_scored(LabelledCase(essay, each.index, each.gold), number))
    folder = tmp_path_factory.mktemp("gold")
    return [
        asyncio.run(run_debates("inline", folder / name, EveryProtocol(), given, roles_of_all()))
        for name, given in (("one", cases), ("two", _permuted(cases)))
    ]


def test_permuted_gold_leaves_every_request_alone(both: list[FinishedRun]) -> None:
    one, two = both
    assert len(one.rows("turns")) > 500
    for table in TABLES:
        assert stable_rows(one.folder, table) == stable_rows(two.folder, table), table
    without = ("gold", "correct")
    assert stable_rows(one.folder, "verdicts", without) == stable_rows(two.folder, "verdicts", without)
    for table in ("cases", "verdicts"):
        assert stable_rows(one.folder, table) != stable_rows(two.folder, table), table


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    server = ScriptedServer(short_protocols.SCRIPTS)
    yield server
    server.close()


async def test_permuted_gold_leaves_every_byte_on_the_wire_alone(server: ScriptedServer, tmp_path: Path) -> None:
    cases, roles = _cases(), same_model_roles(server.model)
    await run_debates("inline", tmp_path / "one", ManySettings(), cases, roles)
    bodies = dict(server.bodies)
    server.bodies.clear()
    await run_debates("inline", tmp_path / "two", ManySettings(), _permuted(cases), roles)
    assert len(bodies) > 250
    assert server.bodies == bodies


async def test_gold_labels_are_only_in_the_tables_of_cases_and_verdicts(tmp_path: Path) -> None:
    """Gold labels that no model could guess; accepted answers, ratings and groups are in the cases alone."""
    secret = Reference(scoring="short answer", accepted=("zebra-4410", "gnu-8821"), ratings=(7731.25,), group="okapi-1")
    gold = "zebra-crossing-7731"
    case = Case(id="c", question="what is it", title="single-agent")
    cases = [LabelledCase(case, 0, gold, reference=secret)]
    held = await run_debates("inline", tmp_path / "run", ManySettings(), cases, same_model_roles("simulated"))

    def tables(word: str) -> list[str]:
        return [t for t in ("cases", "verdicts", *TABLES) if any(word in row for row in stable_rows(held.folder, t))]

    assert tables(gold) == ["cases", "verdicts"]
    for word in (*secret.accepted, "7731.25", secret.group):
        assert tables(word) == ["cases"], word


def test_the_key_changes_replies_which_shows_that_the_test_can_fail(tmp_path: Path) -> None:
    cases = made_cases(30, "single-agent")
    flipped = [LabelledCase(c.case, c.index, "No" if c.gold == "Yes" else "Yes") for c in cases]
    roles = same_model_roles("simulated")
    runs = [
        asyncio.run(run_debates("inline", tmp_path / str(i), ManySettings(), given, roles, key=key_of(given)))
        for i, given in enumerate((cases, flipped))
    ]
    assert stable_rows(runs[0].folder, "turns") != stable_rows(runs[1].folder, "turns")


@pytest.mark.parametrize(
    "kind", [Case, Ask, Assignment, AskResult, AskEnvelope, CancelEnvelope, ReplyEnvelope, History]
)
def test_nothing_that_travels_to_a_debate_has_room_for_gold(kind: type[msgspec.Struct]) -> None:
    schema = json.dumps(msgspec.json.schema(kind)).lower().replace("labelledcase", "gold")
    assert [word for word in ("gold", "accepted", "ratings", "reference") if f'"{word}' in schema] == []
    assert "gold" not in schema


def test_judges_are_sent_the_prompt_the_evidence_and_the_reply(both: list[FinishedRun]) -> None:
    replies = [labelled for labelled in other_cases(4) if labelled.case.judged is not None]
    assert replies
    rows: dict[str, Any] = {row["case_id"]: row for row in both[0].rows("cases")}
    for labelled in replies:
        case = labelled.case
        assert case.judged is not None
        assert json.loads(rows[case.id]["judged"])["reply"] == case.judged.reply
        assert rows[case.id]["group"] == labelled.reference.group
        for turn in both[0].turns(case.id).values():
            ((_, system), (_, user)) = json.loads(turn["messages"])
            assert "instruction_following: " in system
            for text in (*(text for _, text in case.judged.sent), case.passage, case.judged.reply):
                assert f">\n{text}\n</" in user
