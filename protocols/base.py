"""Debate protocol: the base class of every protocol, with all capabilities and their defaults."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel

from moot.protocols.case import Case
from moot.protocols.floor import Floor
from moot.protocols.messages import Verdict


class DebateProtocol(ABC):
    """A debate protocol: settings in, one coroutine per case.

    Every capability that a run asks for is an attribute or a method of this class, with its default. A subclass states
    those that differ: on the class, or on the instance where they depend on its settings.
    """

    name: str = ""
    """How users call it. A user's own protocol that states none is called `module:Class`."""
    roles: Sequence[str] = ("agent",)
    """The role families that it asks; `()` for none."""
    Settings: type[BaseModel] | None = None
    """The model of its settings: the class is called with an instance. None: the class is called without arguments."""
    settings: Any = None
    """The settings that it was made with; a pydantic model is recorded with the run."""
    templates: Mapping[str, str] = MappingProxyType({})
    """Its own prompts, from name to Jinja text."""
    sample: str = "sample"
    """The task that `moot doctor --protocol` tries it on."""

    needs_logprobs: bool = False
    """Whether its speakers' models must give token log-probabilities."""
    without_logprobs: str = ""
    """How to continue with a model that gives no log-probabilities; shown when one is refused."""
    goes_on_without_logprobs: bool = False
    """Whether it continues where a server gives no log-probabilities of a reply that is constrained to a schema."""
    needs_labels: bool = False
    """Whether to refuse a task whose cases have no labels."""
    needs_reply: bool = False
    """Whether its cases are replies to judge, as `replies:PATH` has them."""
    needs_claims: bool = False
    """Whether to refuse a task whose cases are no claims."""
    reads_documents: bool = False
    """Whether it searches the run's library (`floor.search`)."""
    classifies: bool = False
    """Whether it asks the run's classifier (`floor.classify`)."""

    speakers: Sequence[str] | None = None
    """The role families whose log-probabilities are read, and that see pictures. None: `agent`, or all without one."""
    judges_see_pictures: bool = False
    """Whether the role family `judge` is sent pictures, too: its models must take them then."""
    judges_apart: bool = False
    """Whether to warn when a model judges that also speaks."""
    most_members: Mapping[str, int] = MappingProxyType({})
    """By role family, how many of its members are asked; a run that names more is refused. All where it says none."""
    replies: Mapping[str, Sequence[type[BaseModel]]] = MappingProxyType({})
    """By role family, the reply types beside free text whose schemas a run tries first. Empty: `Position` for each."""
    reply_tokens: Mapping[str, int] = MappingProxyType({})
    """By role family, the longest reply where the run sets no `max_tokens`."""
    temperatures: Mapping[str, float | Sequence[float] | None] = MappingProxyType({})
    """By role family, the temperature where the run sets none; a list has one for each member."""
    top_ps: Mapping[str, float | None] = MappingProxyType({})
    """By role family, the nucleus share where the run sets none."""

    unread_settings: AbstractSet[str] = frozenset()
    """The settings that have no effect beside the others: setting one logs a warning."""
    gated: bool = False
    """Whether a gate decides which cases are debated."""
    compares_embeddings: bool = False
    """Whether its steps depend on distances between embeddings: `--encoder auto` then takes the best one installed."""
    embedding_threshold: float | None = None
    """The distance at which its gate decides; None where it tests no distance."""
    threshold_encoder: str | None = None
    """The encoder that a user set `embedding_threshold` for; None where it is a default."""

    def replies_for(self, case: Case) -> Mapping[str, Sequence[type[BaseModel]]]:
        """Those of `replies` that a debate of `case` may ask for."""
        return self.replies

    def effective_settings(self) -> Mapping[str, Any] | None:
        """Its settings as plain data, those without an effect set to one value: equal ones debate alike.

        None: every setting has an effect.
        """
        return None

    def for_encoder(self, encoder: str) -> DebateProtocol:
        """The protocol for a run with `encoder`, named as the run records it.

        Raises:
            ConfigError: its settings fit another encoder only.
        """
        return self

    @abstractmethod
    async def run(self, case: Case, floor: Floor) -> Verdict:
        """Debate one case. Raise a `MootError` to fail the case; any other exception fails it as a bug."""
