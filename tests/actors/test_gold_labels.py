"""No gold label ever crosses into a message."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from random import Random

import five_protocols
import msgspec
import pytest
from five_protocols import AllFive
from houses import Held, hold, same_for_all, stable_rows
from many_settings import SETTINGS, ManySettings, key_of, made_cases
from openai_server import ScriptedServer

from moot.actors.moderator import Assignment
from moot.actors.record.recovery import History
from moot.actors.remote.envelopes import AskEnvelope, CancelEnvelope, ReplyEnvelope
from moot.actors.roles import RoleBinding
from moot.protocols.case import Case, Criterion, LabelledCase, Reference
from moot.protocols.messages import Answered, Ask

LABELS = ("Yes", "No")


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    server = ScriptedServer(five_protocols.SCRIPTS)
    yield server
    server.close()


def _cases() -> list[LabelledCase]:
    return [case for i, name in enumerate(SETTINGS) for case in made_cases(2, name, start=2 * i)]


def _permuted(cases: list[LabelledCase]) -> list[LabelledCase]:
    gold = [labelled.gold for labelled in cases]
    Random(3).shuffle(gold)
    permuted = [LabelledCase(c.case, c.index, label) for c, label in zip(cases, gold, strict=True)]
    assert sum(a.gold != b.gold for a, b in zip(cases, permuted, strict=True)) > len(cases) // 4
    return permuted


def _essays() -> list[LabelledCase]:
    """Cases whose right answers stand in a reference, with every scoring, under every setting."""
    cases = []
    for i, labelled in enumerate(_cases()):
        scored = i % 2 == 0
        reference = Reference(
            scoring="score" if scored else "short answer",
            accepted=("Yes", "No") if i % 3 else ("No",),
            ratings=(float(i % 3), None) if scored else (),
            group=f"essay-{i // 2}",
        )
        criterion = Criterion(trait="Style", lowest=0, highest=3, guide="3: good") if scored else None
        case = msgspec.structs.replace(labelled.case, criterion=criterion, domain="rubric scoring")
        cases.append(LabelledCase(case, labelled.index, labelled.gold, reference=reference))
    return cases


def _rated_otherwise(cases: list[LabelledCase]) -> list[LabelledCase]:
    """The same with other gold labels, accepted answers, ratings and groups."""
    swapped = {"Yes": "No", "No": "Yes"}
    return [
        LabelledCase(
            c.case,
            c.index,
            swapped[c.gold or "Yes"],
            reference=Reference(
                scoring="label",
                accepted=tuple(swapped[answer] for answer in c.reference.accepted),
                ratings=tuple(3.0 if rating is None else None for rating in c.reference.ratings),
                group="all",
            ),
        )
        for c in cases
    ]


def _sent(held: Held) -> list[str]:
    """Every rendered request, by its key."""
    return [f"{r['case_id']} {r['attempt']} {r['path']} {r['messages']}" for r in held.rows("turns")]


async def test_permuted_gold_leaves_every_request_alone(tmp_path: Path) -> None:
    cases, roles = _cases(), same_for_all("simulated")
    one = await hold("inline", tmp_path / "one", ManySettings(), cases, roles)
    two = await hold("inline", tmp_path / "two", ManySettings(), _permuted(cases), roles)
    assert len(_sent(one)) > 250
    assert _sent(one) == _sent(two)
    for table in ("turns", "tokens", "judgments", "events", "embeddings"):
        assert stable_rows(one.folder, table) == stable_rows(two.folder, table), table
    without = ("gold", "correct")
    assert stable_rows(one.folder, "verdicts", without) == stable_rows(two.folder, "verdicts", without)
    assert stable_rows(one.folder, "verdicts") != stable_rows(two.folder, "verdicts")


async def test_other_ratings_and_accepted_answers_leave_every_request_alone(tmp_path: Path) -> None:
    cases, roles = _essays(), same_for_all("simulated")
    one = await hold("inline", tmp_path / "one", ManySettings(), cases, roles)
    two = await hold("inline", tmp_path / "two", ManySettings(), _rated_otherwise(cases), roles)
    assert len(_sent(one)) > 250
    assert _sent(one) == _sent(two)
    for table in ("turns", "tokens", "judgments", "events", "embeddings"):
        assert stable_rows(one.folder, table) == stable_rows(two.folder, table), table
    assert stable_rows(one.folder, "cases") != stable_rows(two.folder, "cases")
    assert stable_rows(one.folder, "verdicts") != stable_rows(two.folder, "verdicts")


async def test_permuted_gold_leaves_every_byte_on_the_wire_alone(server: ScriptedServer, tmp_path: Path) -> None:
    cases, roles = _cases(), same_for_all(server.model)
    await hold("inline", tmp_path / "one", ManySettings(), cases, roles)
    bodies = dict(server.bodies)
    server.bodies.clear()
    await hold("inline", tmp_path / "two", ManySettings(), _permuted(cases), roles)
    assert len(bodies) > 250
    assert server.bodies == bodies


async def test_permuted_gold_leaves_the_five_protocols_alone(server: ScriptedServer, tmp_path: Path) -> None:
    roles = same_for_all(server.model) | {"vision": [RoleBinding(model=server.model)]}
    titles = [name for name in five_protocols.FIVE for _ in range(2)]
    cases = [
        LabelledCase(Case(id=f"c{i}", question=f"Is it {i}?", title=title, labels=LABELS), i, LABELS[i % 2])
        for i, title in enumerate(titles)
    ]
    sent = []
    for name, given in (("one", cases), ("two", _permuted(cases))):
        await hold("inline", tmp_path / name, AllFive(), given, roles, templates=five_protocols.TEMPLATES)
        sent.append(dict(server.bodies))
        server.bodies.clear()
    assert sent[0] == sent[1]
    assert sent[0]


def test_a_gold_label_that_is_unique_is_nowhere_but_in_the_record(tmp_path: Path) -> None:
    """Free-text gold that no model could guess stands in `cases` and `verdicts`, and in no other table."""
    secret = "zebra-crossing-7731"
    cases = [
        LabelledCase(Case(id=f"c{i}", question=f"what is it {i}", title="single-agent", passage="A text."), i, secret)
        for i in range(3)
    ]
    held = asyncio.run(hold("inline", tmp_path / "run", ManySettings(), cases, same_for_all("simulated")))
    found = {
        table
        for table in ("cases", "turns", "tokens", "judgments", "events", "verdicts", "embeddings")
        if any(secret in row for row in stable_rows(held.folder, table))
    }
    assert found == {"cases", "verdicts"}


def test_accepted_answers_and_groups_stand_in_the_table_of_cases_alone(tmp_path: Path) -> None:
    secret = Reference(scoring="short answer", accepted=("zebra-4410", "gnu-8821"), ratings=(7731.25,), group="okapi-1")
    cases = [
        LabelledCase(Case(id=f"c{i}", question=f"what is it {i}", title="single-agent"), i, "x", reference=secret)
        for i in range(3)
    ]
    held = asyncio.run(hold("inline", tmp_path / "run", ManySettings(), cases, same_for_all("simulated")))
    for word in (*secret.accepted, "7731.25", secret.group):
        tables = ("cases", "turns", "tokens", "judgments", "events", "verdicts", "embeddings")
        assert [t for t in tables if any(word in row for row in stable_rows(held.folder, t))] == ["cases"], word


def test_the_key_changes_replies_which_shows_that_the_test_can_fail(tmp_path: Path) -> None:
    cases = made_cases(30, "single-agent")
    flipped = [LabelledCase(c.case, c.index, "No" if c.gold == "Yes" else "Yes") for c in cases]
    roles = same_for_all("simulated")
    runs = [
        asyncio.run(hold("inline", tmp_path / str(i), ManySettings(), given, roles, key=key_of(given)))
        for i, given in enumerate((cases, flipped))
    ]
    assert stable_rows(runs[0].folder, "turns") != stable_rows(runs[1].folder, "turns")


@pytest.mark.parametrize("kind", [Case, Ask, Assignment, Answered, AskEnvelope, CancelEnvelope, ReplyEnvelope, History])
def test_nothing_that_travels_to_a_debate_has_room_for_gold(kind: type[msgspec.Struct]) -> None:
    schema = json.dumps(msgspec.json.schema(kind)).lower().replace("labelledcase", "gold")
    assert [word for word in ("gold", "accepted", "ratings", "reference") if f'"{word}' in schema] == []
    assert "gold" not in schema
