"""Dry run: estimates calls and tokens by running the protocol on the real floor with stub replies.

Each sampled case runs twice: with the same short, confident answer of every agent, and with different answers at the
full length of a reply. No model is called, and nothing is written.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import structlog

from moot.actors.agent.roles import Roles
from moot.actors.debate.context_factory import build_debate_context
from moot.actors.debate.floor import CaseFloor
from moot.actors.encoders.hashed_ngrams import HASHED_NGRAMS
from moot.actors.encoders.resolve import is_served
from moot.actors.models.usage_totals import UsageTotals
from moot.actors.retrieval.documents.docs import DocumentSet
from moot.actors.retrieval.library_folder import LibraryFolder
from moot.deploy.runs.dry_run_stubs import CallEstimate, NullRecordClient, StubAgentPool, StubLibrary
from moot.deploy.runs.prepare import Prepared
from moot.deploy.runs.prior_runs import reusable_replies
from moot.protocols.case import Case
from moot.protocols.errors import MootError

_log = structlog.get_logger(__name__)

SAMPLE_SIZE = 20
"""Maximum number of cases of a dry run, a sample of the task."""


@dataclass(frozen=True)
class DryRunPlan:
    """Estimated calls and tokens of a run, without retries and re-asks.

    Attributes:
        protocol: its name.
        cases: number of cases; None for a source that cannot be read twice.
        least, most: calls over all cases, extrapolated from the sample; None without `cases`, and when the protocol
            does not run on stub replies.
        least_tokens, most_tokens: tokens of prompts (four characters a token, one in non-Latin scripts) and of replies
            (for `most_tokens` at their full length).
        reusable: replies of the reused run that can answer identical requests; None without such a run. The number of
            reused replies is known only when the debates run, so the other figures count every call.
        documents: size of the library, and number of texts to embed; empty for a run without documents.
        sampled: number of sampled cases.
    """

    protocol: str
    cases: int | None
    least: int | None
    most: int | None
    least_tokens: int | None
    most_tokens: int | None
    reusable: int | None = None
    documents: str = ""
    sampled: int = 0

    def lines(self) -> list[str]:
        """The plan as text."""
        calls = (
            "unknown until the cases are read" if self.cases is None else "unknown: no stub reply suits this protocol"
        )
        tokens = calls
        if self.least is not None and self.most is not None:
            calls = f"{self.least:,} to {self.most:,}"
            if self.cases:
                calls += f" ({self.least / self.cases:.4g} to {self.most / self.cases:.4g} a case)"
            tokens = f"at most about {self.most_tokens:,} (at least {self.least_tokens:,} if every debate is short)"
        reuse = [] if self.reusable is None else [f"reuse     {self.reusable:,} recorded replies are reused at no cost"]
        return [
            f"protocol  {self.protocol}",
            f"cases     {'unknown' if self.cases is None else f'{self.cases:,}'}",
            f"calls     {calls}",
            f"tokens    {tokens}",
            "          prompts at 4 characters a token (not Latin: 1), replies at full length, no retries or re-asks",
            *([f"          estimated from {self.sampled:,} of the cases"] if self.sampled < (self.cases or 0) else []),
            *reuse,
            *([f"documents {self.documents}"] if self.documents else []),
            "dry run: no requests, no cost, nothing written",
        ]


def plan(prepared: Prepared) -> DryRunPlan:
    """Estimate the calls and tokens of a run from a systematic sample of its cases; calls no model, writes nothing.

    Raises:
        ConfigError: a template of the protocol's own cannot be rendered.
    """
    name, total = prepared.protocol.name, prepared.total
    documents = _documents(prepared, prepared.docs, prepared.library) if prepared.docs and prepared.library else ""
    reusable = None if prepared.reuse is None else reusable_replies(prepared.reuse)
    if total is None:
        return DryRunPlan(name, total, None, None, None, None, reusable, documents)
    estimates = estimate_calls(
        prepared, (each.case for each in islice(prepared.cases(), 0, None, -(-total // SAMPLE_SIZE) or 1))
    )
    if not estimates:
        return DryRunPlan(name, total, None, None, None, None, reusable, documents)
    few, many = (sum((each[way] for each in estimates), UsageTotals()) for way in (0, 1))
    least, most, least_tokens, most_tokens = (
        round(part * total / len(estimates)) for part in (few.calls, many.calls, few.tokens, many.tokens)
    )
    return DryRunPlan(name, total, least, most, least_tokens, most_tokens, reusable, documents, len(estimates))


def _documents(prepared: Prepared, docs: DocumentSet, library: Path) -> str:
    """Size of the documents and number of texts to embed, as text; a shared library is embedded once for all runs."""
    chunks = f"{docs.size:,} {'chunk' if docs.size == 1 else 'chunks'}"
    if docs.documents is None:
        return f"an existing library of {chunks}"
    files = LibraryFolder(library)
    embedded = files.embedded(files.manifest()) if files.exists() else 0
    texts = len({chunk.text for chunk in docs.chunks[embedded:]})
    once = "" if library.is_relative_to(prepared.folder) else ", once for all runs that share them"
    encoder = prepared.config.encoder
    by = f", {texts:,} texts to embed with {encoder}{once}" if is_served(encoder) else ""
    return f"{docs.documents:,} in {chunks}{by}"


def estimate_calls(prepared: Prepared, cases: Iterable[Case]) -> list[tuple[CallEstimate, CallEstimate]]:
    """Fewest and most calls of each case under stub replies; empty if a debate fails on them.

    Raises:
        ConfigError: a template of the protocol's own cannot be rendered.
    """
    return asyncio.run(_all_calls(prepared, list(cases)))


async def check_own_templates(prepared: Prepared) -> None:
    """Render a protocol's own templates as its first case does, so that a mistyped slot is detected before the run.

    Raises:
        ConfigError: a template of the protocol cannot be rendered.
    """
    if prepared.protocol.templates and prepared.checked is not None:
        await _all_calls(prepared, [each.case for each in islice(prepared.cases(), 1)])


async def _all_calls(prepared: Prepared, cases: Sequence[Case]) -> list[tuple[CallEstimate, CallEstimate]]:
    few, many = [await _calls(prepared, cases, differ=differ) for differ in (False, True)]
    return [] if few is None or many is None else list(zip(few, many, strict=True))


async def _calls(prepared: Prepared, cases: Sequence[Case], *, differ: bool) -> list[CallEstimate] | None:
    """Calls by case; None if a debate fails because no stub reply fits, or by an error of the protocol.

    Raises:
        ConfigError: a template of the protocol's own cannot be rendered.
    """
    plain = {"encoder": HASHED_NGRAMS, "library": None, "reuse": None, "attended": False}
    spec = prepared.spec(0, {}, False).model_copy(update=plain)
    agents = StubAgentPool(Roles(spec.roles), prepared.templates, differ=differ)
    context = build_debate_context(spec, agents, NullRecordClient())
    if prepared.docs is not None:
        context = replace(context, retriever=StubLibrary(prepared.docs.chunks))
    by_case = []
    try:
        for case in cases:
            agents.calls = CallEstimate()
            try:
                with suppress(MootError):  # a case that the protocol rejects makes few or no calls
                    await prepared.protocol.run(case, CaseFloor(case, 0, context))
            except Exception as error:  # a user's own protocol may raise anything
                _log.debug("the protocol fails on stub replies", case=case.id, error=repr(error))
                return None
            if agents.unrendered is not None:
                raise agents.unrendered
            if agents.unfit:
                return None
            by_case.append(agents.calls)
    finally:
        await context.close()
    return by_case
