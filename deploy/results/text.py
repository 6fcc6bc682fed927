"""Text formatting: escapes text of models and files for terminals, Markdown and JSON; formats numbers.

Text of a model is data. It must not move the cursor, colour the terminal, reverse the reading direction, or end a
Markdown block: control characters and invisible marks are replaced by visible ones.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any, Literal, get_args

import msgspec
from pydantic import BaseModel

from moot.protocols.errors import unknown_name


def natural_sort_key(path: str) -> tuple[tuple[int, int, str], ...]:
    """Natural sort key: orders the numbers in paths as numbers.

    >>> natural_sort_key("round/2/agent/0") < natural_sort_key("round/10/agent/0")
    True
    """
    return tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in path.split("/"))


Format = Literal["text", "json", "md"]
"""Output format of a result: for a terminal, as JSON, or as Markdown."""

Interval = tuple[float, float]
"""Ends of a confidence interval of a share, both in [0, 1]."""

_ACTIVE = (
    "\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e0fff"
)
_HIDDEN = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{_ACTIVE}]")
_HIDDEN_IN_JSON = re.compile(f"[\x7f-\x9f{_ACTIVE}]")
_MARKDOWN = re.compile(r"[\\`*_\[\]|~#@$]|&(?=#?\w+;)|:(?=//|[\w+-]+:)|(?<=www)\.")
"""Markdown anywhere in a line; a colon only in addresses and names of emoji, an ampersand only in entities."""

_AT_START = re.compile(r"^(?:[-+=](?=[-+=:\s]|$)|[:>]|\d+(?=[.)](?:\s|$)))")
"""Markdown at the start of a line only."""


def visible(text: str) -> str:
    r"""Text with control characters and direction marks escaped; line ends and tabs stay.

    >>> visible("a\x1b[2Jb\u202ec\r\nd")
    'a␛[2Jb<U+202E>c\nd'
    """
    return _HIDDEN.sub(_mark, text.replace("\r\n", "\n"))


def visible_line(text: str) -> str:
    r"""Text escaped as by `visible`, on one line: runs of white space become one space.

    >>> visible_line(" a\n  b ")
    'a b'
    """
    return " ".join(visible(text).split())


def _mark(found: re.Match[str]) -> str:
    code = ord(found.group())
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else f"<U+{code:04X}>"


def shell_case_id(case_id: str) -> str:
    """Case id quoted for a shell; ids come from files and may contain any character.

    >>> shell_case_id("a b"), shell_case_id("-1")
    ("'a b'", '-- -1')
    """
    return ("-- " if case_id.startswith("-") else "") + visible_line(shlex.quote(case_id))


def shell_path(path: object) -> str:
    """Path or URI quoted for a shell, on one line.

    >>> shell_path("runs/a"), shell_path("runs/a b")
    ('runs/a', "'runs/a b'")
    """
    return visible_line(shlex.quote(str(path)))


def markdown_inline(text: str) -> str:
    r"""Text with Markdown and HTML escaped, on one line, for a heading, a paragraph or a list item.

    >>> print(markdown_inline("- a: | <b> `c`"))
    \- a: \| &lt;b> \`c\`
    """
    return _AT_START.sub(lambda found: found[0] + "\\" if found[0].isdigit() else "\\" + found[0], _cell(text))


def _cell(text: str) -> str:
    """Text of a table cell with Markdown and HTML escaped; a cell cannot begin a list or a quote."""
    return _MARKDOWN.sub(lambda found: "\\" + found.group(), visible_line(text)).replace("<", "&lt;")


def markdown_quote(text: str) -> str:
    r"""Block quote of a text, by line, with Markdown and HTML escaped.

    >>> markdown_quote("a *b*\n\n1. c\n# d")
    '> a \\*b\\*\n>\n> 1\\. c  \n> \\# d'
    """
    lines = [markdown_inline(line) for line in visible(text).split("\n")]
    # Two trailing spaces are a line break if another line follows; a blank line ends a paragraph.
    ends = ["  " if line and after else "" for line, after in zip(lines, [*lines[1:], ""], strict=True)]
    return "\n".join(f"> {line}{end}" if line else ">" for line, end in zip(lines, ends, strict=True))


def markdown_block(text: str) -> str:
    """Fenced block of a text; the fence is longer than any run of backticks in it, so the text cannot close it."""
    shown = visible(text)
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", shown)), default=0))
    return f"{fence}text\n{shown}\n{fence}"


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Markdown table; cells are escaped, the header is not."""
    lines = [f"| {' | '.join(header)} |", f"|{'---|' * len(header)}"]
    lines += [f"| {' | '.join(map(_cell, row))} |" for row in rows]
    return "\n".join(lines)


def safe_json(result: BaseModel) -> str:
    """Indented JSON of a result with the characters escaped that `visible` would replace."""
    return escape_hidden(msgspec.json.format(result.model_dump_json(), indent=2))


def escape_hidden(json: str) -> str:
    """JSON with the characters escaped that `visible` would replace; parsing gives the same texts."""
    return _HIDDEN_IN_JSON.sub(lambda found: _json_escape(ord(found.group())), json)


def _json_escape(code: int) -> str:
    if code < 0x10000:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"


def finite_or_none(value: Any) -> float | None:
    """The value if it is a finite number, else None."""
    known = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if known else None


def mean_of(values: Iterable[float | None]) -> float | None:
    """Mean of the known values; None without any."""
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def number(value: float | None, digits: int = 3) -> str:
    """Text of a number, or `unknown`.

    >>> number(0.35), number(None)
    ('0.35', 'unknown')
    """
    if value is None or math.isnan(value):
        return "unknown"
    written = f"{value:.{digits}f}".rstrip("0").rstrip(".") if digits else f"{value:.0f}"
    return "0" if written == "-0" else written


def signed(value: float | None, digits: int = 3) -> str:
    """Text of a difference with its sign, or `unknown`.

    >>> signed(2.5), signed(0.0), signed(None)
    ('+2.5', '0', 'unknown')
    """
    return f"+{number(value, digits)}" if value is not None and value > 0 else number(value, digits)


def count(value: float | None) -> str:
    """Text of a whole number with thousands separators, or `unknown`."""
    return "unknown" if value is None else f"{value:,.0f}"


def counts_in_words(counts: Mapping[str, int]) -> str:
    """Text of names with their counts; `-` for none.

    >>> counts_in_words({"converged": 3, "max rounds": 1200})
    'converged 3, max rounds 1,200'
    """
    return ", ".join(f"{name} {n:,}" for name, n in counts.items()) or "-"


def cases(n: int) -> str:
    """Text of a number of cases.

    >>> cases(1), cases(1200)
    ('1 case', '1,200 cases')
    """
    return f"{n:,} {'case' if n == 1 else 'cases'}"


def in_groups(n: int, groups: int | None) -> str:
    """Text of a number of cases, with the number of their groups if some are dependent.

    >>> in_groups(1200, None), in_groups(36, 12)
    ('1,200', '36 in 12 groups')
    """
    return f"{n:,}" if groups is None else f"{n:,} in {groups:,} {'group' if groups == 1 else 'groups'}"


def calls(n: int) -> str:
    """Text of a number of calls.

    >>> calls(1), calls(1200)
    ('1 call', '1,200 calls')
    """
    return f"{n:,} {'call' if n == 1 else 'calls'}"


def times(value: float | None) -> str:
    """Text of a factor, or `unknown`.

    >>> times(1.9)
    '1.90x'
    """
    return "unknown" if value is None else f"{value:.2f}x"


def percent(
    value: float | None, interval: Interval | None = None, n: int | None = None, groups: int | None = None
) -> str:
    """Text of a share in percent with its interval and base, or `unknown`.

    >>> percent(0.8, (0.49, 0.943), 10)
    '80.0 % [49.0, 94.3] (n = 10)'
    """
    if value is None:
        return "unknown"
    ends = f" [{100 * interval[0]:.1f}, {100 * interval[1]:.1f}]" if interval else ""
    base = f" (n = {in_groups(n, groups)})" if n is not None else ""
    return f"{100 * value:.1f} %{ends}{base}"


def p_value(value: float | None) -> str:
    """Text of a p-value, or `unknown`; a tiny one is not printed as 0."""
    if value is None:
        return "unknown"
    return "< 0.0001" if value < 1e-4 else f"{value:.4f}"


def check_output_format(form: str) -> None:
    """Checks that an output format is known, before anything is paid for.

    Raises:
        ConfigError: the format is unknown.
    """
    if form not in get_args(Format):
        raise unknown_name("format", form, get_args(Format))
