"""Which fields of a case each protocol reads, and what a run says of those that it does not."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from places import ROOT
from short_protocols import RetrievalProtocol
from structlog.testing import capture_logs

from moot.deploy.runs.case_columns import FIELDS, CaseColumns
from moot.deploy.runs.caveats import log_caveats
from moot.deploy.runs.dry_run import estimate_calls
from moot.deploy.runs.dry_run_stubs import StubAgentPool
from moot.deploy.runs.open_run import OpenRun
from moot.deploy.runs.prepare import Prepared, prepare
from moot.deploy.runs.run_config import RunConfig
from moot.protocols.case import Case, Image, JudgedReply
from moot.protocols.messages import Ask, AskResult
from moot.protocols.registry import PROTOCOLS, make_protocol
from moot.protocols.tasks import open_task

MARKS = {"passage": "zapassage", "choices": "zachoices", "documents": "zadocuments"}
SHORT = {"evince": {"max_rounds": 1}, "socrasynth": {"max_rounds": 1, "topics.count": 1}}
PICTURE = Image("image/png", b"\x89PNG not really a picture")


def marked(protocol: str, *fields: str) -> Case:
    """A case of a kind that the protocol can debate, with a mark in each of the fields."""
    claim = PROTOCOLS[protocol].settings_model.__name__ == "CedaSettings"
    judged = JudgedReply(reply="It swims.") if protocol == "judge-panel" else None
    labels = ("supported", "hallucinated") if claim else ("A", "B")
    chosen = {} if claim else {"choices": ("it flies", "it swims")}
    given: dict[str, Any] = {
        "passage": f"{MARKS['passage']} swims in the sea.",
        "choices": (f"it flies {MARKS['choices']}", "it swims"),
        "documents": (f"{MARKS['documents']} swims and flies in the sea.",),
        "images": (PICTURE,),
    }
    of_case = chosen | {field: given[field] for field in fields}
    question = "Which of them is it that swims and flies in the sea?"
    return Case(id="c", question=question, labels=labels, judged=judged, **of_case)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The fields whose marks come into a request."""
    found: set[str] = set()
    answer = StubAgentPool.answer

    async def noted(pool: StubAgentPool, ask: Ask) -> AskResult:
        text = "\n".join(message.content for message in pool.templates.render(ask.template, ask.slots))
        found.update(field for field, mark in MARKS.items() if mark in text)
        found.update(["images"] if ask.images else [])
        return await answer(pool, ask)

    monkeypatch.setattr(StubAgentPool, "answer", noted)
    return found


def prepared(protocol: str, *cases: dict[str, Any], **more: Any) -> Prepared:
    config = RunConfig.build(None, {"protocol": protocol, "engine": "inline", "out": "runs/x", **more})
    return prepare(config, task=list(cases) or None)


def row_of(case: Case) -> dict[str, Any]:
    return {"question": case.question, "labels": case.labels, "judged": case.judged}


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_protocol_reads_what_it_declares_and_nothing_else(name: str, seen: set[str]) -> None:
    for fields in ((field,) for field in FIELDS):
        if name == "ceda" and fields == ("choices",):
            continue  # a claim has none
        case = marked(name, *fields)
        seen.clear()
        estimate_calls(prepared(name, row_of(case), set=SHORT.get(name, {})), [case])
        declared = set(make_protocol(name).reads_of(case) or ())
        assert seen & set(fields) == declared & set(fields), fields


def test_the_page_of_data_has_the_same() -> None:
    rows = [line.split("|")[1:-1] for line in (ROOT / "docs/start/data.md").read_text("utf-8").splitlines()]
    said = {cells[0].strip(" `"): [cell.strip() for cell in cells[1:]] for cells in rows if len(cells) == 5}
    for name in PROTOCOLS:
        reads = make_protocol(name).reads or ()
        assert said[name] == ["yes" if field in reads else "no" for field in FIELDS]


def test_a_protocol_reads_no_documents_where_it_is_set_to_retrieve_none() -> None:
    for name, setting in (("selene", "evidence.passages"), ("constructor-auditor", "passages")):
        case = msgspec.structs.replace(marked("selene", "documents"), choices=())
        assert "documents" in (make_protocol(name).reads_of(case) or ())
        assert "documents" not in (make_protocol(name, {setting: 0}).reads_of(case) or ())
    assert not make_protocol("single-agent", {"evidence.passages": 0}).reads_documents


SHOP = {"question": "Is the shop open on Sundays?", "labels": ["Yes", "No"]}
TEXTS = ["On Sundays the shop is closed all day."]


def warnings(run: Prepared) -> str:
    with capture_logs() as logs:
        log_caveats(run)
    return "\n".join(each["event"] for each in logs)


