"""What an arena needs to know to hold a run: plain data that crosses to every actor."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from moot.actors.models.retry import RetryPolicy
from moot.actors.roles import RoleBinding

Engine = Literal["ray", "inline"]
Placement = Literal["actors", "packed"]


class RunSpec(BaseModel):
    """One run, resolved: nothing in it is a default to be looked up elsewhere.

    Attributes:
        protocol: a name of the registry or an import path `module:Class`.
        settings: the protocol's settings as nested data.
        roles: bindings by role family.
        templates: every prompt template's text.
        task: the task's spec; the simulated model reads the answer key from it.
        key: questions and gold labels of a task that is not a file, for the simulated model only.
        seed: the run's seed.
        encoder: the encoder's name.
        save_tokens: how much of the token log-probabilities is recorded.
        reuse: folder of a run whose replies answer equal asks, absolute; None for no such run.
        attended: whether `consult` waits for a person.
        folder: the run's folder, absolute.
        epoch: number of the folder's owner.
        writers: how many record writers there are.
        max_open: bound on debates that are open at once, over all moderators.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    protocol: str
    settings: dict[str, object] = Field(default_factory=dict)
    roles: dict[str, list[RoleBinding]]
    templates: dict[str, str]
    task: str
    key: dict[str, str] | None = None
    seed: int
    encoder: str
    save_tokens: Literal["none", "chosen", "all"] = "all"
    reuse: str | None = None
    attended: bool = False
    folder: str
    epoch: int
    writers: int = 1
    max_open: int = 200
    retry: RetryPolicy = Field(default_factory=RetryPolicy)
