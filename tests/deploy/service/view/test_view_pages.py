"""Pages of `moot view`: what they say is what the record says, and nothing outside the folder's runs is read."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
import pytest
from server_client import ServerClient, listening, until
from yarl import URL

import moot
from moot.actors.record.tables import read_table
from moot.deploy.results.figures.run_list import RunFigures
from moot.deploy.results.figures.summary import summarise
from moot.deploy.results.run_report.report import RunReport, build_report
from moot.deploy.service.view.app import make_view
from moot.deploy.service.view.catalogue import RunCatalogue
from moot.protocols.errors import ConfigError

HOSTILE = "</script><script>alert(1)</script>\u202e\x1b[2J"
ODD_ID = "a/../<b>&%2F?#.json"
CASES = [
    {"id": ODD_ID, "question": f"{HOSTILE} is fire cold?", "labels": ["Yes", "No"], "gold": "No"},
    {"id": "second", "question": "Is water wet?", "labels": ["Yes", "No"]},
]
REFUSED = (
    "limit=0",
    "limit=100000",
    "offset=-1",
    "limit=x",
    "nonsense=1",
    "sort=nonsense",
    "sort=place",
    f"q={501 * 'x'}",
    "filters=x",
    "filters=[1]",
    'filters={"rounds":1}',
    'filters={"nonsense":"1"}',
    'filters={"place":"1"}',
    f'filters={{"rounds":"{201 * "1"}"}}',
    f"filters={5000 * '['}",
    "filters=%22%ff%22",
)
"""Queries of cases that are not understood."""

TOKEN = "a-long-token-of-the-test"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with two runs, and one below another folder."""
    folder = tmp_path_factory.mktemp("home") / "runs"
    moot.run(task="sample", limit=12, engine="inline", out=folder / "sample")
    moot.run(task=CASES, protocol="single-agent", engine="inline", out=folder / "own")
    moot.run(task="sample", limit=2, protocol="single-agent", engine="inline", out=folder / "group" / "below")
    yield folder


@asynccontextmanager
async def viewed(folder: Path, token: str | None = None) -> AsyncIterator[ServerClient]:
    """The pages of a folder's runs on a port of their own."""
    catalogue = RunCatalogue(folder)
    jar = aiohttp.CookieJar(unsafe=True)  # keeps cookies of an address without a name, as browsers do
    async with listening(make_view(catalogue, token)) as (port, _), aiohttp.ClientSession(cookie_jar=jar) as session:
        yield ServerClient(f"http://127.0.0.1:{port}", session)
    await catalogue.close()


async def test_the_list_has_every_run_with_the_figures_of_its_summary(runs: Path) -> None:
    async with viewed(runs) as client:
        rows: dict[str, Any] = {}

        async def computed() -> bool:
            rows.update({row["name"]: row for row in (await client.get("/runs.json")).json})
            return not any(row["is_pending"] for row in rows.values())

        await until(computed)
    assert set(rows) == {"sample", "own", "group~below"}
    for name, row in rows.items():
        summary = summarise(runs / name.replace("~", "/"))
        assert row["state"] == "finished"
        assert RunFigures.model_validate(row["figures"]) == RunFigures.model_validate(summary.model_dump())


async def test_a_run_opens_as_its_report_under_a_strict_policy(runs: Path) -> None:
    async with viewed(runs) as client:
        for path in ("/", "/runs/sample/", "/runs/group~below/"):
            answer = await client.get(path)
            assert answer.status == 200
            policy = answer.headers["Content-Security-Policy"]
            assert "'unsafe-" not in policy
            assert {"default-src 'none'", "connect-src 'self'", "frame-ancestors 'none'"} <= set(policy.split("; "))
        assert "All 2 cases finished." in answer.text


