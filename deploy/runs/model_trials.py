"""Trial calls of a run's models, and their results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal

import msgspec
import structlog
from pydantic import BaseModel

from moot.actors.agent.backend_factory import make_model
from moot.actors.agent.roles import RoleBinding
from moot.actors.models.interface import Model
from moot.actors.models.model_profile import ModelProfile
from moot.actors.models.probe import ProbeResult, probe
from moot.actors.models.probe_calls import ExpectedReply, OnlyOverResponses, ProbeRequest
from moot.actors.models.resolve import ModelBinding, over_responses
from moot.deploy.runs.capability_checks import check_declared, no_logprobs
from moot.deploy.runs.json_trial import writes_json
from moot.deploy.runs.prepare import Prepared
from moot.protocols.base import DebateProtocol
from moot.protocols.errors import CapabilityMissing
from moot.protocols.messages import Decoding
from moot.protocols.replies import Position
from moot.protocols.reply_ids import reply_id

_MAX_EXAMINED = 2_000
"""Maximum number of cases whose labels are examined before a run."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class TrialResults:
    """Results of trial calls, shared by related runs, so that each call is made once.

    Attributes:
        models: results of `probe`, by model and request.
        json: whether a model writes JSON, see `writes_json`; of the models for which it matters.
        encoders: encoders that passed their trial, with the environment variable of their key.
    """

    models: dict[tuple[ModelBinding, ProbeRequest], ProbeResult] = field(default_factory=dict)
    json: dict[ModelBinding, bool] = field(default_factory=dict)
    encoders: set[tuple[str, str | None]] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class ModelTrial:
    """Trial calls of one model, in all roles that it serves.

    Args:
        prepared: the run.
        roles: its roles, with their families.
        results: results of related runs; new ones are added.
    """

    prepared: Prepared
    roles: Sequence[tuple[str, RoleBinding]]
    results: TrialResults

    async def profile(self, model: Model, binding: ModelBinding) -> ModelProfile:
        """Run the trial and return the profile; over the Responses API if OpenAI offers the model only there.

        Raises:
            CapabilityMissing: the model lacks a capability that its roles or the protocol need.
            ModelUnavailable: it cannot be called.
        """
        try:
            return await self.with_json_trial(model, binding, await self._probed(model, binding))
        except OnlyOverResponses:
            other = over_responses(binding)
            if other is None:
                raise
        _log.warning("the model is used over the Responses API, the only one that offers it", model=model.name)
        over_other = make_model(other, seed=self.prepared.config.seed, answer_key=None)
        try:
            check_declared(over_other, [role for _, role in self.roles], self.prepared.protocol)
            return await self.with_json_trial(over_other, other, await self._probed(over_other, other))
        finally:
            await over_other.close()

    async def with_json_trial(self, model: Model, binding: ModelBinding, profile: ModelProfile) -> ModelProfile:
        """The profile, with whether the model writes JSON if a role asks for a reply that no schema constrains."""
        needed, _ = needed_replies(self.prepared)
        free = [
            role
            for family, role in self.roles
            for reply in needed.get(family, () if needed else (Position,))
            if role.structured is False or profile.mode_of(reply_id(reply))[0] == "free"
        ]
        if not free:
            return profile
        if binding not in self.results.json:
            self.results.json[binding] = await writes_json(model, free[0], profile)
        return profile.model_copy(update={"writes_json": self.results.json[binding]})

    async def _probed(self, model: Model, binding: ModelBinding) -> ModelProfile:
        request, protocol = self._request(), self.prepared.protocol
        if (binding, request) not in self.results.models:
            self.results.models[binding, request] = await probe(model, request)
        found = self.results.models[binding, request]
        role, given = _most_demanding([member for _, member in self.roles]), found.gives_logprobs
        if not given and protocol.needs_logprobs and role.top_logprobs:
            raise no_logprobs(model, protocol, found.lacking)
        if not given and role.early_stop is not None:
            lacking = ", ".join(found.lacking) or model.name
            raise CapabilityMissing(f"model {lacking!r} gives no log-probabilities: leave `early_stop` out")
        return found.profile

    def _request(self) -> ProbeRequest:
        """Trial request: the one of the most demanding role, with the schemas of all roles."""
        members, protocol = [member for _, member in self.roles], self.prepared.protocol
        role = _most_demanding(members)
        return ProbeRequest(
            decoding=_trial_role(role, members),
            timeout_s=role.timeout_s,
            replies=_asked_replies(self.roles, self.prepared),
            insists=any(member.structured for member in members),
            needs_logprobs=role.early_stop is not None or (protocol.needs_logprobs and bool(role.top_logprobs)),
            free_logprobs=any(_asks_free_text_logprobs(family, member, protocol) for family, member in self.roles),
            streams=any(member.early_stop is not None for member in members),
            reasoning_tokens=max(member.reasoning_tokens for member in members),
            written=frozenset(
                name for member in members for name in member.model_fields_set if getattr(member, name) is not None
            ),
        )


