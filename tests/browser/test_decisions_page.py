"""Debates that wait for a person, answered in a browser: after their run, and while it waits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hostile_texts import NAME
from opened_page import Apart, OpenPage, Serve, Start
from viewed_runs import address_of

import moot
from moot.actors.record.tables import read_table
from moot.deploy.results.figures.summary import summarise
from moot.deploy.runs.decide import pending_forms

pytestmark = [pytest.mark.browser, pytest.mark.needs("program/chromium", "module/playwright")]

SUBJECT: dict[str, Any] = {"task": "sample-subjects", "protocol": "socrasynth", "limit": 1, "engine": "inline"}


def decided(run: Path) -> list[str]:
    """What a person decided so far, by path."""
    turns = read_table(run, "turns", ["role"]).to_pylist()
    return [row["path"] for row in turns if row["role"] == "person"]


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 360)])
def test_a_run_that_has_ended_shows_its_forms_and_takes_an_answer(
    scheme: str, width: int, tmp_path: Path, apart: Apart, open_page: OpenPage, serve: Serve
) -> None:
    out = tmp_path / "runs" / NAME
    apart(lambda: moot.run(**SUBJECT, attended=True, out=out))
    (asked,) = pending_forms(out)
    address = serve(tmp_path / "runs")
    opened = open_page(address, scheme=scheme, width=width)
    page = opened.page
    page.get_by_role("link", name="svg onload").click()
    page.get_by_role("heading", name="Debates that wait for you").wait_for()
    assert opened.texts(".form h3") == [f"{asked.case_id}: {asked.form.title}"]
    assert opened.texts(".form > pre") == [" ".join(asked.form.body.split())]
    (case,) = read_table(out, "cases", ["question"]).to_pylist()
    assert opened.texts(".form .asked") == [case["question"]]
    assert all(opened.texts(".last-replies pre"))
    assert page.locator(".form button").count() == len(asked.form.actions)
    assert not opened.faint()
    assert opened.overflow() <= 0
    draft = page.locator(".form textarea").first
    draft.fill("Only one: <b>topic</b>")
    page.get_by_role("button", name="edit, with this text").click()
    page.locator(".form").wait_for(state="detached")
    page.get_by_text(f"{asked.case_id}: recorded; run the run's own command to resume").wait_for()
    assert decided(out) == [asked.path]
    assert not pending_forms(out)
    done = apart(lambda: moot.run(**SUBJECT, attended=True, out=out))
    assert len(done.parked) == 1, "the next form waits"
    assert "Only one" in str(read_table(out, "turns", ["data"]).to_pylist())


def test_a_watched_run_goes_on_with_each_answer(tmp_path: Path, start: Start, open_page: OpenPage) -> None:
    out = tmp_path / "watched"
    options = ("--task", "sample-subjects", "--protocol", "socrasynth", "--limit", "1", "--engine", "inline")
    models = ("--model", "simulated?latency_ms=200", "--max-tokens", "1000000")
    process = start("run", *options, *models, "--quiet", "--watch", "--attended", "--out", str(out))
    opened = open_page(address_of(process))
    page = opened.page
    page.get_by_role("heading", name="Debates that wait for you").wait_for()
    page.locator(".live-facts dd").get_by_text("left of 1,000,000").wait_for()
    (asked,) = opened.texts(".form h3 a")
    page.get_by_role("button", name="go on").click()
    page.locator(".form").wait_for(state="detached")
    page.get_by_text(f"{asked}: the debate continues").wait_for()
    page.get_by_role("button", name="end", exact=True).click()  # of the next form, which comes when the round has ended
    page.get_by_text("Finished: 1 of 1 cases").wait_for()
    assert process.wait(60) == 0
    assert len(decided(out)) == 2
    (head,) = opened.texts("p.strong[role=status]")
    assert f"To read it: moot view {out}" in head
    assert "There is no right answer to compare with" in head
    assert not page.locator(".form").count()
    facts = dict(zip(opened.texts(".live-facts dt"), opened.texts(".live-facts dd"), strict=True))
    assert (facts["debates open"], facts["tokens"]) == ("0", f"{summarise(out).tokens_paid:,}")
    assert "time left" not in facts
    assert read_table(out, "verdicts", ["failed"]).to_pylist()[0]["failed"] is False