async def test_pages_of_cases_are_those_of_the_record(runs: Path) -> None:
    verdicts = {row["case_id"]: row for row in read_table(runs / "sample", "verdicts").to_pylist()}
    async with viewed(runs) as client:

        async def rows(**query: Any) -> list[dict[str, Any]]:
            asked = "&".join(f"{name}={quote(str(value))}" for name, value in query.items())
            found: list[dict[str, Any]] = (await client.get(f"/runs/sample/cases.json?{asked}")).json["rows"]
            return found

        paged = [row for offset in range(0, 15, 5) for row in await rows(offset=offset, limit=5)]
        assert [row["case"] for row in paged] == [f"sample-{i:03}" for i in range(1, 13)]
        for row in paged:
            verdict = verdicts[row["case"]]
            assert (row["answer"], row["rounds"], row["gold"]) == (
                verdict["answer"],
                verdict["rounds"],
                verdict["gold"],
            )
            assert row["outcome"] == ("right" if verdict["correct"] else "wrong")
        by_rounds = await rows(sort="rounds", desc=True)
        assert [row["rounds"] for row in by_rounds] == sorted((v["rounds"] for v in verdicts.values()), reverse=True)
        wrong = {case for case, verdict in verdicts.items() if not verdict["correct"]}
        assert {row["case"] for row in await rows(outcome="wrong")} == wrong
        assert [row["case"] for row in await rows(q="SAMPLE-007")] == ["sample-007"]
        number = round(next(v["confidence"] for v in verdicts.values()), 4)
        sure = {case for case, verdict in verdicts.items() if str(number) in str(round(verdict["confidence"], 4))}
        assert sure <= {row["case"] for row in await rows(q=number)}
        for refused in REFUSED:
            assert (await client.get(f"/runs/sample/cases.json?{refused}")).status == 422, refused


@pytest.mark.parametrize(
    ("filters", "matches"),
    [
        ({"rounds": ">= 2"}, lambda row: row["rounds"] >= 2),
        ({"rounds": "<2"}, lambda row: row["rounds"] < 2),
        ({"rounds": "1 .. 2"}, lambda row: 1 <= row["rounds"] <= 2),
        ({"rounds": "=3", "outcome": "IGH"}, lambda row: row["rounds"] == 3 and row["outcome"] == "right"),
        ({"confidence": " > .6"}, lambda row: (row["confidence"] or 0) > 0.6),
        ({"confidence": "0.73"}, lambda row: abs((row["confidence"] or 0) - 0.73) <= 0.0005),
        ({"rounds": "2"}, lambda row: row["rounds"] == 2),
        ({"confidence": "many"}, lambda row: True),
        ({"question": "The", "answer": ""}, lambda row: "the" in row["question"].lower()),
        ({"case": ".*"}, lambda row: False),
    ],
)
async def test_columns_of_cases_are_filtered(
    filters: dict[str, str], matches: Callable[[dict[str, Any]], bool], runs: Path
) -> None:
    async with viewed(runs) as client:
        every = (await client.get("/runs/sample/cases.json")).json["rows"]
        found = (await client.get(f"/runs/sample/cases.json?filters={quote(json.dumps(filters))}")).json
    assert [row["case"] for row in found["rows"]] == [row["case"] for row in every if matches(row)]
    assert found["total"] == len(found["rows"])


async def test_hostile_texts_and_ids_stay_json(runs: Path) -> None:
    async with viewed(runs) as client:
        for path in ("cases.json", f"cases/{quote(ODD_ID, safe='')}.json"):
            answer = await client.session.get(URL(f"{client.base}/runs/own/{path}", encoded=True))
            assert answer.content_type == "application/json"
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
            assert json.dumps(HOSTILE)[1:8] in await answer.text()
        assert (await answer.json())["case"] == ODD_ID
        page = (await client.get("/runs/own/")).text
        assert "<script>alert" not in page


async def test_nothing_outside_the_runs_is_found(runs: Path, tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "linked").symlink_to(runs / "sample")
    (tmp_path / "runs" / "half").mkdir()
    (tmp_path / "runs" / "half" / "run.yaml").symlink_to(runs / "sample" / "run.yaml")
    async with viewed(tmp_path / "runs") as client:
        assert (await client.get("/runs.json")).json == []
        for name in (
            "linked",
            "half",
            "..%2fhome",
            "%2e%2e",
            ".",
            "%2e%2e%2f%2e%2e%2fetc",
            "a%00b",
            "~",
            "linked~journal",
        ):
            url = URL(f"{client.base}/runs/{name}/", encoded=True)
            async with client.session.get(url) as answer:
                assert answer.status == 404, name
    with pytest.raises(ConfigError, match="no such folder"):
        RunCatalogue(tmp_path / "none")


