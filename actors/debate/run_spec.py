"""Run specification: plain data that is sent to every actor of a run."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from moot.actors.agent.roles import RoleBinding
from moot.actors.debate.first_asks import MOST_UNUSABLE
from moot.actors.debate.placement import ClusterSettings
from moot.actors.limits.settings import Budget, EndpointLimits
from moot.actors.models.prices import Price
from moot.actors.models.retry import RetryPolicy

Engine = Literal["ray", "inline"]
Placement = Literal["actors", "packed"]


class RunSpec(BaseModel):
    """Resolved specification of a run; no defaults remain to be looked up.

    Attributes:
        protocol: a name of the registry or an import path `module:Class`.
        settings: the protocol's settings as nested data.
        roles: bindings by role family.
        templates: texts of all prompt templates, by name.
        task: the task's spec; the simulated model reads the answer key from it.
        key: `AnswerKey.slots` of a task that is not a file, for the simulated model only.
        seed: the run's seed.
        encoder: the encoder's identity; see `moot.actors.encoders.resolve`.
        encoder_key_env: environment variable of its key; None for the default of its form.
        save_tokens: how much of the token log-probabilities is recorded.
        save_reasoning: whether hidden reasoning is recorded.
        reuse: absolute folder of a run whose replies answer equal asks; None without one.
        classifier: absolute folder of the classifier of judges' summaries; None without one.
        classifier_digest: of its card; a later change of the classifier is refused.
        library: absolute folder of the library for searches; None for a run without documents.
        attended: whether `consult` waits for a person.
        followed: whether the live events include the replies.
        folder: absolute folder of the run.
        store: URI of the record, when the folder is the driver's copy of it; None when the folder is the record.
        epoch: number of the folder's owner.
        writers: number of record writers.
        cluster: cluster settings, for the engine `ray`.
        max_open: bound on open debates, over all moderators.
        retry: the retry policy.
        limits: bounds by endpoint (see `context_factory.endpoint_of`), where there are any.
        budget: of the run, over all its sessions.
        spent: use by earlier sessions, by budget.
        resumed: whether the run has had another session.
        prices: known prices, by model name.
        max_unusable: number of first asks of a role that may all be in vain before the run stops; 0 for no bound.
        proven: role families that have had a usable reply in an earlier session.
        debate_timeout_s: seconds after which a debate fails; None for no bound.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    protocol: str
    settings: dict[str, object] = Field(default_factory=dict)
    roles: dict[str, list[RoleBinding]]
    templates: dict[str, str]
    task: str
    key: dict[int, str] | None = None
    seed: int
    encoder: str
    encoder_key_env: str | None = None
    save_tokens: Literal["none", "chosen", "all"] = "all"
    save_reasoning: bool = False
    reuse: str | None = None
    classifier: str | None = None
    classifier_digest: str | None = None
    library: str | None = None
    attended: bool = False
    followed: bool = False
    folder: str
    store: str | None = None
    epoch: int
    writers: int = 1
    cluster: ClusterSettings = ClusterSettings()
    max_open: int = 200
    retry: RetryPolicy = Field(default_factory=RetryPolicy)
    limits: dict[str, EndpointLimits] = Field(default_factory=dict)
    budget: Budget = Field(default_factory=Budget)
    spent: dict[str, float] = Field(default_factory=dict)
    resumed: bool = False
    prices: dict[str, Price] = Field(default_factory=dict)
    max_unusable: int = MOST_UNUSABLE
    proven: list[str] = Field(default_factory=list)
    debate_timeout_s: float | None = None
