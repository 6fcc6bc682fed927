"""Very long texts in a report: their beginnings, in every format; JSON has them whole."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from planted_records import PlantedSession
from rich.console import Console

from moot.deploy.cli.moderation.dialogue import form_text
from moot.deploy.results.report.blocks import (
    MOST_SHOWN,
    Block,
    Code,
    Heading,
    Items,
    Note,
    Pairs,
    Quote,
    Table,
    beginning,
)
from moot.deploy.results.report.html import blocks_html
from moot.deploy.results.report.render import blocks_data, report_markdown, report_string
from moot.deploy.results.run_report.debates import SentReplies, debate_page
from moot.deploy.results.show import show
from moot.deploy.results.transcript import DebateTables, build_transcripts
from moot.protocols.messages import Form

LONG = "It rained. " * 2**19
BLOCKS: list[Block] = [
    Heading(LONG, 1),
    Note(LONG),
    Items([LONG]),
    Pairs([("it", LONG)]),
    Quote(LONG, LONG),
    Code(LONG),
    Table("", ("a", "b"), [("x", LONG)], terse=Table("", ("a", "b"), [("x", LONG)])),
]
REST = "more characters: `moot show RUN CASE"


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: type(block).__name__)
def test_of_a_very_long_text_the_beginning_is_shown(block: Block) -> None:
    formats = [report_string([block]), report_markdown([block]), blocks_html([block]), json.dumps(blocks_data([block]))]
    for shown in formats:
        assert 0.2 * MOST_SHOWN < len(shown) < 5 * MOST_SHOWN
        assert "more characters" in " ".join(shown.split())


@pytest.fixture
def run(session: PlantedSession) -> Path:
    """Record of an earlier version, in which a reply of 5 MB went into a later prompt."""
    session.case("c")
    session.reply("c", "opening/agent/0", 1, text=LONG, data=json.dumps({"text": LONG}))
    session.reply("c", "round/1/agent/0", 1, text="No.", messages=json.dumps([["user", LONG]]))
    session.verdict("c")
    return session.plant()


@pytest.mark.parametrize("form", ["text", "md", "json"])
def test_an_earlier_record_with_such_replies_is_shown(run: Path, form: str) -> None:
    console = Console(file=io.StringIO(), width=80)
    show(run, "c", form=form, console=console)
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert (len(LONG) < len(shown)) == (form == "json")


def test_the_page_of_such_a_debate_is_small(run: Path) -> None:
    tables = DebateTables(run, ["c"], with_requests=True)
    (debate,) = build_transcripts(tables, ["c"])
    page = json.dumps(debate_page(debate, SentReplies(tables, ["c"])))
    assert MOST_SHOWN < len(page) < 3 * MOST_SHOWN
    assert page.count(REST) == 2, "the reply, which is its own body, and the prompt"


def test_the_beginning_of_a_beginning_is_the_same() -> None:
    assert beginning(beginning(LONG)) == beginning(LONG)
    assert len(beginning(LONG)) <= MOST_SHOWN


def test_a_form_does_not_refer_to_a_record() -> None:
    console = Console(file=io.StringIO(), width=200)
    console.print(form_text(Form("Stage", LONG)))
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert "more characters" in shown
    assert "moot show" not in shown
