"""Model probe: detects a model's capabilities by trial calls before a run. Each kind of reply gets the strictest mode
of constraint that works."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import structlog

from moot.actors.models.interface import Model, ReplySchema
from moot.actors.models.model_profile import ConstraintMode, ModelProfile, ReplyOverride
from moot.actors.models.probe_calls import ExpectedReply, LogprobsRefused, ProbeCalls, ProbeRequest, SchemaRefused
from moot.actors.models.reply_schema import reply_schema
from moot.actors.models.token_logprobs import ConstrainedStage
from moot.actors.models.trial_replies import (
    TrialReplies,
    deviation_from_schema,
    stage_of_reply,
    without_alternatives,
)
from moot.protocols.errors import CapabilityMissing, ConfigError
from moot.protocols.reply_ids import reply_id, reply_name

_log = structlog.get_logger(__name__)


class ProbeResult(NamedTuple):
    """Result of a probe.

    Attributes:
        profile: of the model; of a pool, what all of its servers that answer support.
        gives_logprobs: whether every reply had log-probabilities with alternatives; False when none were requested.
        lacking: names of the servers that gave or accepted none, though they were requested.
    """

    profile: ModelProfile
    gives_logprobs: bool
    lacking: tuple[str, ...] = ()


async def probe(model: Model, trial: ProbeRequest) -> ProbeResult:
    """Probes a model with calls like those of the run, until its profile is known; they may be billed.

    If a server refuses log-probabilities, fewer are requested, then none; only then a reply is left unconstrained. If
    only some servers of a pool give them, they are requested of none.

    Raises:
        OnlyOverResponses: an OpenAI model is called over chat completions but offered over the Responses API only.
        ModelUnavailable: a call failed for another reason than a schema, a log-probability or a setting that the user
            did not set.
        CapabilityMissing: a role requires schemas, and the model does not constrain replies to them; or it returns no
            log-probabilities of a constrained reply that needs them.
        ConfigError: the model does not support a setting that the user set, or refuses log-probabilities that only the
            user requests.
    """
    calls = ProbeCalls(model, trial)
    schemas = SchemaProbe(model, trial, calls)
    await schemas.find()
    given: list[TrialReplies | None] = [schemas.replies] if schemas.replies is not None else []
    is_free = calls.profile.schemas == "free"
    if is_free or trial.free_logprobs or schemas.refused:
        given += [await _freely(calls, model, trial)]
    if schemas.refused and calls.profile.alternatives != 0:
        problem = f"{model.name} gives log-probabilities or constrains replies to a schema, not both"
        _continue_without_logprobs(calls, model, trial, problem, schemas.refused)
    elif schemas.mixed_stages:
        problem = f"the servers of {model.name} take log-probabilities of constrained replies in different ways"
        _continue_without_logprobs(calls, model, trial, problem, schemas.mixed_stages)
    lacking = {name for replies in given if replies for name in without_alternatives(replies)}
    some_give = any(len(without_alternatives(replies)) < len(replies) for replies in given if replies)
    if lacking and some_give and not trial.needs_logprobs:
        _log.warning("log-probabilities are not requested: some servers give none", servers=sorted(lacking))
        calls.learn(alternatives=0)
    if trial.streams and model.capabilities.streaming:
        await calls.replies(None, logprobs=calls.profile.alternatives != 0, streamed=True)
    returned = bool(given) and None not in given and not lacking
    if returned or not trial.needs_logprobs:
        _log_free_kinds(calls.profile, model, schemas.why)
    return ProbeResult(calls.profile, returned, tuple(sorted(lacking | calls.refusing_logprobs)))


async def _freely(calls: ProbeCalls, model: Model, trial: ProbeRequest) -> TrialReplies | None:
    """Unconstrained replies; None where log-probabilities are refused, which the profile then states.

    Raises:
        ConfigError: only the user requests them.
    """
    wanted = trial.decoding.top_logprobs is not None
    try:
        return await calls.replies(None, logprobs=wanted)
    except LogprobsRefused as refused:
        if not trial.needs_logprobs:
            raise ConfigError(
                f"model {model.name!r} gives no log-probabilities: leave `top_logprobs` out ({refused})"
            ) from None
        calls.learn(alternatives=0)
        return None


def _continue_without_logprobs(calls: ProbeCalls, model: Model, trial: ProbeRequest, problem: str, why: str) -> None:
    """Records that log-probabilities are unusable only together with a schema: constrained replies have none.

    Raises:
        CapabilityMissing: a reply requires them.
    """
    if any(asked.logprobs == "needed" for asked in trial.replies):
        raise CapabilityMissing(f"{problem}: set `--structured off`, or ask for no log-probabilities ({why})")
    calls.learn(logprobs_when_held=False)
    _log.warning(
        "replies constrained to a schema have no log-probabilities, so a gate that tests them debates every case: "
        "`--structured off` gives them, `--set gate.intrinsic=none` decides without",
        model=model.name,
        why=why,
    )


def _log_free_kinds(profile: ModelProfile, model: Model, why: str) -> None:
    """Logs which replies could not be constrained and are parsed as unconstrained JSON."""
    if not why:
        return
    if profile.schemas == "free":
        _log.warning("replies are not constrained to a schema, and read as free JSON", model=model.name, why=why)
    else:
        free = [reply_name(each.reply) for each in profile.exceptions if each.schemas == "free"]
        message = "some replies are not constrained to a schema, and read as free JSON"
        _log.warning(message, model=model.name, replies=free, why=why)


Way = tuple[ConstraintMode, bool]
"""A dialect, and whether labels are listed."""

_FREE: Way = ("free", True)

_Kinds = dict[str, list[ExpectedReply]]
"""Expected replies by the path of their type."""


class SchemaProbe:
    """Schema probe: tries the schemas of a run.

    Args:
        model, trial: see `probe`.
        calls: makes the calls, and records the results.

    Attributes:
        replies: the first ones with requested log-probabilities; None where none arrived.
        refused: why a call with both a schema and log-probabilities was refused, while one with the schema alone was
            not; empty for none.
        mixed_stages: why the log-probabilities of a pool's servers cannot be compared; empty where they can.
        why: why a kind of reply is left unconstrained; empty where none is.
    """

    def __init__(self, model: Model, trial: ProbeRequest, calls: ProbeCalls) -> None:
        self._model, self._trial, self._calls = model, trial, calls
        self._tried: dict[ReplySchema, str] = {}
        self._stages: dict[str, ConstrainedStage] = {}
        self.replies: TrialReplies | None = None
        self.refused = self.why = self.mixed_stages = ""

    async def find(self) -> None:
        """Record in the profile how each kind of reply is constrained; `free` where it is not.

        Raises:
            CapabilityMissing: a role requires schemas, and a kind of reply is not constrained to its schema.
            UserError: see `ProbeCalls.replies`.
        """
        kinds: _Kinds = {}
        for asked in self._trial.replies:
            kinds.setdefault(reply_id(asked.model), []).append(asked)
        kinds = {path: several for path, several in kinds.items() if _has_schema(several)}
        found: dict[str, Way] = {}
        for path, several in kinds.items():
            found[path] = await self._way(several)
            if len(found) == 1 and found[path] == _FREE and not await self._constrains_any(list(kinds.values())[1:]):
                found = dict.fromkeys(kinds, _FREE)
                break
        if found:
            self._note(kinds, found)

    async def _way(self, several: Sequence[ExpectedReply]) -> Way:
        """Strictest mode in which the schemas of a kind of reply are accepted and followed."""
        why = ""
        for way in self._ways(several):
            why = await self._refusal(several, way)
            if not why:
                return way
        if self._trial.insists:
            raise CapabilityMissing(
                f"{self._model.name} cannot constrain replies to a schema: set `--structured off`, or leave "
                f"`structured: true` out of its roles ({why})"
            )
        self.why = why
        return _FREE

    def _ways(self, several: Sequence[ExpectedReply]) -> Iterator[Way]:
        for dialect in dict.fromkeys((self._model.capabilities.dialect, "portable")):
            for listed in (True, False) if any(asked.labels for asked in several) else (True,):
                yield dialect, listed

    async def _refusal(self, several: Sequence[ExpectedReply], way: Way) -> str:
        """Why the model does not constrain a kind of reply in a mode; empty when it does."""
        for asked in several:
            schema = _schema(asked, way)
            if schema not in self._tried:
                self._tried[schema] = await self._try(schema, asked)
            if self._tried[schema]:
                return self._tried[schema]
        return ""

    async def _try(self, schema: ReplySchema, asked: ExpectedReply) -> str:
        logprobs = asked.logprobs != "no" and self._calls.profile.logprobs_when_held and not self.refused
        try:
            replies = await self._constrained(schema, logprobs=logprobs)
        except SchemaRefused as refused:
            return str(refused)
        why = deviation_from_schema(replies, schema)
        if not why:
            if logprobs and not self.refused:
                self.replies = self.replies or replies
                self._note_stages(replies)
            return ""
        return why

    async def _constrained(self, schema: ReplySchema, *, logprobs: bool) -> TrialReplies:
        """Constrained replies; without log-probabilities where a server refuses them."""
        try:
            return await self._calls.replies(schema, logprobs=logprobs)
        except LogprobsRefused as refused:
            replies = await self._calls.replies(schema, logprobs=False)
            self.refused = str(refused)
            return replies

    def _note_stages(self, replies: TrialReplies) -> None:
        """Record the stage of log-probabilities: one listed token that the mask forbids is proof, its absence is not.

        That of a pool is the stage of all its servers, `unknown` if one of them is; two stages cannot be compared.
        """
        for server, reply in replies.items():
            stage = stage_of_reply(reply)
            if stage != "unknown" and self._stages.get(server) != "raw":
                self._stages[server] = stage
        known = {self._stages.get(server, "unknown") for server in replies}
        self._calls.learn(held_logprobs=known.pop() if len(known) == 1 else "unknown")
        if {"raw", "masked"} <= set(self._stages.values()):
            listed = ", ".join(f"{stage} at {server}" for server, stage in self._stages.items())
            self.mixed_stages = f"before (raw) and after (masked) the schema's mask: {listed}"

    async def _constrains_any(self, others: Sequence[Sequence[ExpectedReply]]) -> bool:
        """Whether another kind of reply is constrained, tested with the smallest schema: then each kind gets its own
        calls."""
        schemas = {_schema(asked, ("portable", False)): asked for several in others for asked in several}
        fresh = [schema for schema in schemas if schema not in self._tried]
        if not fresh:
            return False
        smallest = min(fresh, key=lambda schema: len(schema.body))
        self._tried[smallest] = await self._try(smallest, schemas[smallest])
        return not self._tried[smallest]

    def _note(self, kinds: _Kinds, found: dict[str, Way]) -> None:
        """Record the mode that fits most kinds as the model's; the others are exceptions."""
        constrained = list(dict.fromkeys(way for way in found.values() if way != _FREE))

        def fitting(way: Way) -> set[str]:
            return {path for path in found if _fits(kinds[path], way, found[path])}

        usual = max(constrained, key=lambda way: len(fitting(way)), default=_FREE)
        others = {path: way for path, way in found.items() if path not in fitting(usual)}
        self._calls.learn(
            schemas=usual[0],
            listed_labels=usual[1],
            exceptions=tuple(
                ReplyOverride(reply=path, schemas=schemas, listed_labels=listed)
                for path, (schemas, listed) in others.items()
            ),
        )


def _fits(several: Sequence[ExpectedReply], way: Way, found: Way) -> bool:
    """Whether a kind of reply constrained in the mode `found` is sent the same in another mode."""
    if way == found or _FREE in (way, found):
        return way == found
    return all(_schema(asked, way) == _schema(asked, found) for asked in several)


def _has_schema(several: Sequence[ExpectedReply]) -> bool:
    """Whether a schema can constrain a kind of reply; else it is unconstrained, or its first ask raises."""
    try:
        for asked in several:
            _schema(asked, ("portable", True))
    except ConfigError:
        return False
    return True


def _schema(asked: ExpectedReply, way: Way) -> ReplySchema:
    dialect, listed = way
    assert dialect != "free"
    return reply_schema(asked.model, dialect, asked.labels, asked.max_tokens, listed_labels=listed)
