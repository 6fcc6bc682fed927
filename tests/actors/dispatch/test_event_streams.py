"""What is kept for those who follow a debate: bounded by number and by length, and in the order of time."""

from __future__ import annotations

import pytest

from moot.actors.dispatch.event_streams import EventStreams
from moot.actors.record.progress import REPLY, Progress, StreamedEvent


def reply(case_id: str, text: str, at: float = 0.0) -> StreamedEvent:
    return StreamedEvent(case_id, 0, REPLY, "opening/agent/0", {"text": text}, at)


def note(case_id: str, at: float) -> StreamedEvent:
    return StreamedEvent(case_id, 0, "asked", "opening/agent/0", {}, at)


def test_a_writer_keeps_no_more_than_so_many_characters_of_replies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moot.actors.record.progress._KEPT_CHARACTERS", 250)
    progress = Progress()
    for number in range(5):
        progress.add_events([reply(f"q{number}", "x" * 100), note(f"q{number}", 0.0)])
    cursor, found = progress.events_since(0)
    assert [(event.case_id, event.kind) for event in found] == [
        ("q2", "asked"), ("q3", REPLY), ("q3", "asked"), ("q4", REPLY), ("q4", "asked"),
    ]  # fmt: skip
    progress.add_events([reply("long", "x" * 251)])
    assert progress.events_since(cursor) == (11, [])
    progress.add_events([reply("unreadable", ""), StreamedEvent("q", 0, REPLY, "p", {"text": None}, 0.0)])
    assert len(progress.events_since(cursor)[1]) == 2


def test_streams_of_ended_debates_are_kept_by_length_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moot.actors.dispatch.event_streams.KEPT_CHARACTERS", 250)
    event_streams = EventStreams()
    for case_id in ("q0", "q1", "q2"):
        event_streams.open(case_id)
        event_streams.add([reply(case_id, "x" * 100)])
        event_streams.close(case_id)
    assert [event_streams.of(case_id) is None for case_id in ("q0", "q1", "q2")] == [True, False, False]
    event_streams.open("q1")  # it is open again, and not counted among those that have ended
    event_streams.close("q1")
    assert event_streams.of("q2") is not None
    event_streams.open("long")
    event_streams.add([reply("long", "x" * 1000)])
    event_streams.close("long")
    assert [event_streams.of(case_id) for case_id in ("q1", "q2", "long")] == [None, None, None]


def test_what_comes_together_is_streamed_in_the_order_of_time() -> None:
    event_streams = EventStreams()
    event_streams.open("q0")
    event_streams.add([note("q0", 1.0), note("q0", 3.0), reply("q0", "it is", 2.0), note("nobody", 0.0)])
    event_stream = event_streams.of("q0")
    assert event_stream is not None
    assert [event.at for event in event_stream.events] == [1.0, 2.0, 3.0]


def test_a_debate_that_is_taken_up_again_begins_with_what_is_kept_of_it() -> None:
    event_streams = EventStreams()
    event_streams.open("q0", earlier_than=7.0)
    event_streams.add([note("q0", 8.0), reply("q0", "it is", 9.0)])
    first = event_streams.of("q0")
    event_streams.open("q0", earlier_than=10.0)
    again = event_streams.of("q0")
    assert first is not None
    assert again is not None
    assert first.ended
    assert not again.ended
    assert (again.earlier_than, again.events, again.size) == (7.0, first.events, first.size)
    assert (first.has_events, again.has_events) == (True, False)
    event_streams.add([reply("q0", "it is not", 11.0)])
    assert again.has_events
    event_streams.close("q0")
    event_streams.open("q0", earlier_than=11.0)
    assert (again := event_streams.of("q0")) is not None
    assert (again.earlier_than, [event.at for event in again.events]) == (7.0, [8.0, 9.0, 11.0])


def test_what_a_writer_is_given_once_more_is_streamed_once() -> None:
    event_streams = EventStreams()
    event_streams.open("q0")
    told = [note("q0", 1.0), reply("q0", "it is", 2.0)]
    event_streams.add(told)
    event_streams.add([note("q0", 3.0), reply("q0", "it is", 4.0), reply("q0", "it is not", 5.0)])
    event_stream = event_streams.of("q0")
    assert event_stream is not None
    assert [(event.kind, event.at) for event in event_stream.events] == [
        ("asked", 1.0), (REPLY, 2.0), ("asked", 3.0), (REPLY, 5.0),
    ]  # fmt: skip
