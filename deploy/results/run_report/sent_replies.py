"""Requests and token probabilities of the replies of some debates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from moot.actors.record.rows import sorted_json
from moot.actors.record.schema import CaseKey
from moot.deploy.results.text import number
from moot.deploy.results.transcripts.debate_tables import DebateTables, rows_of_cases
from moot.deploy.results.transcripts.views import TurnView

PROBABILITY_ONE = 1_000
"""Token probabilities are whole numbers, in parts of this: more digits would take most of a page's space."""


class SentReplies:
    """Requests and tokens of some debates.

    Args:
        tables: their rows, with requests.
        case_ids: of the debates.
    """

    def __init__(self, tables: DebateTables, case_ids: Sequence[str]) -> None:
        self._requests = _by_debate(rows_of_cases(tables.turns, case_ids))
        self._tokens = _by_debate(rows_of_cases(tables.tokens, case_ids))

    def of_debate(self, case_id: str, attempt: int) -> DebateReplies:
        """Replies of one attempt at a case."""
        key = (case_id, attempt)
        return DebateReplies(self._requests.get(key, {}), self._tokens.get(key, {}))


class DebateReplies:
    """Requests and tokens of one debate, by path."""

    def __init__(self, requests: Mapping[str, dict[str, Any]], tokens: Mapping[str, dict[str, Any]]) -> None:
        self._requests = requests
        self._tokens = tokens

    def request(self, turn: TurnView, place: Callable[[str], int]) -> dict[str, Any]:
        """Request of a reply: its messages exactly as sent, or why they are unknown.

        Args:
            turn: the reply.
            place: gives a text's place among the texts of the page.
        """
        row = self._requests.get(turn.path)
        if row is None or row["messages"] is None:
            return {"why": "The record has no messages for this reply."}
        sent = msgspec.json.decode(row["messages"])
        messages = sent.items() if isinstance(sent, dict) else sent  # a person was shown a form
        return {
            "messages": [
                (name, place(text if isinstance(text, str) else sorted_json(text))) for name, text in messages
            ],
            "pictures": row["image_hashes"] or [],
            "settings": [
                ("template", f"{row['template']} ({row['template_hash']})" if row["template"] else "none"),
                ("temperature", _as_asked(row["temperature"])),
                ("top-p", _as_asked(row["top_p"])),
                ("tokens at most", _as_asked(row["max_tokens"])),
                ("fingerprint", row["fingerprint"] or "unknown"),
            ],
        }

    def tokens(self, turn: TurnView) -> dict[str, Any] | None:
        """The tokens of a reply with their probabilities and alternatives; None where the record has none."""
        row = None if turn.superseded else self._tokens.get(turn.path)
        if row is None or not row["token"]:
            return None
        request = self._requests.get(turn.path)
        data: dict[str, Any] = {
            "token": row["token"],
            "p": _parts(row["logprob"] or ()),
            "stage": (request and request["logprob_stage"]) or "unknown",
        }
        if row["alternatives"] and row["alt_token"]:
            data |= _others(row["token"], row["alternatives"], row["alt_token"], row["alt_logprob"] or ())
        return data


def _by_debate(rows: Iterable[dict[str, Any]]) -> dict[CaseKey, dict[str, dict[str, Any]]]:
    """Rows by debate and path; the first row of a path is kept."""
    debates: dict[CaseKey, dict[str, dict[str, Any]]] = {}
    for row in rows:
        debates.setdefault((row["case_id"], row["attempt"]), {}).setdefault(row["path"], row)
    return debates


def _others(
    tokens: Sequence[str], k: int, listed: Sequence[str | None], logprobs: Sequence[float | None]
) -> dict[str, Any]:
    """Alternatives to each token, without the token itself, most likely first."""
    parts = _parts(logprobs)
    others, shares = [], []
    for place, token in enumerate(tokens):
        here = slice(k * place, k * (place + 1))
        texts, q = list(listed[here]), parts[here]
        if token in texts:
            chosen = texts.index(token)
            del texts[chosen], q[chosen]
        while q and q[-1] is None:  # fewer came than were asked for
            texts.pop()
            q.pop()
        others.append(texts)
        shares.append(q)
    return {"other": others, "q": shares}


def _parts(logprobs: Sequence[float | None]) -> list[int | None]:
    """Probabilities in parts of `PROBABILITY_ONE`; None for one that is not known."""
    values = np.array(logprobs, float)
    unknown = np.isnan(values)
    shares = np.exp(np.minimum(np.where(unknown, 0.0, values), 0.0))
    parts: list[int | None] = np.rint(PROBABILITY_ONE * shares).astype(int).tolist()
    for place in np.flatnonzero(unknown):
        parts[place] = None
    return parts


def _as_asked(value: float | None) -> str:
    return "the server's default" if value is None else number(value)
