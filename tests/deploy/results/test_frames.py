"""The frames of a record: every view has the rows of `read_table`, and its derived columns are those of the readers."""

from __future__ import annotations

import json
import os
import tarfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pydantic import TypeAdapter

from moot.actors.record.compaction import compact
from moot.actors.record.files import checksum, encode_file
from moot.actors.record.folder import Epoch, RunFolder, Segment
from moot.actors.record.roll_files import Part, roll_name
from moot.actors.record.rows import batch_of, step_of
from moot.actors.record.schema import JOURNAL
from moot.actors.record.sealed_yaml import seal_yaml
from moot.actors.record.segments import SegmentWriter
from moot.actors.record.tables import read_table
from moot.deploy.results.figures.costs import _usd, has_known_tokens, lacks_usage, paid_calls
from moot.deploy.results.frames import VIEWS, Frames
from moot.deploy.results.record import EventPlace, RunRecord, is_counted
from moot.deploy.results.references import case_groups
from moot.protocols.errors import ConfigError, RecordError
from moot.protocols.events import DebateEvent

FROZEN = Path(__file__).parent / "frozen" / "records"
EARLIER = Path(__file__).parents[1] / "runs" / "earlier_records" / "records.tar.xz"
SOME = {"ceda", "essays", "evince", "judged", "killed", "own-protocol", "retried", "reused", "selene", "socrasynth"}


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Some frozen records, all with `EVERY_RECORD=1`, and made ones, of which rows come several times."""
    folder = tmp_path_factory.mktemp("frozen")
    for archive in [*FROZEN.glob("*.tar.xz"), EARLIER]:
        if os.environ.get("EVERY_RECORD") or archive.name.partition(".")[0] in SOME:
            with tarfile.open(archive) as file:
                file.extractall(folder, filter="data")
    found = {file.relative_to(folder).parts[0]: file.parent for file in sorted(folder.rglob("run.yaml"))}
    return [*found.values(), *(made_record(folder / f"made*[{seed}]'s", seed) for seed in range(3))]


def made_record(folder: Path, seed: int) -> Path:
    """A record of rolls with random rows, few keys, and a journal: a part has fewer columns, one has no checksums."""
    random = Random(seed)
    run = RunFolder(folder)
    for place in (run.journal, run.parts):
        place.mkdir(parents=True)
    (folder / "run.yaml").write_bytes(seal_yaml({"models": {"agent": ["simulated"]}, "price_table": _PRICES}))
    run.put("epochs.json", encode_file([Epoch(1, 0.0, {})]))
    for roll in range(5):
        segments = {stream: _segment(run, roll, stream, random) for stream in JOURNAL}
        if roll < 4:
            compact(run, roll_name(1, 0, roll), {stream: [Segment(path)] for stream, path in segments.items()})
    _rewrite(run, 0, ["reading", "finish_reason", "group", "judged"])
    _rewrite(run, 2, has_checksums=False)
    with segments["replies"].open("ab") as torn:
        torn.write(b"moot\x00")
    return folder


def _segment(run: RunFolder, roll: int, stream: str, random: Random) -> Path:
    path = run.segment_path(1, 0, roll, stream)
    writer = SegmentWriter(path, JOURNAL[stream])
    for _ in range(random.randint(1, 2)):
        writer.append(batch_of(stream, [_ROWS[stream](random) for _ in range(random.randint(1, 6))]))
    writer.close() if roll < 4 else writer.abandon()
    return path


def _rewrite(run: RunFolder, roll: int, without: Sequence[str] = (), *, has_checksums: bool = True) -> None:
    """Write the files of a part again without some columns."""
    file = run.parts / f"{roll_name(1, 0, roll)}.json"
    part = run.part(file)
    for name in part.tables.values():
        rows = pq.read_table(run.path / name)
        pq.write_table(rows.select([each for each in rows.column_names if each not in without]), run.path / name)
    sums = {table: checksum(run.path / name) for table, name in part.tables.items()}
    run.put(f"parts/{file.name}", encode_file(Part(part.tables, part.covers, sums if has_checksums else {})))


def _key(random: Random) -> dict[str, Any]:
    return {"case_id": random.choice("abc"), "attempt": random.randint(0, 1), "at": float(random.randint(0, 3))}


def _reply(random: Random) -> dict[str, Any]:
    ids = [f"r{n}" for n in range(25)]
    return {
        **_key(random),
        "path": random.choice(["opening/agent/0", "opening/agent/0~1", "judge/0", "x~1~cut12", "judge/1"]),
        "role": random.choice(["agent/0", "judge/0", "person", None]),
        "model": random.choice(["simulated", "priced", "unknown", None]),
        "reply_id": random.choice(ids) + random.choice(["", "", "~1"]),
        "supersedes": random.choice([*(None for _ in range(8)), *ids[:5]]),
        "outcome": random.choice(["ok", "failed", None]),
        "failure": random.choice(["", "unsent", "timeout"]),
        "prompt_tokens": random.choice([None, 3, 2**31 - 1]),
        "completion_tokens": random.choice([None, 5, 2**31 - 1]),
        "prompt_tokens_stated": random.choice([None, 4]),
        "unconfirmed_attempts": random.choice([None, 0, 2]),
        "reused_from": random.choice([None, "", "RUN:a/0/x"]),
        "finish_reason": random.choice([None, "stop", "length"]),
        "reading": random.choice([None, "mended", "mended,overlong"]),
        "data": random.choice([None, '{"score": 0.5, "support": "supported"}']),
        "token": random.choice([None, ["a", "b"]]),
        "logprob": random.choice([None, [-0.5, float("nan")]]),
    }


def _event(random: Random) -> dict[str, Any]:
    kind = random.choice(["round", "gate", "asked", "debate-cancelled"])
    return {**_key(random), "kind": kind, "path": random.choice("pq"), "data": random.choice([None, "", "{}", _ROUND])}


def _verdict(random: Random) -> dict[str, Any]:
    return {
        **_key(random),
        "answer": random.choice([None, "A"]),
        "how": random.choice(["skipped", "stable-agree", None]),
        "rounds": random.choice([None, 0, 2]),
        "failed": random.choice([True, False, None]),
        "gold": random.choice([None, "A"]),
        "correct": random.choice([None, None, True]),
    }


def _case(random: Random) -> dict[str, Any]:
    return {
        "case_id": random.choice("abcde"),
        "content_hash": random.choice(["", "h1", "h2", "h3", None]),
        "group": random.choice(["", "", "essay", None]),
        "judged": random.choice([None, None, "{}"]),
        "ratings": random.choice([None, [0.5, None]]),
    }


def _embedding(random: Random) -> dict[str, Any]:
    return {"case_id": random.choice("ab"), "attempt": 0, "encoder": "e", "text_hash": "t", "vector": [1.0]}


_PRICES = {"priced": {"input": 0.15, "output": 0.6}}
_ROUND = '{"round": 1, "order": ["A", 2], "kappa": "high", "words": 3, "wd": {"A>B": 0.5}, "conceded": []}'
_ROWS: dict[str, Callable[[Random], dict[str, Any]]] = {
    "cases": _case,
    "replies": _reply,
    "events": _event,
    "verdicts": _verdict,
    "embeddings": _embedding,
}


def test_every_view_has_the_rows_of_its_table(records: list[Path]) -> None:
    for record in records:
        frames = Frames.of(record)
        for name in VIEWS:
            expected = _read(read_table, record, name)
            if isinstance(expected, str):  # damaged
                assert _read(frames.table, name) == expected
                continue
            found = frames.table(name, expected.column_names)
            assert found.schema.types == expected.schema.types
            for column in expected.column_names:
                if (name, column) != ("verdicts", "correct"):  # it has today's rule, see below
                    assert _is_equal(found[column], expected[column]), (record, name, column)


def _read(read: Callable[..., pa.Table], *arguments: Any) -> Any:
    """What a reader gives, or the message of its error."""
    try:
        return read(*arguments)
    except RecordError as error:
        return str(error)


def _is_equal(one: pa.ChunkedArray, other: pa.ChunkedArray) -> bool:
    return one.equals(other) or repr(one.to_pylist()) == repr(other.to_pylist())  # not a number is equal, too


def test_derived_columns_are_those_of_the_readers(records: list[Path]) -> None:
    for record in records:
        try:
            today, frames = RunRecord(record), Frames(record)
            expected = dict(_derived(today))
        except RecordError:
            continue
        for (name, where, columns), rows in expected.items():
            found = frames.table(name, columns, where)
            for column in columns:
                assert found[column].to_pylist() == list(rows[column]), (record, name, column)


def _derived(record: RunRecord) -> Iterator[tuple[tuple[str, str, tuple[str, ...]], Mapping[str, Any]]]:
    """Columns by what they are of: a view, and a condition on its rows."""

    def of(name: str, where: str = "true", **columns: Any) -> Any:
        lists = {
            column: np.asarray(rows).tolist() if isinstance(rows, np.ndarray) else rows
            for column, rows in columns.items()
        }
        lists = {
            column: rows.to_pylist() if isinstance(rows, pa.Array | pa.ChunkedArray) else rows
            for column, rows in lists.items()
        }
        return (name, where, tuple(lists)), lists

    groups = case_groups(record.cases)
    yield of("cases", group_name=[groups.get(case) for case in record.cases["case_id"].to_pylist()])
    verdicts, turns = record.verdict_table, record.turns
    last = {(verdict.case_id, verdict.attempt) for verdict in record.verdicts}
    keys = list(zip(verdicts["case_id"].to_pylist(), verdicts["attempt"].to_pylist(), strict=True))
    yield of(
        "verdicts",
        correct=verdicts["correct"],
        scored=verdicts["correct"].is_valid(),
        debated=verdicts["debated"],
        latest=[key in last for key in keys],
        finished=[key in last and not failed for key, failed in zip(keys, verdicts["failed"].to_pylist(), strict=True)],
        group_name=[groups.get(case) for case, _ in keys],
    )
    yield of("turns", counted=_counted(turns, verdicts), step=[step_of(path) for path in turns["path"].to_pylist()])
    replies = record.replies
    usd, is_priced = _usd(replies, record.info.prices)
    yield of(
        "turns",
        "NOT person",
        superseded=replies.flag("superseded"),
        reused=replies.flag("reused"),
        is_call=replies.is_call,
        lacks_usage=replies.lacks_usage,
        tokens=[row.tokens for row in replies.rows()],
        truncated=replies.flag("truncated"),
        overlong=replies.flag("overlong"),
        usage_estimated=replies.flag("estimated"),
        cost_usd=[cost if known else None for cost, known in zip(usd.tolist(), is_priced.tolist(), strict=True)],
    )
    yield of("turns", "person", is_call=[False for role in turns["role"].to_pylist() if role == "person"])
    paid = paid_calls(turns)
    yield of("turns", "is_call", lacks_usage=lacks_usage(paid), has_known_tokens=has_known_tokens(paid))
    for name in ("events", "judgments"):
        yield of(name, counted=_counted(read_table(record.folder, name, []), verdicts))


def _counted(rows: pa.Table, verdicts: pa.Table) -> Any:
    counted = is_counted(rows, verdicts)
    return [True] * rows.num_rows if counted is None else counted


def test_events_of_a_type_are_those_that_pydantic_reads(records: list[Path]) -> None:
    for record in records:
        try:
            today, frames = RunRecord(record), Frames(record)
            kinds = set(today._events["kind"].to_pylist())
        except RecordError:
            continue
        for event_type in (each for each in _all_types(DebateEvent) if each.kind in kinds):
            expected, found = today.typed_events(event_type), frames.events_of(event_type)
            assert found.num_rows == len(expected), (record, event_type)
            places = zip(*(found[name].to_pylist() for name in EventPlace._fields), strict=True)
            assert list(places) == [place for place, _ in expected]
            for name in event_type.model_fields:
                values = [_plain(getattr(event, name)) for _, event in expected]
                assert all(map(_is_same, found[name].to_pylist(), values)), (record, event_type, name)


def _plain(value: Any) -> Any:
    return TypeAdapter(Any).dump_python(value, mode="json", by_alias=True, exclude_unset=True)


def _all_types(base: type[DebateEvent]) -> Iterator[type[DebateEvent]]:
    for each in base.__subclasses__():
        yield each
        yield from _all_types(each)


def _is_same(found: Any, value: Any) -> bool:
    """Whether a value of a column is a recorded one: any other than a column's type is JSON, and a map is of pairs."""
    if isinstance(found, str) and found != value:
        found = json.loads(found)
    if isinstance(value, dict):
        own = found if isinstance(found, dict) else dict(found or ())
        return own.keys() >= value.keys() and all(_is_same(own[key], each) for key, each in value.items())
    if isinstance(value, list):
        return len(found) == len(value) and all(map(_is_same, found, value))
    return bool(found == value) and isinstance(found, bool) == isinstance(value, bool)


def test_a_query_is_one_select_over_the_record(records: list[Path]) -> None:
    frames = Frames(next(record for record in records if record.name == "selene"))
    assert frames.sql("SELECT count(*) AS n FROM verdicts WHERE rounds >= $least", least=0).to_pylist() != [{"n": 0}]
    assert frames.once(lambda each: each) is frames
    for wrong in ("SELECT 1; SELECT 2", "CREATE TABLE t (x INT)", "SELECT nothing FROM cases", "FROM frames", "SELEC"):
        with pytest.raises(ConfigError):
            frames.sql(wrong)


def test_a_damaged_part_is_refused(tmp_path: Path) -> None:
    record = made_record(tmp_path / "run", 0)
    part = next((record / "turns").glob("*.parquet"))
    part.write_bytes(part.read_bytes()[:-1] + b"?")
    with pytest.raises(RecordError, match="is damaged"):
        Frames(record).sql("FROM turns")
    with pytest.raises(RecordError, match="no run there"):
        Frames(tmp_path).sql("FROM turns")
