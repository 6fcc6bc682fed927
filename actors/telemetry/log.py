"""Logging by structlog: text on a terminal and JSON lines in actors, with secrets redacted."""

from __future__ import annotations

import asyncio
import logging
import re
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, get_args

import structlog

from moot.actors.telemetry.redaction import redact
from moot.protocols.errors import unknown_name

_log = structlog.get_logger(__name__)
Level = Literal["debug", "info", "warning", "error"]
_SECRET_NAME = re.compile(r"authorization|api[-_]?key$|token$|password|secret", re.IGNORECASE)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""Control characters that a terminal interprets; tabs and newlines are kept."""

_HIDDEN = "[secret]"

_WHERE = ("case", "debate", "path")
"""Fields of a line that say where something happened, not what."""

_AGAIN_S = 60.0
_MOST_KEPT = 256

SLOW_S = 5.0
"""Seconds of waiting after which a warning is logged."""


def configure_terminal(level: str = "warning") -> None:
    """Configure human-readable log lines on stderr; of equal lines the first is printed, then their number.

    Raises:
        ConfigError: the level is unknown.
    """
    renderer = structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    _configure(level, structlog.processors.TimeStamper("%H:%M:%S", utc=False), renderer, RepeatedLines())


def log_repeated() -> None:
    """Log how often lines were repeated since they were printed; call it at the end of a command's work."""
    for each in structlog.get_config()["processors"]:
        if isinstance(each, RepeatedLines):
            for line in each.left_out():
                _log_number(line)


def _log_number(line: dict[str, Any]) -> None:
    fields = dict(line)
    level, event = fields.pop("level"), fields.pop("event")
    getattr(_log, level)(event, **fields)


def configure_unless_done() -> None:
    """Configure logging for a terminal, unless the program has configured structlog, whose default prints local
    variables."""
    if not structlog.is_configured():
        configure_terminal()


def configure_json(level: str = "info") -> None:
    """Configure log lines on stderr as JSON objects, with the debate's id if one is bound.

    Raises:
        ConfigError: the level is unknown.
    """
    _configure(level, structlog.processors.TimeStamper("iso"), structlog.processors.JSONRenderer())


@dataclass
class _Printed:
    line: dict[str, Any]
    at: float
    more: int = 0

    def numbered(self) -> dict[str, Any]:
        """The line, with the number of those that were left out as `more`."""
        return {**self.line, "more": self.more}


class RepeatedLines:
    """structlog processor that leaves out a line that was printed less than a minute before, whatever case it is about.

    The next such line after a minute, and `log_repeated`, say how many were left out: `more`. So does a line of its own
    when so many other lines follow that the line is no longer remembered.

    Args:
        clock: monotonic time in seconds.
        log_number: logs a line with its number.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        log_number: Callable[[dict[str, Any]], object] = _log_number,
    ) -> None:
        self._clock, self._log_number, self._lock = clock, log_number, threading.Lock()
        self._printed: OrderedDict[str, _Printed] = OrderedDict()

    def __call__(self, logger: object, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        """See the class."""
        if "more" in event:
            return event
        line = {name: value for name, value in event.items() if name not in _WHERE}
        forgotten = None
        with self._lock:
            last = self._printed.get(key := repr(line))
            if last is not None and self._clock() - last.at < _AGAIN_S:
                last.more += 1
                raise structlog.DropEvent
            self._printed[key] = _Printed(line, self._clock())
            self._printed.move_to_end(key)
            if len(self._printed) > _MOST_KEPT:
                forgotten = self._printed.popitem(last=False)[1]
        if forgotten is not None and forgotten.more:
            self._log_number(forgotten.numbered())
        return {**event, "more": last.more} if last is not None and last.more else event

    def left_out(self) -> list[dict[str, Any]]:
        """Lines of which some were left out since they were printed, with their number as `more`; forgets them."""
        with self._lock:
            printed = list(self._printed.values())
            self._printed.clear()
        return [each.numbered() for each in printed if each.more]


def safe_to_show(logger: object, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """structlog processor that redacts secrets, by name and by pattern, and escapes control characters.

    >>> safe_to_show(None, "info", {"event": "sent", "headers": {"Authorization": "Bearer abc", "n": 1}})
    {'event': 'sent', 'headers': {'Authorization': '[secret]', 'n': 1}}
    """
    return {key: _clean(key, value) for key, value in event.items()}


def _clean(name: object, value: Any) -> Any:
    if isinstance(name, str) and _SECRET_NAME.search(name) and isinstance(value, str | bytes):
        return _HIDDEN
    if isinstance(value, str):
        return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", redact(value))
    if isinstance(value, Mapping):
        return {key: _clean(key, inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_clean(None, inner) for inner in value]
    return value if isinstance(value, int | float | None) else redact(str(value))


def _configure(level: str, stamp: Any, renderer: Any, *more: Any) -> None:
    if level not in get_args(Level):
        raise unknown_name("log level", level, get_args(Level))
    as_json = isinstance(renderer, structlog.processors.JSONRenderer)
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            *more,
            stamp,
            *([structlog.processors.dict_tracebacks] if as_json else [structlog.processors.format_exc_info]),
            safe_to_show,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )


@contextmanager
def warn_when_slow(waiting_for: str, *, model: str, at_most_s: float) -> Iterator[None]:
    """Logs one warning when a wait lasts longer than `SLOW_S`; uses the running event loop.

    Args:
        waiting_for: subject, possible reason and remedy, as a line that begins with "waiting for".
        model: name of the model.
        at_most_s: seconds after which the call times out.
    """
    timer = asyncio.get_running_loop().call_later(
        SLOW_S, lambda: _log.warning(waiting_for, model=model, waits_at_most_s=at_most_s)
    )
    try:
        yield
    finally:
        timer.cancel()
