"""Traces: a debate is one tree of spans, with any engine and after any crash; nothing is exported unless requested."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import msgspec
import pytest
from openai_server import simulated_server
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

import moot
from moot.actors.agent.request_fingerprint import fingerprint
from moot.actors.record.tables import read_table
from moot.actors.telemetry.telemetry import NO_SPAN, Tracing, exporters, untraceable
from moot.protocols.messages import Ask


@dataclass(frozen=True)
class Collected:
    """A span as it was sent."""

    trace: str
    id: str
    parent: str
    name: str
    service: str
    failed: bool
    attributes: dict[str, Any]


@contextmanager
def collector(status: int = 200) -> Iterator[tuple[str, list[Collected]]]:
    """The endpoint of a collector that answers everything with `status`, and the spans that have come."""
    spans: list[Collected] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.path == "/v1/traces" and status == 200:
                spans.extend(_decoded(body))
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing: a test has a log of its own."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, name="span collector")
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", spans
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _decoded(body: bytes) -> list[Collected]:
    found = []
    for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
        service = _values(resource.resource.attributes)["service.name"]
        for scope in resource.scope_spans:
            for span in scope.spans:
                ids = (span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex())
                found.append(Collected(*ids, span.name, service, span.status.code == 2, _values(span.attributes)))
    return found


def _values(attributes: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in attributes}


ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
CASES = 4


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers that are busy are free again soon."""
    monkeypatch.setattr("moot.actors.simulated.server.server._BUSY_S", 0.01)


@pytest.fixture(autouse=True)
def _no_telemetry_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("OTEL_")]:
        monkeypatch.delenv(name)


def _trees(spans: Sequence[Collected], folder: Path, *, whole: bool) -> None:
    """One tree per verdict: a root, its asks, their calls. `whole`: no process has died with spans of its own."""
    by_id = {(span.trace, span.id): span for span in spans}
    roots = {span.trace: span for span in spans if not span.parent}
    verdicts = read_table(folder, "verdicts").to_pylist()
    assert len(verdicts) == len(roots) == CASES
    assert {span.attributes["moot.case_id"] for span in roots.values()} == {row["case_id"] for row in verdicts}
    assert Counter(span.name for span in spans if not span.parent) == {"debate": CASES}
    above = {"ask": "debate", "call": "ask"}
    for span in spans:
        assert span.service == "moot"
        if span.name == "ask" or whole or (span.trace, span.parent) in by_id:
            assert not span.parent or by_id[span.trace, span.parent].name == above[span.name], span
        assert span.trace in roots
        assert not any(len(str(value)) > 80 for value in span.attributes.values()), span
    if not whole:
        return
    turns = [turn for turn in read_table(folder, "turns").to_pylist() if turn["outcome"] != "invalid"]
    asks = [span for span in spans if span.name == "ask"]
    assert Counter(ask.attributes["moot.path"] for ask in asks) == Counter(turn["path"] for turn in turns)
    calls = [span for span in spans if span.name == "call"]
    answered = [call for call in calls if call.attributes["moot.outcome"] == "answered"]
    assert len(calls) - len(answered) == sum(turn["http_attempts"] - 1 for turn in turns) > 0
    assert all(
        call.failed and call.attributes["error.type"] == "rate_limited" for call in calls if call not in answered
    )
    tokens = [sum(span.attributes["gen_ai.usage.input_tokens"] for span in some) for some in (answered, roots.values())]
    assert tokens[0] == tokens[1] == sum(turn["prompt_tokens"] for turn in turns)


def _options(port: int, folder: Path) -> dict[str, Any]:
    return {"task": "sample", "limit": CASES, "model": f"http://127.0.0.1:{port}/v1#sim", "out": str(folder)}


def test_a_debate_is_one_tree_in_one_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = threading.active_count()
    with collector() as (url, spans), simulated_server(None, busy_rate=0.1, seed=2) as port:
        monkeypatch.setenv(ENDPOINT, url)
        moot.run(engine="inline", **_options(port, tmp_path / "run"))
    _trees(spans, tmp_path / "run", whole=True)
    assert threading.active_count() <= before


