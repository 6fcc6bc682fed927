"""The analysis as one self-contained page: no script, no other file; everything from outside is escaped."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template, select_autoescape

from moot.deploy.analysis.analysis import Analysis
from moot.deploy.analysis.facts_words import facts_in_words
from moot.deploy.analysis.table import Table
from moot.deploy.reading.simulated import SIMULATED
from moot.deploy.reading.text import visible

MOST_ROWS = 200
"""Rows of a table that the page shows; the files hold all."""

_CAPTIONS = {
    "bands": "Log-probability along the replies: mean, middle half and middle four fifths",
    "trajectories": "Mean token probability by position; the dotted lines bound the phases",
    "strengths": "Spearman's rho of judged quality with every log-probability feature",
    "score_distributions": "The judges' scores: a reply's mean over its marks, rounded to a whole score",
    "divergences": "How often the signals disagree, with 95 % intervals",
}


def page(found: Analysis, pictures: Mapping[str, bytes]) -> str:
    """The page.

    Args:
        found: the analysis.
        pictures: SVG files by name.
    """
    shown = [table for table in found.tables.values() if table.rows and not table.in_files_only]
    more = [table for table in found.tables.values() if table.rows and table.in_files_only]
    return _template().render(
        simulated=SIMULATED if found.facts.simulated else "",
        facts=[visible(line) for line in facts_in_words(found.facts)],
        settings=found.settings.model_dump(),
        figures=[
            {"name": name.removesuffix(".svg"), "caption": _CAPTIONS[name.removesuffix(".svg")], "uri": _uri(picture)}
            for name, picture in pictures.items()
        ],
        tables=[_shown(table) for table in shown],
        more=[_shown(table) for table in more],
    )


def _shown(table: Table) -> dict[str, object]:
    return {
        "name": table.name,
        "title": table.title,
        "notes": table.notes,
        "header": table.header(),
        "numeric": [column.digits is None or column.is_p or column.interval for column in table.shown],
        "rows": [[visible(cell) for cell in table.cells(row)] for row in table.rows[:MOST_ROWS]],
        "left": max(0, len(table.rows) - MOST_ROWS),
    }


def _uri(svg: bytes) -> str:
    """A picture as an address that holds it: the page needs no other file, and no script in a picture would run."""
    return f"data:image/svg+xml;base64,{b64encode(svg).decode()}"


@cache
def _template() -> Template:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html.j2")
