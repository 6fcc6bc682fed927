"""Run specification: plain data that is sent to every actor of a run."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from moot.actors.agent.roles import RoleBinding
from moot.actors.debate.placement import ClusterSettings
from moot.actors.limits.settings import Budget, EndpointLimits
from moot.actors.models.prices import Price
from moot.actors.models.retry import RetryPolicy

Engine = Literal["ray", "inline"]
Placement = Literal["actors", "packed"]


class RunSpec(BaseModel):
    """Resolved specification of a run, without defaults to be looked up elsewhere.

    Attributes:
        protocol: a name of the registry or an import path `module:Class`.
        settings: the protocol's settings as nested data.
        roles: bindings by role family.
        templates: every prompt template's text.
        task: the task's spec; the simulated model reads the answer key from it.
        key: `AnswerKey.slots` of a task that is not a file, for the simulated model only.
        seed: the run's seed.
        encoder: the encoder's identity; see `moot.actors.encoders.resolve`.
        encoder_key_env: name of the environment variable with its key; None for the default of its form.
        save_tokens: how much of the token log-probabilities is recorded.
        save_reasoning: whether hidden reasoning is recorded.
        reuse: folder of a run whose replies answer equal asks, absolute; None for no such run.
        classifier: folder of the classifier of judges' summaries, absolute; None for none.
        classifier_digest: of its card; another one that lies there later is refused.
        library: folder of the library that the debates search, absolute; None for a run without documents.
        attended: whether `consult` waits for a person.
        followed: whether the live events have the replies among them.
        folder: the run's folder, absolute.
        store: URI of the record, when the folder is a copy of it on the driver's machine; None when it is the record.
        epoch: number of the folder's owner.
        writers: how many record writers there are.
        cluster: where the actors live, with the engine `ray`.
        max_open: bound on debates that are open at once, over all moderators.
        retry: the retry policy.
        limits: bounds of every endpoint that has some, by the endpoint's name (see `context_factory.endpoint_of`).
        budget: what the run may use, over all its sessions.
        spent: by budget, what its earlier sessions have used.
        resumed: whether the run has had another session.
        prices: by model name, of the models whose price is known.
        debate_timeout_s: seconds after which a debate is failed; None for no bound.
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
    debate_timeout_s: float | None = None