def _most_demanding(members: Sequence[RoleBinding]) -> RoleBinding:
    return max(members, key=lambda member: (member.early_stop is not None, member.top_logprobs or 0))


def _trial_role(role: RoleBinding, members: Sequence[RoleBinding]) -> Decoding:
    """Decoding of the role, with unset fields from the first role that sets them, so that all settings are tried."""
    decodings = [role.decoding(), *(member.decoding() for member in members)]
    first_set = {
        name: next((given for each in decodings if (given := getattr(each, name)) not in (None, ())), None)
        for name in ("temperature", "top_p", "seed", "stop", "repetition_penalty", "reasoning_effort")
    }
    return msgspec.structs.replace(
        decodings[0], **{name: value for name, value in first_set.items() if value is not None}
    )


def _asked_replies(roles: Sequence[tuple[str, RoleBinding]], prepared: Prepared) -> tuple[ExpectedReply, ...]:
    """Reply types of the roles, with the longest list of labels; none for roles with unconstrained replies.

    A user's own protocol without declared reply types is assumed to ask for positions.
    """
    declared, labels = needed_replies(prepared)
    expected = [
        ExpectedReply(reply, labels, member.max_tokens, _logprobs_of(member, prepared.protocol))
        for family, member in roles
        if member.structured is not False
        for reply in declared.get(family, () if declared else (Position,))
    ]
    return tuple(dict.fromkeys(expected))


def needed_replies(
    prepared: Prepared,
) -> tuple[Mapping[str, Sequence[type[BaseModel]]], tuple[str, ...] | None]:
    """Reply types of the first cases by role family, and the longest of their lists of labels; all declared types and
    None if the task cannot be read twice."""
    declared = prepared.protocol.replies
    if prepared.checked is None:
        return declared, None
    needed, closed = set[tuple[str, type[BaseModel]]](), list[tuple[str, ...]]()
    for each in islice(prepared.cases(), _MAX_EXAMINED):
        by_family = prepared.protocol.replies_for(each.case)
        needed |= {(family, reply) for family, replies in by_family.items() for reply in replies}
        closed += [each.case.labels] if each.case.labels else []
    by_role = {family: [r for r in replies if (family, r) in needed] for family, replies in declared.items()}
    return by_role, max(closed, key=lambda labels: (len(labels), sum(map(len, labels))), default=None)


def _logprobs_of(member: RoleBinding, protocol: DebateProtocol) -> Literal["no", "wanted", "needed"]:
    """Whether a role requests log-probabilities, and whether its replies are useless without them."""
    if member.decoding().top_logprobs is None:
        return "no"
    written = "top_logprobs" in member.model_fields_set or member.early_stop is not None
    return "wanted" if protocol.goes_on_without_logprobs and not written else "needed"


def _asks_free_text_logprobs(family: str, member: RoleBinding, protocol: DebateProtocol) -> bool:
    """Whether a role requests log-probabilities of free-text replies."""
    free = member.structured is False or (bool(protocol.replies) and not protocol.replies.get(family))
    return free and member.decoding().top_logprobs is not None