async def test_runs_of_any_name_are_found_and_their_files_are_not_served(runs: Path, tmp_path: Path) -> None:
    """Also a run in whose folder a report lies, as `moot report RUN --out RUN/report.html` writes it."""
    (tmp_path / "runs" / "a").mkdir(parents=True)
    for name in ("%23", "a#b?c", "two\nlines", "<b>", "a~b", "a/b", "report.html", "x..", os.fsdecode(b"\xff")):
        shutil.copytree(runs / "own", tmp_path / "runs" / name)
        (tmp_path / "runs" / name / "report.html").write_text("x")
    async with viewed(tmp_path / "runs") as client:

        async def status(name: str, path: str = "/") -> int:
            address = f"{client.base}/runs/{quote(name, safe='')}{path}"
            async with client.session.get(URL(address, encoded=True)) as answer:
                return answer.status

        states = {row["name"]: row["state"] for row in (await client.get("/runs.json")).json}
        assert set(states) == {"%23", "a#b?c", "two\nlines", "<b>", "a~b", "a~b (2)", "report.html", "x..", "\\xff"}
        assert (states.pop("\\xff"), await status("\\xff")) == ("unreadable", 422)
        for name in states:
            for path in ("", "/", "/cases.json", f"/cases/{quote(ODD_ID, safe='')}.json"):
                assert await status(name, path) == 200, (name, path)
            assert await status(name, "/report.html") == 404


async def test_an_address_without_its_last_slash_keeps_its_query(runs: Path) -> None:
    async with viewed(runs) as client:
        for query in ("", "?report", "?a=%26&b"):
            answer = await client.get(f"/runs/a b{query}", allow_redirects=False)
            assert (answer.status, answer.headers["Location"]) == (307, f"./a%20b/{query}")


async def test_what_cannot_be_shown_is_a_page_for_a_person_and_json_for_a_program(runs: Path, tmp_path: Path) -> None:
    for name in ("cut", "settings"):
        shutil.copytree(runs / "own", tmp_path / "runs" / name)
    (verdicts,) = (tmp_path / "runs" / "cut" / "verdicts").glob("*.parquet")
    os.truncate(verdicts, 100)
    (tmp_path / "runs" / "settings" / "run.yaml").write_text("a: [")
    async with viewed(tmp_path / "runs") as client:
        expected = {
            "cut": (422, "is damaged", "moot verify"),
            "settings": (422, "run.yaml: cannot be read", "moot verify"),
            "none": (404, "no run is called &#39;none&#39; here", "It may have been moved"),
        }
        for name, (status, *texts) in expected.items():
            page = await client.get(f"/runs/{name}/", headers={"Accept": "text/html,*/*"})
            assert (page.status, page.headers["Content-Type"].partition(";")[0]) == (status, "text/html")
            assert "'unsafe-" not in page.headers["Content-Security-Policy"]
            assert all(text in page.text for text in [*texts, '"home":"../../"'])
            answer = await client.get(f"/runs/{name}/", headers={"Accept": "*/*"})
            assert (answer.status, answer.json["error"]["code"]) == (
                status,
                "not_found" if name == "none" else "unreadable",
            )

        async def states() -> bool:
            rows = (await client.get("/runs.json")).json
            return {row["state"] for row in rows} == {"unreadable"}

        await until(states)


async def test_no_reading_changes_anything(runs: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in runs.rglob("*") if path.is_file()}
    async with viewed(runs) as client:
        for path in (
            "/",
            "/runs.json",
            "/runs/sample/",
            "/runs/sample/cases.json",
            "/runs/sample/cases/sample-001.json",
        ):
            assert (await client.get(path)).status == 200
            for method in ("PUT", "DELETE", "PATCH"):
                assert (await client.ask(method, path)).status == 405
    assert before == {path: path.stat().st_mtime_ns for path in runs.rglob("*") if path.is_file()}


