"""The shipped dashboard, rules and scrape configuration against a real Prometheus and real debates on Ray."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from openai_server import simulated_server
from places import ROOT, TESTS
from waiting import wait_until

from moot.actors.record.counters import ROUND_METRICS
from moot.actors.record.tables import read_table
from moot.actors.telemetry.meter import METRICS
from moot.protocols.round_values import ROUND_MEASURES

DEPLOY = ROOT / "deploy" / "ops"
RULES = DEPLOY / "prometheus" / "moot.rules.yml"
DASHBOARD = json.loads((DEPLOY / "grafana" / "moot.json").read_text())
VARIABLES = {"$protocol": ".*", "$model": ".*", "$__rate_interval": "30s", "${speaker:raw}": 'model=~".+", role=~".+"'}
OF_OTHER_RUNS = {"Gamma by round", "Jensen-Shannon divergence of all sides by round"}
"""Panels of what SocraSynth notes, or EVINCE with more than two sides."""

LATENCY_MS = 250.0
OPENING = ("round", "round/0")
PRICE = {"input": 2.0, "output": 8.0}

needs_prometheus = pytest.mark.needs("program/prometheus")
needs_promtool = pytest.mark.needs("program/promtool")


def _expressions() -> list[tuple[str, str]]:
    """Title and expression of everything that the dashboard asks for, its variables filled in."""
    found = []
    for panel in DASHBOARD["panels"]:
        for target in panel.get("targets", ()):
            expression = target["expr"]
            for name, value in VARIABLES.items():
                expression = expression.replace(name, value)
            found.append((panel["title"], expression))
    return found


def _rules() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def test_the_dashboard_and_the_rules_ask_for_every_metric_and_for_no_other() -> None:
    known = {metric.name for metric in METRICS}
    asked = " ".join([*(e for _, e in _expressions()), *(rule["expr"] for rule in _rules())])
    named = {word for word in asked.replace("{", " ").replace("(", " ").replace("[", " ").split() if "ray_moot" in word}
    used = {name.removeprefix("ray_").removesuffix("_bucket").rstrip(")") for name in named}
    assert used == known
    assert not [e for _, e in _expressions() if "$" in e]
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(ids)) == len(ids)
    assert all("description" in p for p in DASHBOARD["panels"] if p["type"] != "row")


def test_a_panel_shows_one_measure_and_pools_no_roles_or_models() -> None:
    """Every exported measure has its panel, and the monitoring page says why the others have none."""
    measures = [(title, re.findall(r'measure="(\w+)"', expression)) for title, expression in _expressions()]
    assert all(len(named) <= 1 for _, named in measures), measures
    assert {name for _, named in measures for name in named} == set(ROUND_METRICS)
    page = (ROOT / "docs" / "operate" / "monitoring.md").read_text()
    assert all(f"`{name}` is not exported" in page for name in {*ROUND_MEASURES, "m"} - set(ROUND_METRICS))
    for panel in DASHBOARD["panels"]:
        for target in panel.get("targets", ()):
            if "surprisal" in target["expr"]:
                assert "by (le, model, role)" in target["expr"] or panel.get("repeat") == "speaker"


@needs_promtool
def test_the_rules_fire_when_they_should_and_keep_still_when_all_is_well() -> None:
    for command in (["check", "rules", RULES.name], ["test", "rules", "moot.rules.test.yml"]):
        done = subprocess.run(["promtool", *command], cwd=RULES.parent, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr


@dataclass(frozen=True)
class Prometheus:
    """A Prometheus that is asked over HTTP."""

    url: str

    def ask(self, expression: str, at: float | None = None) -> list[tuple[dict[str, str], float]]:
        """Labels and values of an expression, at a Unix time or now."""
        query = {"query": expression} | ({} if at is None else {"time": f"{at:.3f}"})
        with urllib.request.urlopen(f"{self.url}/api/v1/query?{urllib.parse.urlencode(query)}", timeout=30) as reply:
            found = json.load(reply)["data"]
        assert found["resultType"] == "vector", expression
        return [(one["metric"], float(one["value"][1])) for one in found["result"]]

    def is_up(self, at: float) -> bool:
        """Whether the last scrape of every target had succeeded."""
        found = self.ask('up{job="ray"}', at)
        return bool(found) and all(value == 1.0 for _, value in found)


@contextmanager
def _process(command: list[str], log: Path, **options: Any) -> Iterator[subprocess.Popen[str]]:
    with log.open("w") as errors:
        process = subprocess.Popen(command, stderr=errors, text=True, **options)
        try:
            yield process
        finally:
            if process.stdin is not None:
                process.stdin.close()
            else:
                process.terminate()
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(30)
            if process.stdout is not None:
                process.stdout.close()


@contextmanager
def _scraping(folder: Path, discovery: str) -> Iterator[Prometheus]:
    """A Prometheus with the shipped configuration, but for the place of Ray's file and shorter intervals."""
    folder.mkdir()
    shutil.copy(RULES, folder)
    config = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yml").read_text())
    config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    ((files,),) = (job["file_sd_configs"] for job in config["scrape_configs"])
    assert files["files"] == ["/tmp/ray/prom_metrics_service_discovery.json"]
    files["files"] = [discovery]
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    flags = [f"--web.listen-address={address}", f"--storage.tsdb.path={folder / 'data'}"]
    command = ["prometheus", f"--config.file={folder / 'prometheus.yml'}", *flags]
    with _process(command, folder / "log") as process:
        found = Prometheus(f"http://{address}")
        assert process.poll() is None
        wait_until(lambda: any(value == 1.0 for _, value in found.ask('up{job="ray"}')), 60, (folder / "log").read_text)
        yield found


