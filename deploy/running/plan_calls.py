"""What a run would cost, before anything is paid: cases, calls and a bound on tokens."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from moot.actors.encoders.resolve import is_served
from moot.actors.models.token_bounds import estimated_length
from moot.actors.retrieval.library import LibraryFolder
from moot.actors.roles import RoleBinding
from moot.actors.sent_request import sent_decoding
from moot.deploy.documents.docs import Docs
from moot.deploy.running.prepare import Prepared, inner
from moot.deploy.running.recorded import reusable_replies
from moot.protocols.calls import CallPlan
from moot.protocols.case import Case
from moot.protocols.templates import Templates

CHARACTERS_PER_TOKEN = 4


@dataclass(frozen=True)
class Plan:
    """A run's cost in advance, without retries and without second asks after an unreadable reply.

    Attributes:
        protocol: its name.
        cases: how many; None for a source that cannot be read twice.
        least, most: calls over all cases; None for a protocol whose steps are not known, or without `cases`.
        least_tokens, most_tokens: prompts at four characters per token, or one in other scripts than Latin; replies at
            their full length.
        reusable: replies of the other run that can answer equal asks; None without such a run. How many of them will
            is known only when the debates are held, so the other figures count every call.
        documents: what the library holds, and what is still to be embedded for it; empty for a run without documents.
    """

    protocol: str
    cases: int | None
    least: int | None
    most: int | None
    least_tokens: int | None
    most_tokens: int | None
    reusable: int | None = None
    documents: str = ""

    def lines(self) -> list[str]:
        """The plan as text."""
        calls = "unknown: this protocol does not say" if self.cases is not None else "unknown until the cases are read"
        tokens = calls
        if self.least is not None and self.most is not None:
            calls = f"{self.least:,} to {self.most:,}"
            if self.cases:
                calls += f" ({self.least / self.cases:.4g} to {self.most / self.cases:.4g} a case)"
            tokens = f"at most about {self.most_tokens:,} (at least {self.least_tokens:,} if every debate is short)"
        reuse = [] if self.reusable is None else [f"reuse     {self.reusable:,} replies answer equal asks for nothing"]
        return [
            f"protocol  {self.protocol}",
            f"cases     {'unknown' if self.cases is None else f'{self.cases:,}'}",
            f"calls     {calls}",
            f"tokens    {tokens}",
            "          prompts at 4 characters a token (not Latin: 1), replies at full length, no retries or re-asks",
            *reuse,
            *([f"documents {self.documents}"] if self.documents else []),
            "dry run: nothing was asked, paid or written",
        ]


def plan(prepared: Prepared) -> Plan:
    """Count what a run would do; reads the task once more, asks nobody, writes nothing.

    A protocol says how many calls it makes by a method `calls(case, judges)` that gives a `CallPlan`.
    """
    name, total = prepared.protocol.name, prepared.total
    documents = _documents(prepared, prepared.docs, prepared.library) if prepared.docs and prepared.library else ""
    reusable = None if prepared.reuse is None else reusable_replies(prepared.reuse)
    calls_of: Callable[[Case, int], CallPlan] | None = getattr(inner(prepared.protocol), "calls", None)
    if calls_of is None or total is None:
        return Plan(name, total, None, None, None, None, reusable, documents)
    judges = len(prepared.bindings.get("judge", ()))
    longest = longest_reply(prepared.members)
    least_calls = most_calls = least_tokens = most_tokens = 0
    for labelled in prepared.cases():
        found = calls_of(labelled.case, judges)
        prompt = prompt_tokens(prepared.templates, found)
        least_calls += found.least.count
        most_calls += found.most.count
        least_tokens += found.least.count * prompt
        most_tokens += found.most.count * (prompt + longest) + found.most.replies_read * longest
    return Plan(name, total, least_calls, most_calls, least_tokens, most_tokens, reusable, documents)


def _documents(prepared: Prepared, docs: Docs, library: Path) -> str:
    """The documents in words; what one run embeds into a library that others share is embedded for all of them."""
    chunks = f"{docs.size:,} {'chunk' if docs.size == 1 else 'chunks'}"
    if docs.documents is None:
        return f"a library of {chunks}, made before"
    files = LibraryFolder(library)
    done = files.embedded(files.note()) if files.exists() else 0
    texts = len({chunk.text for chunk in docs.chunks[done:]})
    once = "" if library.is_relative_to(prepared.folder) else ", once for all runs that share them"
    encoder = prepared.config.encoder
    by = f", {texts:,} texts to be embedded by {encoder}{once}" if is_served(encoder) else ""
    return f"{docs.documents:,} in {chunks}{by}"


def longest_reply(members: Iterable[RoleBinding]) -> int:
    """Tokens of the longest reply that any member may write, with its hidden reasoning where it is known to reason."""
    return max(sent_decoding(member).max_tokens for member in members)


def prompt_tokens(templates: Templates, found: CallPlan) -> int:
    """About how many tokens a prompt without replies has, by a plan of calls."""
    messages = templates.render(found.template, found.slots)
    return math.ceil(sum(estimated_length(message.content) for message in messages) / CHARACTERS_PER_TOKEN)