@pytest.mark.parametrize("protocol", ["socrasynth", "selene"])
def test_an_unread_column_is_a_warning_that_names_a_protocol(protocol: str, tmp_path: Path) -> None:
    file = tmp_path / "shop.jsonl"
    rows = [{**SHOP, "texts": TEXTS, "answer": "No"}, {**SHOP, "texts": [], "answer": "No", "question": "Is it open?"}]
    file.write_text("\n".join(map(json.dumps, rows)))
    listed = prepared(protocol, {**SHOP, "documents": TEXTS}, SHOP)
    of_file = prepared(protocol, task=f"cases:{file}:documents=texts")
    if protocol == "selene":
        assert (warnings(listed), warnings(of_file)) == ("", "")
        assert of_file.columns_read == "selene reads `question`, `labels`, `documents` (column 'texts')"
        return
    assert "1 of 2 cases have `documents`, which socrasynth does not read: selene, " in warnings(listed)
    assert "1 of 2 cases have `documents` (column 'texts'), which socrasynth" in warnings(of_file)
    assert of_file.columns_read.endswith("; not read: `documents` (column 'texts')")


def test_a_protocol_that_could_not_debate_the_case_is_not_named() -> None:
    said = warnings(prepared("socrasynth", {"question": "Should zoos be closed?", "documents": TEXTS}))
    assert "constructor-auditor" in said or "selene" in said
    assert "ceda" not in said
    assert "evince" not in said, "it needs labels"


def test_of_constructor_auditor_the_documents_beside_a_passage_are_unread() -> None:
    one, both = {**SHOP, "documents": TEXTS}, {**SHOP, "documents": TEXTS, "passage": "The shop is closed."}
    said = warnings(prepared("constructor-auditor", one, both))
    assert "1 of 2 cases have `documents`, which constructor-auditor does not read" in said


@pytest.mark.parametrize(
    ("protocol", "off"),
    [
        ("selene", {"evidence.passages": 0}),
        ("single-agent", {"evidence.passages": 0}),
        ("evince", {"retrieve": False, "crit.max_depth": 0}),
        ("constructor-auditor", {"passages": 0}),
    ],
)
def test_what_the_settings_switch_off_is_a_warning_that_says_so(protocol: str, off: dict[str, Any]) -> None:
    given = {**SHOP, "documents": TEXTS}
    run = prepared(protocol, given, set=off)
    assert f"have `documents`, which {protocol} does not read under these settings" in warnings(run)
    read = f"{protocol} reads `question`, `labels`"
    assert run.columns_read == f"{read}; not read under these settings: `documents`"
    usual = prepared(protocol, given)
    assert (warnings(usual), usual.columns_read) == ("", f"{read}, `documents`")


def test_what_an_own_protocol_leaves_out_is_no_warning() -> None:
    given = {**SHOP, "documents": TEXTS}
    config = RunConfig.build(None, {"engine": "inline", "out": "runs/x"})
    assert warnings(prepare(config, task=[given], protocol=RetrievalProtocol())) == ""


def test_a_case_that_comes_by_itself_is_warned_of_once(tmp_path: Path) -> None:
    run = OpenRun(RunConfig(out=str(tmp_path / "run"), engine="inline", protocol="socrasynth"))
    with capture_logs() as logs:
        for number in range(3):
            run.prepare_case({**SHOP, "id": str(number), "documents": TEXTS})
    assert [each["event"].partition(",")[0] for each in logs] == ["`documents`"]


def test_cases_that_can_be_read_once_only_are_warned_of_as_they_come(monkeypatch: pytest.MonkeyPatch) -> None:
    line = json.dumps({"claim": "It is open.", "documents": TEXTS})
    stream = io.TextIOWrapper(io.BytesIO(f"{line}\n{line}".encode()))
    monkeypatch.setattr("sys.stdin", stream)
    run = prepared("socrasynth", task="claims:-")
    assert run.checked is None
    with capture_logs() as logs:
        assert len(list(run.cases())) == 2
    assert [each["event"].partition(",")[0] for each in logs] == ["`documents`"]


def test_columns_of_a_dataset_are_warned_of_before_the_first_row() -> None:
    columns = CaseColumns(make_protocol("socrasynth"))
    with capture_logs() as logs:
        columns.warn_of_columns({"question": "q", "documents": "texts", "passage": "context"})
        columns.warn_of_columns({"documents": "texts"})
    assert [each["event"].partition(",")[0] for each in logs] == ["`documents` (column 'texts')"]


UNMAPPED = "this column holds a few words of text"


