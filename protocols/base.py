"""Debate protocol: the base class of every protocol, with all capabilities and their defaults."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from types import MappingProxyType
from typing import Any, Literal

from pydantic import BaseModel

from moot.protocols.case import Case
from moot.protocols.floor import Floor
from moot.protocols.messages import Verdict

CaseField = Literal["passage", "choices", "documents", "images"]
"""Field of a case with material for a debate, beside its question and labels."""


class DebateProtocol(ABC):
    """Base class of a debate protocol: settings in, one coroutine per case.

    Every capability that a run asks for is an attribute or a method of this class, with its default. A subclass states
    those that differ: on the class, or on the instance if they depend on its settings.
    """

    name: str = ""
    """Its name. A user's own protocol without a name is called `module:Class`."""
    roles: Sequence[str] = ("agent",)
    """Role families that it asks; `()` for none."""
    Settings: type[BaseModel] | None = None
    """Model of its settings, with an instance of which the class is called. None: the class is called without
    arguments."""
    settings: Any = None
    """Its settings; the run records a pydantic model."""
    templates: Mapping[str, str] = MappingProxyType({})
    """Its own prompts: a mapping from name to Jinja text."""
    prompt_folders: AbstractSet[str] | None = None
    """Folders of moot's prompts that it renders, such as `selene`; a change of others keeps no run of it from being
    resumed. None: it may render any."""
    sample: str = "sample"
    """The task on which `moot doctor --protocol` tries it."""

    needs_logprobs: bool = False
    """Whether its speakers' models must return token log-probabilities."""
    without_logprobs: str = ""
    """How to use a model without log-probabilities; shown if such a model is refused."""
    goes_on_without_logprobs: bool = False
    """Whether it continues if a server gives no log-probabilities for replies that are constrained to a schema."""
    without_json: str = ""
    """How to use a model that writes no JSON; shown if such a model is refused."""
    needs_labels: bool = False
    """Whether to refuse a task whose cases have no labels."""
    needs_reply: bool = False
    """Whether its cases are replies to judge, as those of `replies:PATH`."""
    needs_claims: bool = False
    """Whether to refuse a task whose cases are not claims."""
    reads: AbstractSet[CaseField] | None = None
    """Fields of a case that its prompts show or that it retrieves from; a run warns of other fields with content. None:
    not declared, and no warning."""
    reads_documents: bool = False
    """Whether it searches the run's library (`floor.search`)."""
    classifies: bool = False
    """Whether it uses the run's classifier (`floor.classify`)."""

    speakers: Sequence[str] | None = None
    """Role families whose log-probabilities are read, and that see pictures. None: `agent`, or all without one."""
    judges_see_pictures: bool = False
    """Whether the role family `judge` also gets pictures; its models must then accept them."""
    judges_apart: bool = False
    """Whether to warn if a judge's model also debates."""
    most_members: Mapping[str, int] = MappingProxyType({})
    """By role family, the maximum number of members; a run that names more is refused. Without an entry: no maximum."""
    replies: Mapping[str, Sequence[type[BaseModel]]] = MappingProxyType({})
    """By role family, the reply types besides free text whose schemas the trial calls use; by default `Position`."""
    reply_tokens: Mapping[str, int] = MappingProxyType({})
    """By role family, the longest reply if the run sets no `max_tokens`."""
    temperatures: Mapping[str, float | Sequence[float] | None] = MappingProxyType({})
    """By role family, the temperature if the run sets none; a list has one for each member."""
    top_ps: Mapping[str, float | None] = MappingProxyType({})
    """By role family, the nucleus share if the run sets none."""

    unread_settings: AbstractSet[str] = frozenset()
    """Settings without an effect beside the others: setting one logs a warning."""
    gated: bool = False
    """Whether a gate decides which cases are debated."""
    compares_embeddings: bool = False
    """Whether its steps depend on distances between embeddings; `--encoder auto` then chooses the best one."""
    embedding_threshold: float | None = None
    """The distance at which its gate decides; None if it tests no distance."""
    threshold_encoder: str | None = None
    """The encoder for which a user set `embedding_threshold`; None if that is a default."""

    def renders(self, template: str) -> bool:
        """Whether it may render the template of that name."""
        folder, slash, _ = template.partition("/")
        return not slash or template in self.templates or self.prompt_folders is None or folder in self.prompt_folders

    def replies_for(self, case: Case) -> Mapping[str, Sequence[type[BaseModel]]]:
        """The `replies` that a debate of `case` may ask for."""
        return self.replies

    def reads_of(self, case: Case) -> AbstractSet[CaseField] | None:
        """The `reads` of a debate of `case`."""
        return self.reads

    def effective_settings(self) -> Mapping[str, Any] | None:
        """Its settings as plain data, with one fixed value for those without an effect: equal ones give equal debates.

        None: every setting has an effect.
        """
        return None

    def for_encoder(self, encoder: str) -> DebateProtocol:
        """Protocol for a run with `encoder`, named as in the record.

        Raises:
            ConfigError: its settings fit another encoder only.
        """
        return self

    @abstractmethod
    async def run(self, case: Case, floor: Floor) -> Verdict:
        """Debate one case. Raise a `MootError` to fail the case; any other exception fails it as a bug."""
