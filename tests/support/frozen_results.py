"""What each door to results says of a recorded run: summary, debate, report, page, and what `moot view` serves.

Texts are as they are printed. Of JSON, numbers are compared to `DIGITS` digits, what is `OF_NOW` is left out, and of a
long list, a page's parts and a transcript there is a checksum.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from planted_records import Command
from pydantic import BaseModel
from rich.console import Console

from moot.actors.record.tables import read_table
from moot.deploy.results.figures.summary import record_summary
from moot.deploy.results.protocol_parts import document_of
from moot.deploy.results.report.blocks import Block
from moot.deploy.results.report.render import show_report
from moot.deploy.results.run_report.report import RunReport, build_report
from moot.deploy.results.show import debate_blocks, run_blocks
from moot.deploy.results.transcript import build_transcript
from moot.deploy.service.view.app import View, make_view
from moot.deploy.service.view.catalogue import RunCatalogue
from moot.deploy.studies.ablation.ablate import measure_grid
from moot.deploy.studies.ablation.grid import baseline_of, cells_of, parse_axes
from moot.deploy.studies.ablation.report import show_ablation

Said = dict[str, str]
"""What is said, by door."""

DIGITS = 12
"""Significant digits of a number that are compared: the last ones depend on the processor."""

OF_NOW = frozenset({"read_at", "open_s", "debates_per_s", "tokens_per_s", "left_s"})
"""Keys whose values depend on the time of day or on the speed of the machine."""

LONG = 60
"""Items of a list from which on it is a checksum."""

QUERIES = ("sort=rounds&desc=true", "outcome=wrong", "outcome=was debated", 'filters={"confidence":">0.6"}', "q=moon")
"""Queries of a page of cases."""

_COLUMNS = 110
_PART = re.compile(r'<h2 id="part-\d+">(.*?)</h2>')
_GLOSSARY = "What the words mean"


def of_run(run: Path, *, page: bool) -> Iterator[tuple[str, str]]:
    """What is said of a run, in its report's page, too; its record is read once for all forms."""
    report = build_report(run)
    (data,) = report.runs
    yield from _forms(f"show {run}", record_summary(data), lambda: run_blocks(data))
    yield f"show {run}, in a notebook, digest", f"{digest(record_summary(data)._repr_html_())}\n"
    yield (
        f"report {run} --format md, parts",
        written(_parts(_printed(record_summary(data), lambda: report.blocks, "md"))),
    )
    yield f"report {run} --format json, without summaries", written(_document(report))
    if page:
        yield f"report {run}, page", written(page_content(report.html()))


def of_case(run: Path, case_id: str) -> Iterator[tuple[str, str]]:
    """What is said of a debate."""
    debate = build_transcript(run, case_id)
    shown = document_of(debate) or debate
    yield f"show {run} {case_id}", _printed(shown, lambda: debate_blocks(debate), "text")
    markdown = _printed(shown, lambda: debate_blocks(debate), "md")
    yield f"show {run} {case_id} --format md, digest", f"{digest(markdown)}\n"
    verbose = _printed(shown, lambda: debate_blocks(debate, verbose=True), "md")
    yield f"show {run} {case_id} --verbose --format md, digest", f"{digest(verbose)}\n"
    yield f"show {run} {case_id} --format json, outline", written(_outline(json.loads(shown.model_dump_json())))


def _forms(door: str, found: BaseModel, blocks: Callable[[], Iterable[Block]]) -> Iterator[tuple[str, str]]:
    yield door, _printed(found, blocks, "text")
    yield f"{door} --format md", _printed(found, blocks, "md")
    yield f"{door} --format json", written(json.loads(_printed(found, blocks, "json")))


def _printed(found: BaseModel, blocks: Callable[[], Iterable[Block]], form: str) -> str:
    sink = io.StringIO()
    show_report(found, blocks, form, Console(file=sink, width=100))
    return sink.getvalue()