@pytest.mark.parametrize(
    ("task", "row", "named"),
    [
        ("cases:{}", {"question": "Why?", "answer": "so", "notes": UNMAPPED}, "`notes`"),
        ("cases:{}", {"question": "Why?", "answer": "so", "notes": [UNMAPPED], "site": "a.org"}, "`notes`"),
        ("cases:{}:passage=notes", {"question": "Why?", "answer": "so", "notes": UNMAPPED}, ""),
        ("cases:{}:passage=", {"question": "Why?", "answer": "so", "passage": UNMAPPED}, ""),
        ("cases:{}:question=asked.text", {"asked": {"text": UNMAPPED}, "answer": "so"}, ""),
        ("claims:{}", {"claim": "It is so.", "document": UNMAPPED}, "`document`"),
        ("claims:{}", {"claim": "It is so.", "passage": UNMAPPED}, ""),
        ("subjects:{}", {"subject": "Is it?", "context": UNMAPPED}, "`context`"),
        ("replies:{}", {"reply": "It is.", "context": UNMAPPED}, "`context`"),
        ("boolq:{}", {"question": "is it", "answer": True, "idx": UNMAPPED}, ""),
        ("cases:{}", {"question": "Why?", "answer": "so", "meta": {"by": [{"notes": UNMAPPED}]}}, "`meta`"),
    ],
)
def test_text_that_no_field_takes_is_remarked_on(task: str, row: dict[str, Any], named: str, tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text(json.dumps(row))
    summary = open_task(task.format(file)).validate()
    assert summary is not None
    remarks = [remark for remark in summary.remarks if "no field of a case" in remark]
    assert len(remarks) == bool(named)
    assert named in "".join(remarks)


def test_text_that_no_field_takes_is_found_in_csv_and_parquet(tmp_path: Path) -> None:
    csv = tmp_path / "rows.csv"
    csv.write_text(f"question,answer,notes,year\nWhy is it?,so,{UNMAPPED},1999\n")
    parquet = tmp_path / "rows.parquet"
    cells = {"question": ["Why?"], "answer": ["so"], "notes": [UNMAPPED], "year": [1999]}
    pq.write_table(pa.table(cells), parquet)
    for file in (csv, parquet):
        summary = open_task(f"cases:{file}").validate()
        assert summary is not None
        assert ["`notes`" in remark for remark in summary.remarks] == [True]


def unmapped_in(rows: list[dict[str, Any]], file: Path) -> list[str]:
    file.write_text(
        "\n".join(json.dumps({"question": f"Why {n}?", "answer": "so"} | row) for n, row in enumerate(rows))
    )
    summary = open_task(f"cases:{file}").validate()
    assert summary is not None
    return [remark for remark in summary.remarks if "no field of a case" in remark]


@pytest.mark.parametrize(
    "cells",
    [
        ["from the website"],
        ["from the website", "from the editor"],
        ["ウェブサイトから引用した"],
        ["从网站上抄下来的文字"],
        ["웹사이트에서 가져온 글"],
        ["यह जानकारी वेबसाइट से"],
        [*[""] * 400, UNMAPPED],
        [UNMAPPED] * 5,
    ],
)
def test_short_and_late_text_that_no_field_takes_is_remarked_on(cells: list[str], tmp_path: Path) -> None:
    (remark,) = unmapped_in([{"notes": each} for each in cells], tmp_path / "rows.jsonl")
    assert "`notes`" in remark


@pytest.mark.parametrize(
    "cells",
    [
        ["college medicine exam", "college physics exam", *["college medicine exam"] * 4],
        ["https://a.org/why-it-is-so", "see https://b.org/and/so/on"],
        ["2024-11-28T10:00:00", "Sat Nov 28 22:33:04 UTC 2026", "28 November 2026", "2026年11月28日"],
        ["3f2504e0-4f89-11d3-9a0c", "claude-3-haiku-20240307", "cases_of_the_first_file"],
        ["0.1 0.2 0.3 0.4 0.5 0.6", "[1, 2, 3, 4, 5, 6, 7]", "A B C D E F"],
        ["東京都", "大阪府", "Ada Lovelace", "internationalisation"],
    ],
)
def test_names_categories_dates_and_numbers_are_no_text(cells: list[str], tmp_path: Path) -> None:
    assert unmapped_in([{"notes": each} for each in cells], tmp_path / "rows.jsonl") == []


def test_the_remedy_does_not_offer_the_column_itself_which_may_be_the_right_answer(tmp_path: Path) -> None:
    (remark,) = unmapped_in([{"explanation": UNMAPPED}], tmp_path / "rows.jsonl")
    assert "=explanation" not in remark
    assert "if models may see" in remark