@pytest.mark.slow
def test_a_debate_is_one_tree_over_processes(tmp_path: Path) -> None:
    """The processes of a Ray of its own have the environment of the command that has started it.

    A moderator that is killed before it has told of any verdict leaves asks behind: the root comes from its next life.
    """
    (tmp_path / "marks").mkdir()
    with collector() as (url, spans), simulated_server(None, busy_rate=0.1, seed=2) as port:
        options = _options(port, tmp_path / "run") | {"engine": "ray", "placement": "actors"}
        flags = [f"--{name}={value}" for name, value in options.items()]
        kills = {"MOOT_FAILPOINTS": "moderator.debate_closed:1", "MOOT_FAILPOINT_DIR": str(tmp_path / "marks")}
        environment = os.environ | {ENDPOINT: url, **kills}
        command = [sys.executable, "-m", "moot", "run", "--quiet", *flags]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=200)
        assert done.returncode == 0, done.stderr[-3000:]
    _trees(spans, tmp_path / "run", whole=False)
    case_ids = read_table(tmp_path / "run", "cases")["case_id"].to_pylist()
    here = Tracing(str(tmp_path / "run"), {})
    assert {span.trace for span in spans} == {f"{here.context(case_id, 0).trace_id:032x}" for case_id in case_ids}


def test_a_resumed_debate_stays_in_its_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A budget ends the run in the middle; a root is only there for what has its verdict."""
    with collector() as (url, spans), simulated_server(None, busy_rate=0.1, seed=2) as port:
        monkeypatch.setenv(ENDPOINT, url)
        options = _options(port, tmp_path / "run") | {"engine": "inline", "max_open": 2}
        first = moot.run(**options, max_tokens=9_000)
        assert first.status == "stopped"
        begun = list(spans)
        assert 0 < sum(not span.parent for span in begun) < CASES
        moot.run(**options, max_tokens=10**9)
    _trees(spans, tmp_path / "run", whole=False)
    assert {span.trace for span in begun} <= {span.trace for span in spans}


def test_without_telemetry_nothing_of_it_is_loaded(tmp_path: Path) -> None:
    script = (
        "import moot, sys\n"
        f"moot.run(engine='inline', task='sample', limit=1, out={str(tmp_path / 'run')!r})\n"
        "print([name for name in sys.modules if name.startswith(('opentelemetry.sdk', 'opentelemetry.exporter'))])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.stdout == "[]\n", done.stderr[-2000:]


def test_an_unreachable_collector_delays_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moot.actors.telemetry.telemetry.FLUSH_WITHIN_S", 0.1)
    with collector(status=503) as (url, spans):
        monkeypatch.setenv(ENDPOINT, url)
        held = moot.run(engine="inline", task="sample", limit=1, out=tmp_path / "run")
    assert held.status == "finished"
    assert not spans


@pytest.mark.parametrize(
    ("environ", "asked", "why"),
    [
        ({}, False, ""),
        ({ENDPOINT: "http://c:4318"}, True, ""),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c:4318"}, True, ""),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, True, ""),
        ({ENDPOINT: "http://c:4318", "OTEL_TRACES_EXPORTER": "none"}, False, ""),
        ({ENDPOINT: "http://c:4318", "OTEL_TRACES_EXPORTER": "zipkin"}, False, ""),
        ({ENDPOINT: "http://c:4318", "OTEL_SDK_DISABLED": "true"}, False, ""),
        ({ENDPOINT: "http://c:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, True, "http/protobuf"),
    ],
)
def test_the_usual_variables_say_whether_traces_are_exported(environ: dict[str, str], asked: bool, why: str) -> None:
    assert exporters(environ) is asked
    assert why in untraceable(environ)
    assert bool(untraceable(environ)) is bool(why)


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moot.actors.telemetry.telemetry.find_spec", lambda _: None)
    asked = {ENDPOINT: "http://c:4318"}
    assert "pip install 'moot[tracing]'" in untraceable(asked)
    assert Tracing("run", asked).ask(Tracing("run", {}).traceparent("c", 0)) is NO_SPAN


def test_the_context_is_of_the_attempt_and_no_part_of_the_fingerprint() -> None:
    here = Tracing("run", {})
    assert here.context("c", 0).trace_id != here.context("c", 1).trace_id
    ask = Ask(case_id="c", attempt=0, path="p", role="agent/0", template="t", slots={}, reply="m:C")
    traced = msgspec.structs.replace(ask, traceparent=here.traceparent("c", 0))
    assert fingerprint(ask, moot.RoleBinding(), "h") == fingerprint(traced, moot.RoleBinding(), "h")