def of_command(command: Command, line: str) -> Iterator[tuple[str, str]]:
    """What a command prints, and the page that it writes with `--out FOLDER`."""
    code, out, err = command(*shlex.split(line))
    if code:
        yield line, f"{out}{err}exit code {code}\n"
        return
    yield line, f"{written(json.loads(out))}{err}" if "--format json" in line else f"{out}{err}"
    if " --out " in line:
        page = Path(line.rpartition(" --out ")[2], "index.html")
        yield f"{line}, page", written(page_content(page.read_text("utf-8")))


def of_runs(*runs: Path) -> Iterator[tuple[str, str]]:
    """What is said of several runs over the same cases."""
    report = build_report(*runs)
    door = f"report {' '.join(map(str, runs))}"
    yield f"{door} --format text", _printed(record_summary(report.runs[0]), lambda: report.blocks, "text")
    yield f"{door} --format json, without summaries", written(_document(report))
    yield f"{door}, page", written(page_content(report.html()))
    yield "view, page of several runs", written(page_content(asyncio.run(_compared(runs))))


async def _compared(runs: Sequence[Path]) -> str:
    catalogue = RunCatalogue(runs[0].parent)
    view = make_view(catalogue)
    try:
        return (await _get(view, "/compare", "&".join(f"run={run.name}" for run in runs))).decode()
    finally:
        await view.close()
        await catalogue.close()


def of_grid(folder: Path, over: Sequence[str]) -> Iterator[tuple[str, str]]:
    """What `moot ablate` says of a finished grid; the command would first check that the prompts are those of today."""
    axes = parse_axes(over)
    ablation = measure_grid(folder, axes, cells_of(axes), baseline_of(axes, ()))
    for form in ("text", "md", "json"):
        sink = io.StringIO()
        show_ablation(ablation, form, Console(file=sink, width=100))
        yield f"ablate --format {form}", written(json.loads(sink.getvalue())) if form == "json" else sink.getvalue()


def _document(report: RunReport) -> dict[str, Any]:
    """A report as data, without what `moot show` and `moot explain` say."""
    document: dict[str, Any] = json.loads(report.document().model_dump_json())
    del document["summaries"]
    document["parts"] = [part for part in document["parts"] if part["title"] != _GLOSSARY]
    return document


def _parts(markdown: str) -> dict[str, str]:
    before, *parts = re.split(r"(?m)^## (.*)$", markdown)
    return {"": digest(before), **{title: digest(text) for title, text in zip(parts[::2], parts[1::2], strict=True)}}


def _outline(value: dict[str, Any]) -> dict[str, Any]:
    """A model's short values, and checksums of the others, and of each item of its lists."""

    def of(part: Any) -> Any:
        if isinstance(part, list):
            return [digest(each) for each in part]
        return part if part is None or isinstance(part, int | float) else digest(part)

    return {name: of(part) for name, part in value.items()}


def page_content(html: str) -> dict[str, Any]:
    """Content of a page: checksums of the body by part, and of the data by chart and transcript; cases in full."""
    body, _, rest = html.partition("<body>")[2].partition('<script type="application/json" id="data">')
    data = json.loads(rest.partition("</script>")[0])
    head, *parts = _PART.split(body)
    content: dict[str, Any] = {
        "title": re.findall("<title>(.*?)</title>", html, re.DOTALL)[0],
        "before the parts": digest(head),
    }
    content["parts"] = {
        title: digest(text) for title, text in zip(parts[::2], parts[1::2], strict=True) if title != _GLOSSARY
    }
    content["charts"] = {chart["name"]: digest(chart) for chart in data.pop("charts")}
    transcripts = data.pop("transcripts", {})
    for each in [transcripts, *transcripts.pop("others", ())]:
        packed = each.pop("packed", {})
        content.setdefault("transcripts", []).append({**each, **{case: digest(text) for case, text in packed.items()}})
    return {**content, **data}


def served(run: Path, case_id: str | None) -> Iterator[tuple[str, str]]:
    """What `moot view` serves of a run."""
    yield f"view {run}", written(asyncio.run(_served(run, case_id)))


