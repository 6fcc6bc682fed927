"""Report as one self-contained HTML page: it opens from disk, loads nothing, and runs no script but its own.

The page's Content-Security-Policy names the hashes of its own scripts and styles, so that text of a model or a file
cannot run even if escaping failed. Its data are JSON in an inert element.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import sha256
from html import unescape
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup, escape

from moot.deploy.results.report.blocks import Block, Chart, Heading, bounded, one_line_title
from moot.deploy.results.report.charts import chart_data, chart_table
from moot.deploy.results.text import escape_hidden, visible
from moot.protocols.errors import ConfigError
from moot.protocols.regular_files import cause, open_regular

PAGE = Path(__file__).parent / "page"
STYLES = ("page.css",)
SCRIPTS = ("vendor/chart.umd.min.js", "charts.js", "page.js")
"""Scripts of every page, in the order of execution; each adds to `window.moot`, and the last one starts the page."""

CASES_STYLES = ("vendor/tabulator.min.css", "cases.css")
CASES_SCRIPTS = (
    "vendor/tabulator.min.js",
    "text.js",
    "blocks.js",
    "tokens.js",
    "transcript.js",
    "filters.js",
    "cases.js",
)
"""Scripts of a page with cases."""

GENERATOR = '<meta name="generator" content="moot">'
"""Element in the head of every page of moot."""

_TITLE = re.compile(r"<title>(.*?)</title>", re.DOTALL)
_SOURCE_MAP = re.compile(r"\n//# sourceMappingURL=\S+\s*$")


class Asset(NamedTuple):
    """Script or style of the page with its hash, as in a Content-Security-Policy."""

    text: str
    hash: str


def replaced_title(file: Path) -> str | None:
    """Title of the earlier page that a page in this file replaces; None where there is no file.

    Raises:
        ConfigError: the file has other content, is no regular file, or cannot be read.
    """
    try:
        if not file.exists():
            return None
        if not file.is_file():
            raise ConfigError(f"{file} is not a regular file: name another file with --out")
        with open_regular(file) as page:
            head = page.read(_HEAD_BYTES)
        if GENERATOR.encode() not in head:
            raise ConfigError(f"{file} exists and has no mark of a report of moot: name another file with --out")
        found = _TITLE.search(head.decode(errors="replace"))
        return unescape(found[1]) if found else ""
    except OSError as error:
        raise ConfigError(f"{file}: {cause(error)}") from None


_HEAD_BYTES = 20_000
"""Bytes of a page that contain its generator element."""


@cache
def asset(name: str) -> Asset:
    """Script or style of the page by file name, read once."""
    text = _SOURCE_MAP.sub("\n", (PAGE / name).read_text(encoding="utf-8"))
    return Asset(text, f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'")


class PageFiles(NamedTuple):
    """File names of the styles and scripts of a page, in order."""

    styles: Sequence[str]
    scripts: Sequence[str]


def page_files(data: Mapping[str, Any], more: Sequence[str] = ()) -> PageFiles:
    """File names of the styles and scripts of a page with these data; `more` scripts run before the last one."""
    scripts = CASES_SCRIPTS if "cases" in data else ()
    styles = CASES_STYLES if "vendor/tabulator.min.js" in (*scripts, *more) else ()
    return PageFiles((*STYLES, *styles), (*SCRIPTS[:-1], *scripts, *more, SCRIPTS[-1]))


def page_policy(data: Mapping[str, Any], connect: str = "'none'", more: Sequence[str] = ()) -> str:
    """Content-Security-Policy of a page.

    Args:
        data: the data of its scripts.
        connect: sources that its scripts may send requests to, as in `connect-src`.
        more: file names of further scripts.
    """
    styles, scripts = (" ".join(asset(name).hash for name in names) for names in page_files(data, more))
    return (
        f"default-src 'none'; script-src {scripts}; style-src {styles}; img-src data:; connect-src {connect}; "
        "base-uri 'none'; form-action 'none'"
    )


def report_html(
    title: str,
    blocks: Sequence[Block],
    data: Mapping[str, Any] | None = None,
    *,
    connect: str = "'none'",
    more: Sequence[str] = (),
) -> str:
    """HTML page of a report.

    Args:
        title: title of the window.
        blocks: blocks of the report; its headings of level 2 are linked from the top.
        data: data of the page's scripts beside the charts, such as cases and transcripts.
        connect: sources that its scripts may send requests to, as in `connect-src`; none for a page on disk.
        more: file names of further scripts, which run before `page.js`.
    """
    data = data or {}
    files = page_files(data, more)
    parts = [block.text for block in blocks if isinstance(block, Heading) and block.level == 2]
    charts = [chart_data(block) for block in blocks if isinstance(block, Chart)]
    return _template().render(
        title=title,
        policy=page_policy(data, connect, more),
        parts=parts,
        has_cases="cases" in data,
        blocks=[(type(block).__name__, block) for block in bounded(blocks)],
        styles=[Markup(asset(name).text) for name in files.styles],
        scripts=[Markup(asset(name).text) for name in files.scripts],
        data=inert_json({"charts": charts, **data}),
    )


def inert_json(data: Any) -> Markup:
    """JSON for an inert script element; `<` is escaped, so that no text can end the element, and so are the characters
    that `visible` would replace."""
    return Markup(escape_hidden(msgspec.json.encode(data).decode()).replace("<", "\\u003c"))


def blocks_html(blocks: Sequence[Block]) -> str:
    """HTML of blocks for a notebook, without page and scripts; tables replace charts."""
    shown = [chart_table(block) if isinstance(block, Chart) else block for block in blocks]
    return (
        _environment()
        .get_template("fragment.html.j2")
        .render(blocks=[(type(block).__name__, block) for block in bounded(shown)], has_cases=False)
    )


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(PAGE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda text: visible(text) if isinstance(text, str) and not isinstance(text, Markup) else text,
    )
    environment.filters["chart_table"] = chart_table
    environment.filters["one_line_title"] = one_line_title
    environment.filters["with_code"] = _with_code
    return environment


_CODE = re.compile(r"`([^`\n]+)`")


def _with_code(text: str) -> Markup:
    """A note's HTML, in which what stands between backticks is code.

    >>> _with_code("`moot show` <RUN>")
    Markup('<code>moot show</code> &lt;RUN&gt;')
    """
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(visible(text)))))


def _template() -> Template:
    return _environment().get_template("page.html.j2")
