"""Factory functions of a process's debate context: models, agents, judges, limiter."""

from __future__ import annotations

import asyncio
from pathlib import Path

from moot.actors.agent.agent import Agent
from moot.actors.agent.backend_factory import make_model
from moot.actors.agent.roles import RoleBinding, Roles
from moot.actors.classifiers.classifier import LoadedClassifier, load_classifier
from moot.actors.debate.context import AgentPool, DebateContext, RecordClient
from moot.actors.debate.first_asks import FirstAskExchange, FirstAsks
from moot.actors.debate.reuse import ReplyCache
from moot.actors.debate.run_spec import RunSpec
from moot.actors.encoders.resolve import make_encoder
from moot.actors.limits.budget_account import BudgetAccount
from moot.actors.limits.ledger import DurableLimiter, Ledger
from moot.actors.limits.limiter_client import Exchange, LimiterClient
from moot.actors.models.interface import Model
from moot.actors.models.resolve import ModelBinding, ModelSpec, is_embedded
from moot.actors.record.folder import RunFolder
from moot.actors.record.store.store import Store
from moot.actors.retrieval.library import StoredLibrary
from moot.actors.simulated.answer_key import AnswerKey
from moot.actors.telemetry.telemetry import NO_TELEMETRY, Telemetry
from moot.protocols.messages import Ask, AskResult, family_of
from moot.protocols.tasks import open_task
from moot.protocols.templates import Templates

Service = tuple[str, str]
"""Key of an agent actor: a role, and the identity of one model."""


def endpoint_of(binding: RoleBinding) -> str:
    """Endpoint that shares one set of limits: a model at a server under a key."""
    return f"{binding.model} {binding.base_url or ''} {binding.api_key_env or ''}".strip()


def service_of(role: str, binding: RoleBinding) -> Service:
    """Service that answers a role."""
    return (family_of(role), endpoint_of(binding))


def services(roles: Roles) -> dict[Service, RoleBinding]:
    """All services of a run, each with a binding of its model."""
    return {service_of(family, member): member for family, members in roles.members.items() for member in members}


def model_binding(binding: RoleBinding) -> ModelBinding:
    """The model part of a role's binding."""
    return ModelBinding(model=binding.model, api_key_env=binding.api_key_env, base_url=binding.base_url)


def build_model(spec: RunSpec, binding: RoleBinding) -> Model:
    """Builds the model of a binding with its weights loaded; a simulated one gets the answer key of the run's task."""
    simulated = ModelSpec.parse(binding.model).kind == "simulated"
    key = _answer_key(spec) if simulated else None
    found = {} if binding.profile is None else {"api": binding.profile.api, "untried": binding.profile.untried}
    named = model_binding(binding).model_copy(update=found)
    return make_model(named, seed=spec.seed, answer_key=key, load=True)


def _answer_key(spec: RunSpec) -> AnswerKey:
    if spec.key is not None:
        return AnswerKey(spec.key)
    task = open_task(spec.task)
    return AnswerKey.from_cases(task.cases()) if task.replayable else AnswerKey()


def build_agent(
    spec: RunSpec,
    binding: RoleBinding,
    record_client: RecordClient,
    limiter_client: LimiterClient | None,
    telemetry: Telemetry = NO_TELEMETRY,
) -> Agent:
    """Builds an agent or judge of this process."""
    roles, templates = Roles(spec.roles), Templates.from_sources(spec.templates)
    return Agent(
        build_model(spec, binding),
        roles,
        templates,
        record_client,
        spec.save_tokens,
        spec.retry,
        limiter_client=limiter_client,
        endpoint=endpoint_of(binding),
        price=spec.prices.get(binding.model),
        save_reasoning=spec.save_reasoning,
        telemetry=telemetry,
    )


def needs_limiter(spec: RunSpec) -> bool:
    """Whether a run has anything to limit: it calls a server, or has a budget."""
    remote = any(not is_embedded(member.model) for members in spec.roles.values() for member in members)
    return remote or bool(_caps(spec))


def _caps(spec: RunSpec) -> dict[str, float]:
    caps = {"usd": spec.budget.max_cost_usd, "tokens": spec.budget.max_tokens}
    return {name: float(cap) for name, cap in caps.items() if cap is not None}


def build_limiter(spec: RunSpec) -> DurableLimiter:
    """Builds the limiter of a run, with the ledger of its earlier incarnations."""
    accounts = {name: BudgetAccount(cap, spec.spent.get(name, 0.0)) for name, cap in _caps(spec).items()}
    ledger = Ledger(RunFolder(spec.folder) if spec.store is None else Store.of(spec.store), spec.epoch)
    return DurableLimiter(spec.limits, accounts, ledger, resumed=spec.resumed)


def build_limiter_client(spec: RunSpec, exchange: Exchange) -> LimiterClient:
    """Builds the limiter client of this process."""
    return LimiterClient(spec.limits, _caps(spec), exchange)


def build_debate_context(
    spec: RunSpec,
    agent_pool: AgentPool,
    record_client: RecordClient,
    telemetry: Telemetry = NO_TELEMETRY,
    first_ask_exchange: FirstAskExchange | None = None,
) -> DebateContext:
    """Builds the debate context of this process. Reads a library of documents as a whole: not for an event loop."""
    return DebateContext(
        agents=agent_pool,
        record=record_client,
        roles=Roles(spec.roles),
        templates=Templates.from_sources(spec.templates),
        encoder=make_encoder(spec.encoder, spec.retry, api_key_env=spec.encoder_key_env),
        seed=spec.seed,
        attended=spec.attended,
        drain=asyncio.Event(),
        reuse=ReplyCache(spec.reuse, spec.save_tokens) if spec.reuse else None,
        first_asks=FirstAsks(spec.max_unusable, spec.proven, first_ask_exchange),
        classifier=_classifier(spec),
        retriever=StoredLibrary(spec.library, spec.encoder) if spec.library else None,
        telemetry=telemetry,
    )


def _classifier(spec: RunSpec) -> LoadedClassifier | None:
    if spec.classifier is None or spec.classifier_digest is None:
        return None
    return load_classifier(Path(spec.classifier), spec.classifier_digest, spec.encoder, spec.retry)


class LocalAgentPool:
    """Agent pool in the same process: one agent or judge per service.

    Args:
        spec: the run.
        record_client: receives the rows of paid replies.
        limiter_client: admits their calls; None without limits.
        telemetry: metrics and traces of the process.
    """

    def __init__(
        self,
        spec: RunSpec,
        record_client: RecordClient,
        limiter_client: LimiterClient | None,
        telemetry: Telemetry = NO_TELEMETRY,
    ) -> None:
        self._roles, self._limiter_client = Roles(spec.roles), limiter_client
        self._agents = {
            service: build_agent(spec, binding, record_client, limiter_client, telemetry)
            for service, binding in services(self._roles).items()
        }
        self._by_role: dict[str, Agent] = {}

    async def answer(self, ask: Ask) -> AskResult:
        """See `AgentPool.answer`."""
        agent = self._by_role.get(ask.role)
        if agent is None:
            agent = self._agents[service_of(ask.role, self._roles.binding(ask.role))]
            self._by_role[ask.role] = agent
        return await agent.answer(ask)

    async def drain(self) -> None:
        """See `AgentPool.drain`."""
        if self._limiter_client is not None:
            self._limiter_client.drain()

    async def close(self) -> None:
        """Release the models."""
        for agent in self._agents.values():
            await agent.close()