@dataclass(frozen=True)
class MonitoredRuns:
    """Two runs that were watched: where they lie, their models, and times while both were under way and after them."""

    prometheus: Prometheus
    selene: Path
    evince: Path
    priced: str
    at: float
    ended: float

    def ask(self, expression: str) -> list[tuple[dict[str, str], float]]:
        """Labels and values of an expression after the runs, when every scrape had succeeded."""
        return self.prometheus.ask(expression, self.ended)

    def total(self, expression: str) -> float:
        """The one value of an expression then."""
        ((_, value),) = self.ask(expression)
        return value


def _cases(number: int, **more: Any) -> list[dict[str, Any]]:
    return [{"question": f"Is {n} even?", "labels": ["Yes", "No"], **more} for n in range(number)]


def _panel(model: str) -> dict[str, Any]:
    """Two judges and agents on one model; its token probabilities are asked for."""
    judges = [{"model": model}, {"model": model, "temperature": 0.5}]
    return {"model": model, "roles": {"agent": {"model": model, "top_logprobs": 5}, "judge": judges}}


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MonitoredRuns]:
    tmp = tmp_path_factory.mktemp("watched")
    faults = {"latency_ms": LATENCY_MS, "busy_rate": 0.06, "fail_rate": 0.04}
    with simulated_server(None, seed=5, **faults) as first, simulated_server(None, seed=6, **faults) as second:
        priced, unpriced = (f"http://127.0.0.1:{port}/v1#sim" for port in (first, second))
        (tmp / "prices.yaml").write_text(yaml.safe_dump({"models": {priced: PRICE}}))
        common = {"max_open": 6, "max_tokens": 10**9, "prices": str(tmp / "prices.yaml"), "seed": 1}
        runs = [
            common | {"protocol": protocol, "placement": placement, "task": cases, "out": str(tmp / protocol)} | more
            for protocol, placement, cases, more in (
                ("selene", "actors", _cases(14), {"set": {"gate.when": "always"}} | _panel(priced)),
                # the last one has no labels, which is nothing that EVINCE can debate
                ("evince", "packed", [*_cases(8), {"question": "Why?"}], _panel(unpriced)),
            )
        ]
        script = TESTS / "support" / "monitored_runs.py"
        ray_log = tmp / "ray.log"
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "env": os.environ | {"RAY_DEDUP_LOGS": "0"}}
        with _process([sys.executable, str(script)], ray_log, **pipes) as debates:
            assert debates.stdin is not None
            assert debates.stdout is not None
            said = debates.stdout.readline()
            assert said, ray_log.read_text()[-2000:]
            discovery = json.loads(said)["discovery"]
            wait_until(Path(discovery).exists, 60, ray_log.read_text)
            with _scraping(tmp / "prometheus", discovery) as prometheus:
                began = time.time()
                debates.stdin.write(json.dumps(runs) + "\n")
                debates.stdin.flush()
                told = debates.stdout.readline()
                ended = time.time()
                assert told, ray_log.read_text()[-2000:]
                assert json.loads(told)["ended"] == ["finished", "finished"]
                at = _under_way(prometheus, began, ended)
                time.sleep(4.0)  # the last numbers of processes that have ended, and a scrape of them
                # On a busy machine a scrape may take longer than its second, and then nothing is known at that time.
                last = wait_until(lambda: (now := time.time()) * prometheus.is_up(now))
                yield MonitoredRuns(prometheus, tmp / "selene", tmp / "evince", priced, at, last)