async def test_pages_of_another_origin_and_other_names_of_this_machine_are_refused(runs: Path) -> None:
    async with viewed(runs) as client:
        for headers in (
            {"Host": "evil.example"},
            {"Origin": "http://evil.example"},
            {"Origin": "null"},
            {"Sec-Fetch-Site": "cross-site"},
            {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"},
            {"Sec-Fetch-Site": "same-site"},
        ):
            assert (await client.get("/runs.json", headers=headers)).status == 403
        followed = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
        assert (await client.get("/", headers=followed)).status == 200, "a person who follows a link"


@pytest.mark.parametrize(
    ("token", "headers", "status", "code", "advice"),
    [
        (TOKEN, {}, 401, "unauthorized", "The terminal of moot view"),
        (None, {"Host": "evil.example"}, 403, "host", "such as http://127.0.0.1:8001/"),
        (None, {"Sec-Fetch-Site": "cross-site"}, 403, "origin", "in a tab of its own"),
    ],
)
async def test_who_is_not_let_in_reads_in_a_browser_what_to_do(
    runs: Path, token: str | None, headers: dict[str, str], status: int, code: str, advice: str
) -> None:
    async with viewed(runs, token) as client:
        page = await client.get("/runs/sample/", headers={**headers, "Accept": "text/html,*/*;q=0.8"})
        assert (page.status, page.headers["Content-Type"].partition(";")[0]) == (status, "text/html")
        assert advice in page.text
        assert page.headers["X-Content-Type-Options"] == "nosniff"
        assert "'unsafe-" not in page.headers["Content-Security-Policy"]
        assert ("WWW-Authenticate" in page.headers) == (status == 401)
        for accepted in ("application/json", "*/*"):
            answer = await client.get("/runs/sample/", headers={**headers, "Accept": accepted})
            assert (answer.status, answer.json["error"]["code"]) == (status, code)


async def test_the_token_is_shown_once_and_a_cookie_from_then_on(runs: Path) -> None:
    async with viewed(runs, TOKEN) as client:
        for path in ("/", "/runs.json", "/runs/sample/", f"/?token={TOKEN}x", "/?token=", f"/?token={TOKEN}&token=x"):
            assert (await client.get(path)).status == 401
        assert (await client.get("/runs.json", headers={"Cookie": "moot-view=x"})).status == 401
        opened = await client.get(f"/runs/sample/?token={TOKEN}")
        cookie = opened.headers["Set-Cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert TOKEN not in cookie + opened.text
        assert re.findall(r"url=(.*?)\"", opened.text) == ["/runs/sample/"]
        assert (await client.get("/runs.json")).status == 200
        evil = await client.session.get(URL(f"{client.base}//evil.example/?token={TOKEN}", encoded=True))
        assert "url=/evil.example/" in await evil.text()
        client.session.cookie_jar.clear()
        assert (await client.get("/runs.json", headers={"Authorization": f"Bearer {TOKEN}"})).status == 200


async def test_chosen_runs_are_compared(runs: Path) -> None:
    async with viewed(runs) as client:
        page = await client.get("/compare?run=sample&run=group~below")
        assert page.status == 200
        assert "below against sample, in accuracy on the same cases: " in page.text
        assert "'unsafe-" not in page.headers["Content-Security-Policy"]
        refused = {"sample": 422, "sample&run=sample": 422, "sample&run=own": 422, "sample&run=none": 404}
        for names, status in {**refused, "&run=".join("abcdefg"): 422}.items():
            assert (await client.get(f"/compare?run={names}")).status == status, names
        page = await client.get("/compare?run=sample&run=own", headers={"Accept": "text/html"})
        assert "Only runs that share cases can be compared" in page.text
        assert "Reload" not in page.text


async def test_folders_are_named_as_they_were_given(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(runs.parent)
    async with viewed(Path("runs")) as client:
        for path in ("/", "/runs/sample/", "/compare?run=sample&run=own"):
            page = await client.get(path, headers={"Accept": "text/html"})
            assert str(runs) not in page.text
        assert "moot show runs/sample" in (await client.get("/runs/sample/")).text


async def test_a_report_is_built_once_until_the_record_changes(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[str] = []

    def counted(path: Path) -> RunReport:
        built.append(path.name)
        return build_report(path)

    monkeypatch.setattr("moot.deploy.service.view.reports.build_report", counted)
    async with viewed(runs) as client:
        await asyncio.gather(*(client.get("/runs/own/") for _ in range(3)))
        assert built == ["own"]
        settings = runs / "own" / "run.yaml"
        settings.touch()
        await client.get("/runs/own/")
        assert built == ["own", "own"]