async def _served(run: Path, case_id: str | None) -> dict[str, Any]:
    """Its row in the list of runs; its cases, sorted and filtered; its figures, its charts and one debate as those of a
    run under way; forms that wait for a person."""
    catalogue = RunCatalogue(run)
    view = make_view(catalogue)
    at = f"/runs/{quote(run.name, safe='')}"
    try:
        content: dict[str, Any] = {"cases": await _json(view, f"{at}/cases.json")}
        for query in QUERIES:
            found = await _json(view, f"{at}/cases.json", query)
            content[query] = [row["case"] for row in found["rows"]] if "rows" in found else found
        content["live"] = await _last_events(view, f"{at}/events")
        if case_id is not None:
            debate = await _get(view, f"{at}/cases/{quote(case_id, safe='')}/events")
            content["debate"] = digest(debate.decode())
        content["forms"] = await _json(view, f"{at}/decisions.json")
        (row,) = await _json(view, "/runs.json")
        while row["is_pending"]:
            await asyncio.sleep(0.01)
            (row,) = await _json(view, "/runs.json")
        return {"row": row, **content}
    finally:
        await view.close()
        await catalogue.close()


async def _last_events(view: View, path: str) -> dict[str, Any]:
    """The last event of each kind: how often figures are sent depends on the time that they take."""
    events = (await _get(view, path)).decode().split("\n\n")
    parts = (dict(line.split(": ", 1) for line in event.splitlines() if ": " in line) for event in events)
    return {part["event"]: json.loads(part["data"]) for part in parts if "event" in part}


async def _json(view: View, path: str, query: str = "") -> Any:
    return json.loads(await _get(view, path, query))


async def _get(view: View, path: str, query: str = "") -> bytes:
    body = bytearray()
    requests = iter([{"type": "http.request", "body": b"", "more_body": False}])

    async def receive() -> dict[str, Any]:
        for request in requests:
            return request
        return await asyncio.Future()  # nobody disconnects

    async def send(message: Mapping[str, Any]) -> None:
        body.extend(message.get("body", b""))

    scope = {
        "type": "http",
        "method": "GET",
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": quote(query, safe="=&").encode(),
        "headers": [(b"host", b"127.0.0.1")],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
        "scheme": "http",
        "root_path": "",
        "http_version": "1.1",
        "asgi": {"version": "3.0"},
    }
    await view(scope, receive, send)
    return bytes(body)


def chosen_case(run: Path) -> str | None:
    """The case with the longest debate."""
    rounds = {row["case_id"]: row["rounds"] or 0 for row in read_table(run, "verdicts", ["rounds"]).to_pylist()}
    cases = sorted(read_table(run, "cases", [])["case_id"].to_pylist())
    return max(cases, key=lambda case: rounds.get(case, -1), default=None)


def written(value: Any) -> str:
    """JSON in lines that differ where values do: what fits into a line is in one."""
    return f"{_lines(_comparable(value), 0)}\n"


def _lines(value: Any, indent: int) -> str:
    line = json.dumps(value, ensure_ascii=False)
    if len(line) + indent <= _COLUMNS or not isinstance(value, dict | list):
        return line
    is_list = isinstance(value, list)
    items = (
        [("", each) for each in value]
        if isinstance(value, list)
        else [(f"{json.dumps(key)}: ", each) for key, each in value.items()]
    )
    texts = [f"\n{' ' * (indent + 1)}{name}{_lines(of, indent + 1)}" for name, of in items]
    begin, end = "[]" if is_list else "{}"
    return f"{begin}{','.join(texts)}\n{' ' * indent}{end}"


def _comparable(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, list):
        items = [_comparable(each) for each in value]
        return items if len(items) < LONG else [f"{len(items)} items", digest(json.dumps(items)), items[0], items[-1]]
    if isinstance(value, dict):
        return {key: "..." if key in OF_NOW else _comparable(each) for key, each in value.items()}
    return value


def digest(value: Any) -> str:
    """Short checksum of JSON values or of a text."""
    text = value if isinstance(value, str) else json.dumps(_comparable(value))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