def _under_way(prometheus: Prometheus, began: float, ended: float) -> float:
    """The last time at which debates of both protocols were open."""
    for back in range(1, int(2 * (ended - began))):
        open_now = prometheus.ask("sum by (protocol) (ray_moot_debates_open) > 0", ended - back / 2)
        if len(open_now) == 2:
            return ended - back / 2
    raise AssertionError("the two runs were never under way together")


@needs_prometheus
@pytest.mark.slow
@pytest.mark.timeout(240)
class TestWatchedRuns:
    """Every number of two real runs."""

    def test_nothing_that_a_panel_or_an_alert_looks_at_is_empty(self, watched: MonitoredRuns) -> None:
        recorded = [
            (rule["record"], rule[part]) for rule in _rules() if "record" in rule for part in ("expr", "record")
        ]
        for title, expression in [*_expressions(), *recorded]:
            found = watched.prometheus.ask(expression, watched.at)
            is_there = any(math.isfinite(value) for _, value in found)
            assert is_there == (title not in OF_OTHER_RUNS), (title, expression, found)

    def test_the_counters_end_where_the_record_does(self, watched: MonitoredRuns) -> None:
        ask, total = watched.ask, watched.total
        for run in (watched.selene, watched.evince):
            name = f'protocol="{run.name}"'
            verdicts, turns = read_table(run, "verdicts").to_pylist(), read_table(run, "turns").to_pylist()
            assert total(f"sum(ray_moot_debates_done_total{{{name}}})") == sum(not v["failed"] for v in verdicts)
            failed = ask(f"ray_moot_debates_failed_total{{{name}}} > 0")
            expected = {"case_unfit": 1.0} if run == watched.evince else {}
            assert {labels["failure"]: value for labels, value in failed} == expected
            assert total(f"sum(ray_moot_debate_seconds_count{{{name}}})") == len(verdicts)
            whole = [turn for turn in turns if turn["outcome"] != "invalid"]
            assert total(f"sum(ray_moot_turns_total{{{name}}})") == len(whole)
            for part in ("prompt", "completion"):
                billed = total(f'sum(ray_moot_tokens_total{{{name}, part="{part}"}})')
                assert billed == sum(turn[f"{part}_tokens"] or 0 for turn in turns)
            replies = [turn for turn in turns if turn["text"] is not None]
            answered = total(f'sum(ray_moot_calls_total{{{name}, outcome="answered"}})')
            assert answered == total(f"sum(ray_moot_call_seconds_count{{{name}}})") == len(replies)
            retries = total(f"sum(ray_moot_call_retries_total{{{name}}})")
            assert 0 < retries <= total(f'sum(ray_moot_calls_total{{{name}, outcome=~"limited|broken"}})')
            if not any(turn["outcome"] == "failed" for turn in turns):
                assert retries == sum(turn["http_attempts"] - 1 for turn in replies)

    def test_what_is_known_of_the_cost_is_right_and_the_rest_is_counted_as_unknown(
        self, watched: MonitoredRuns
    ) -> None:
        turns = read_table(watched.selene, "turns").to_pylist()
        dollars = sum(
            (turn["prompt_tokens"] * PRICE["input"] + turn["completion_tokens"] * PRICE["output"]) / 1e6
            for turn in turns
            if turn["prompt_tokens"] is not None
        )
        ((labels, cost),) = watched.ask("sum by (model) (ray_moot_cost_usd_total)")
        assert labels == {"model": watched.priced}
        assert cost == pytest.approx(dollars)
        unknown = watched.ask('ray_moot_calls_of_unknown_cost_total{why="price"} > 0')
        assert {labels["protocol"] for labels, _ in unknown} == {"evince"}
        answered = watched.total('sum(ray_moot_calls_total{protocol="evince", outcome="answered"})')
        assert sum(value for _, value in unknown) >= answered

    def test_the_histograms_contain_the_measured_values(self, watched: MonitoredRuns) -> None:
        total = watched.total
        slow = total('histogram_quantile(0.5, sum by (le) (ray_moot_call_seconds_bucket{protocol="selene"}))')
        assert LATENCY_MS / 1000.0 * 0.9 < slow < 5.0
        fastest = total('sum(ray_moot_call_seconds_bucket{le="0.1"})')
        assert fastest == 0.0  # every reply waits longer
        events = read_table(watched.evince, "events").to_pylist()
        divergences = [json.loads(event["data"])["jsd"] for event in events if event["kind"] == "round"]
        assert total('sum(ray_moot_round_nats_count{measure="jsd"})') == len(divergences) > 0
        small = sum(value <= 0.1 for value in divergences)
        assert total('sum(ray_moot_round_nats_bucket{measure="jsd", le="0.1"})') == small
        openings = [json.loads(event["data"])["jsd"] for event in events if (event["kind"], event["path"]) == OPENING]
        assert total('sum(ray_moot_round_nats_count{measure="jsd", round="0"})') == len(openings) > 0
        for run in (watched.selene, watched.evince):
            logprobs = [row["logprob"] for row in read_table(run, "tokens").to_pylist() if row["logprob"]]
            name = f'protocol="{run.name}"'
            surprisals = [-sum(known) / len(known) for known in logprobs]
            assert total(f"sum(ray_moot_reply_surprisal_nats_count{{{name}}})") == len(surprisals) > 0
            below = sum(value <= 0.3 for value in surprisals)
            assert total(f'sum(ray_moot_reply_surprisal_nats_bucket{{{name}, le="0.3"}})') == below
            assert total(f"sum(ray_moot_judge_disagreement_count{{{name}}})") > 0

    def test_a_restarted_process_is_reported(self, watched: MonitoredRuns) -> None:
        found = watched.ask("sum by (actor) (ray_moot_actor_restarts_total)")
        assert {labels["actor"]: value for labels, value in found} == {
            "agent": 0.0,
            "limiter": 1.0,
            "moderator": 0.0,
            "writer": 0.0,
        }

    def test_no_label_names_a_debate(self, watched: MonitoredRuns) -> None:
        tables = [read_table(run, "cases") for run in (watched.selene, watched.evince)]
        cases = {case_id for table in tables for case_id in table["case_id"].to_pylist()}
        assert cases
        for labels, _ in watched.ask('{__name__=~"ray_moot_.*"}'):
            assert not cases & set(labels.values()), labels
