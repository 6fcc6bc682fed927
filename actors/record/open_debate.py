"""Open debate: a writer's state of a debate without a verdict."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from moot.actors.models.sampling import UNKNOWN, Sampling
from moot.actors.models.usage_totals import UsageTotals
from moot.actors.record.assessment_figures import AssessmentFigures
from moot.actors.record.rows import INVALID_SUFFIX
from moot.protocols.messages import Event
from moot.protocols.round_values import RoundValues, read_round_values

SAMPLING_COLUMNS = ["role", "model", "temperature", "top_p", "logprob_stage", "held"]
"""Columns for `SampledLogprobs.of`."""


class SampledLogprobs(NamedTuple):
    """Log-probabilities of a reply's tokens `(T,)`, with its role, model and sampling parameters."""

    logprobs: npt.NDArray[np.float32] | None
    role: str
    model: str
    sampling: Sampling

    @classmethod
    def of(
        cls, logprobs: npt.NDArray[np.float32] | None, role: str | None, model: str | None, *sampling: Any
    ) -> SampledLogprobs:
        """From a reply's log-probabilities and its `SAMPLING_COLUMNS`."""
        return cls(logprobs, role or UNKNOWN, model or UNKNOWN, Sampling.recorded(*sampling))


UNRECORDED = SampledLogprobs.of(None, None, None, None, None, None, None)
"""A reply without anything on record."""


class OpenDebate(msgspec.Struct):
    """State of a debate without a verdict.

    Attributes:
        reply_ids: of the effective replies, by path.
        events: digest of the last event, by kind and path.
        used: model, prompt tokens and completion tokens of the replies that count, by id.
        superseded: ids of superseded replies.
        logprobs: log-probabilities for the signals, by the path of the reply.
        assessments: the latest, without the judges' marks, by the path of the reply.
        rounds: values of the latest events with round measures, by kind and path.
        cancelled: whether it was cancelled, and its case not submitted again.
    """

    reply_ids: dict[str, str] = {}
    events: dict[tuple[str, str], int] = {}
    used: dict[str, tuple[str, int | None, int | None]] = {}
    superseded: set[str] = set()
    logprobs: dict[str, SampledLogprobs] = {}
    assessments: dict[str, AssessmentFigures] = {}
    rounds: dict[tuple[str, str], RoundValues] = {}
    cancelled: bool = False

    def accept(self, path: str, reply_id: str, supersedes: str | None) -> bool:
        """Accept a reply: whether it is effective at its path. The first one is, unless a later one supersedes it."""
        known = self.reply_ids.get(path)
        if known is not None and supersedes != known:
            return False
        self.reply_ids[path] = reply_id
        return True

    def use(
        self, reply_id: str, supersedes: str | None, model: str | None, prompt: int | None, completion: int | None
    ) -> None:
        """Count an effective reply; a superseded one no longer counts."""
        if supersedes:
            for old in (supersedes, supersedes + INVALID_SUFFIX):
                self.superseded.add(old)
                self.used.pop(old, None)
        if model and reply_id not in self.superseded:
            self.used[reply_id] = (model, prompt, completion)

    def replace_round(self, event: Event) -> tuple[RoundValues | None, RoundValues | None]:
        """Keep the values of an event; returns those that it replaces, and its own. None where there are none."""
        key = (event.kind, event.path)
        old, new = self.rounds.pop(key, None), read_round_values(event.kind, event.data)
        if new is not None:
            self.rounds[key] = new
        return old, new

    def usage(self) -> dict[str, UsageTotals]:
        """Usage of the replies that count, by model, as recorded."""
        found: dict[str, UsageTotals] = {}
        for model, prompt, completion in self.used.values():
            found.setdefault(model, UsageTotals()).add(prompt, completion)
        return found
