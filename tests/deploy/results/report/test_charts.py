"""Charts of a page: its data are the numbers of the chart, an unknown one is null, and each chart has a table."""

from __future__ import annotations

import json
import math
import re

from planted_records import CONTROL, EVIL

from moot.deploy.results.report.blocks import Chart, Guide, Series
from moot.deploy.results.report.charts import MOST_POINTS, MOST_ROWS, chart_data, chart_table
from moot.deploy.results.report.html import SCRIPTS, STYLES, asset, blocks_html, report_html
from moot.deploy.results.text import visible_line

CHART = Chart(
    "plane",
    EVIL,
    [
        Series(EVIL, [0.5, 1.0], [None, math.nan], cases=[EVIL, "b"]),
        Series("means", [1, 2], [0.123456789, 0.5], low=[0.1, 0.4], high=[0.2, 0.6], mark="line"),
    ],
    x_label="D",
    guides=[Guide("threshold", x=0.5)],
)


def embedded(page: str) -> dict[str, object]:
    """The data that a page's scripts read."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return json.loads(found.group(1))  # type: ignore[no-any-return]


def test_a_page_has_the_numbers_of_its_charts_and_hostile_names_stay_data() -> None:
    page = report_html("t", [CHART])
    data = embedded(page)
    first, second = data["charts"][0]["series"]  # type: ignore[index]
    assert first["y"] == [None, None]
    assert first["name"] == visible_line(EVIL)
    assert first["cases"] == [EVIL, "b"], "a case is looked up by it"
    assert not CONTROL.search(page)
    assert second["y"] == [0.12346, 0.5]
    assert second["low"] == [0.1, 0.4]
    assert page.count("<script") == 1 + len(SCRIPTS)


def test_a_page_runs_its_own_scripts_only() -> None:
    page = report_html("t", [])
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    assert "unsafe" not in policy.group(1)
    for name in (*SCRIPTS, *STYLES):
        assert asset(name).hash.replace("'", "&#39;") in policy.group(1)


def test_a_chart_has_a_table_of_its_numbers() -> None:
    table = chart_table(CHART)
    assert table.rows[2] == ["means", "1", "0.1235", "0.1", "0.2", ""]
    assert table.rows[0] == [EVIL, "0.5", "unknown", "unknown", "unknown", EVIL]
    assert "<table" in blocks_html([CHART])
    assert "<canvas" not in blocks_html([CHART])


def test_a_very_long_series_is_sampled_and_says_so() -> None:
    many = list(range(3 * MOST_POINTS))
    chart = Chart("many", "t", [Series("s", many, many)])
    series = chart_data(chart)["series"][0]
    assert series["x"][:2] == [0, 3]
    assert len(series["x"]) == MOST_POINTS
    assert series["sampled"] == "1 of 3 points"
    assert len(chart_table(chart).rows) == MOST_ROWS
