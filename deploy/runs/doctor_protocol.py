"""Protocol trial of `moot doctor`: a few debates of bundled cases, with counts of replies by template."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from moot.actors.models.resolve import ModelBinding
from moot.actors.record.folder import RunFolder
from moot.actors.record.tables import read_table
from moot.deploy.results.figures.replies import USABLE, ModelReplies, commonest_failure, model_replies
from moot.deploy.runs.capabilities import schema_mode_rows
from moot.deploy.runs.checks import recorded_profiles
from moot.deploy.runs.plain_forms import NeedsJson
from moot.deploy.runs.prepare import prepare
from moot.deploy.runs.run_config import RunConfig
from moot.deploy.runs.session import Session
from moot.protocols.errors import CapabilityMissing
from moot.protocols.messages import family_of
from moot.protocols.registry import make_protocol

CASES = 2
"""Default number of debates: most templates are used several times in one."""


@dataclass(frozen=True, slots=True)
class TemplateTrial:
    """Results of a model on one template.

    Attributes:
        replies: counts of its replies.
        tokens: mean tokens of a reply; None if the server does not report usage.
        seconds: mean latency in seconds of requests with a usable reply; None without any.
    """

    replies: ModelReplies
    tokens: float | None
    seconds: float | None

    def cells(self) -> tuple[str, ...]:
        """Table row, in the order of `HEADER`."""
        replies = self.replies
        counts = (
            replies.asks,
            replies.usable,
            replies.repaired,
            replies.reasked,
            replies.truncated,
            replies.outside_labels,
        )
        means = ("-" if mean is None else f"{mean:,.1f}" for mean in (self.tokens, self.seconds))
        return (replies.role, replies.template, *(f"{count:,}" for count in counts), *means)


HEADER = ("role", "template", "asks", "usable", "repaired", "reasked", "truncated", "outside", "tokens", "seconds")


@dataclass(frozen=True, slots=True)
class ProtocolTrial:
    """Result of a model's debates under a protocol.

    Attributes:
        templates: results by template.
        modes: role, reply type and structured-output mode, for every reply type of the protocol.
        finished, cases: number of debates with a verdict, and of all debates.
        commonest_failure: the most frequent reason of a failed request, with its remedy; empty if none failed.
    """

    templates: tuple[TemplateTrial, ...]
    modes: tuple[tuple[str, str, str], ...]
    finished: int
    cases: int
    commonest_failure: str

    def lines(self) -> Iterator[str]:
        """Table and outcome as lines."""
        rows = [HEADER, *(each.cells() for each in self.templates)]
        widths = [max(len(row[column]) for row in rows) for column in range(len(HEADER))]
        for row in rows:
            words = (cell.ljust(width) for cell, width in zip(row[:2], widths[:2], strict=True))
            numbers = (cell.rjust(width) for cell, width in zip(row[2:], widths[2:], strict=True))
            yield "  ".join((*words, *numbers)).rstrip()
        for role, reply, mode in self.modes:
            yield f"{role} {reply}: {mode}"
        yield f"{self.finished} of {self.cases} debates ended with a verdict"
        if self.commonest_failure:
            yield self.commonest_failure


async def try_protocol(binding: ModelBinding, config: RunConfig, cases: int) -> ProtocolTrial:
    """Debate a few cases of the protocol's bundled sample in this process; keeps no record.

    Args:
        binding: the model of every role.
        config: the protocol, its settings and its preset.
        cases: number of cases.

    Raises:
        UserError: the model cannot be used, or the protocol or a setting is unknown.
    """
    protocol = make_protocol(config.protocol, config.settings())
    roles = {family: [binding.model_dump(exclude_defaults=True)] for family in protocol.roles}
    with tempfile.TemporaryDirectory(prefix="moot-doctor-") as directory:
        folder = Path(directory) / "run"
        fields = {
            "task": protocol.sample,
            "roles": roles,
            "limit": cases,
            "engine": "inline",
            "out": str(folder),
        }
        try:
            done = await Session(prepare(RunConfig.build(config, fields))).run()
        except NeedsJson as error:  # which names the command that is running
            raise CapabilityMissing(error.needs) from None
        summary = done.summary
        (profile,) = (recorded_profiles(RunFolder(folder)) or {}).values()
        asked = {role: protocol.replies.get(role, ()) for role in protocol.roles}
        modes = () if profile is None else tuple(schema_mode_rows(profile, asked))
        trials = tuple(_trials(folder))
        return ProtocolTrial(trials, modes, summary.finished, summary.cases, commonest_failure(folder))


def _trials(folder: Path) -> Iterator[TemplateTrial]:
    table = read_table(folder, "turns", ["role", "template", "outcome", "completion_tokens", "latency_s"]).to_pylist()
    for replies in model_replies(folder):
        key = (replies.role, replies.template)
        rows = [row for row in table if (family_of(row["role"] or ""), row["template"] or "") == key]
        tokens = [row["completion_tokens"] for row in rows if row["completion_tokens"] is not None]
        seconds = [row["latency_s"] for row in rows if row["outcome"] in USABLE]
        yield TemplateTrial(
            replies,
            statistics.fmean(tokens) if tokens else None,
            statistics.fmean(seconds) if seconds else None,
        )
