"""Forms of debates that wait for a person, each with its question and what the debate said last."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol

from moot.deploy.results.recorded_data import Transcript, TurnView
from moot.deploy.results.transcript import build_transcript
from moot.deploy.results.transcript_blocks import turn_body, turn_facts
from moot.protocols.errors import MootError
from moot.protocols.messages import Form

_KEPT = 200
"""Most contexts in memory."""

_LONGEST = 4_000
"""Most characters of a reply."""


class WaitingForm(Protocol):
    """Form of a debate that waits."""

    @property
    def case_id(self) -> str: ...
    @property
    def attempt(self) -> int: ...
    @property
    def path(self) -> str: ...
    @property
    def form(self) -> Form: ...


class FormContexts:
    """Describes waiting forms for a page; a context is read once for each form.

    Args:
        folder: of the run.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: OrderedDict[tuple[str, int, str], dict[str, Any]] = OrderedDict()

    def describe(self, waiting: Iterable[WaitingForm]) -> list[dict[str, Any]]:
        """Forms as JSON values. Reads the record: not for an event loop."""
        return [{**_form_data(each.case_id, each.form), **self._context(each)} for each in waiting]

    def _context(self, waiting: WaitingForm) -> dict[str, Any]:
        key = (waiting.case_id, waiting.attempt, waiting.path)
        if key not in self._known:
            try:
                self._known[key] = _last_replies(build_transcript(self._folder, waiting.case_id, waiting.attempt))
            except MootError:  # the form is answered without it
                return {"question": "", "stage": "", "replies": []}
            while len(self._known) > _KEPT:
                self._known.popitem(last=False)
        return self._known[key]


def _form_data(case_id: str, form: Form) -> dict[str, Any]:
    actions = [
        {"action": action, "takes_text": form.takes_text(action), "draft": form.drafts.get(action, "")}
        for action in form.actions
    ]
    return {"case": case_id, "title": form.title, "body": form.body, "actions": actions}


def _last_replies(debate: Transcript) -> dict[str, Any]:
    """Question of a debate, and the last reply of each role in its latest stage with replies of models."""
    for section in reversed(debate.sections):
        last = {turn.role: turn for turn in section.turns if _is_statement(turn)}
        if last:
            replies = [{"who": turn_facts(turn)[0], "text": turn_body(turn)[:_LONGEST]} for turn in last.values()]
            return {"question": debate.question, "stage": section.title, "replies": replies}
    return {"question": debate.question, "stage": "", "replies": []}


def _is_statement(turn: TurnView) -> bool:
    return turn.role != "person" and not turn.superseded and turn.outcome not in ("failed", "invalid", "cut")
