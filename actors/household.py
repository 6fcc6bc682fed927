"""Building what a process needs to hold debates: models, agents, judges, and the house that its debates share."""

from __future__ import annotations

import asyncio

from moot.actors.agent import Agent
from moot.actors.encoder import Encoder, HashedNgramEncoder
from moot.actors.house import House
from moot.actors.models.answer_key import AnswerKey
from moot.actors.models.interface import Model
from moot.actors.models.resolve import ModelBinding, ModelSpec, make_model
from moot.actors.ports import Crew, Scribe
from moot.actors.roles import RoleBinding, Roles, family_of
from moot.actors.spec import RunSpec
from moot.protocols.case import Case, LabelledCase
from moot.protocols.errors import unknown_name
from moot.protocols.messages import Answered, Ask
from moot.protocols.tasks import open_task
from moot.protocols.templates import Templates

Service = tuple[str, str]
"""What one agent actor serves: a role family and, within it, the identity of one model."""


def service_of(role: str, binding: RoleBinding) -> Service:
    """The service that answers a role."""
    return (family_of(role), f"{binding.model} {binding.base_url or ''} {binding.api_key_env or ''}".strip())


def services(roles: Roles) -> dict[Service, RoleBinding]:
    """Every service that a run needs, with a binding that names its model."""
    return {service_of(family, member): member for family, members in roles.members.items() for member in members}


def model_binding(binding: RoleBinding) -> ModelBinding:
    """The part of a role's binding that names its model."""
    return ModelBinding(model=binding.model, api_key_env=binding.api_key_env, base_url=binding.base_url)


def build_model(spec: RunSpec, binding: RoleBinding) -> Model:
    """The model behind a binding, its weights loaded; a simulated one gets the answer key of the run's task."""
    simulated = ModelSpec.parse(binding.model).kind == "simulated"
    key = _answer_key(spec) if simulated else None
    return make_model(model_binding(binding), seed=spec.seed, answer_key=key, load=True)


def _answer_key(spec: RunSpec) -> AnswerKey:
    if spec.key is not None:
        pairs = enumerate(spec.key.items())
        return AnswerKey.from_cases(LabelledCase(Case(id=str(i), question=q), i, gold) for i, (q, gold) in pairs)
    task = open_task(spec.task)
    return AnswerKey.from_cases(task.cases()) if task.replayable else AnswerKey()


def build_agent(spec: RunSpec, binding: RoleBinding, scribe: Scribe) -> Agent:
    """An agent or judge of this process."""
    roles, templates = Roles(spec.roles), Templates.from_sources(spec.templates)
    return Agent(build_model(spec, binding), roles, templates, scribe, spec.save_tokens, spec.retry)


def build_encoder(name: str) -> Encoder:
    """The encoder of that name.

    Raises:
        ConfigError: for an unknown name.
    """
    encoder = HashedNgramEncoder()
    if name != encoder.name:
        raise unknown_name("encoder", name, [encoder.name])
    return encoder


def build_house(spec: RunSpec, crew: Crew, scribe: Scribe) -> House:
    """What the debates of this process share."""
    return House(
        crew=crew,
        scribe=scribe,
        roles=Roles(spec.roles),
        templates=Templates.from_sources(spec.templates),
        encoder=build_encoder(spec.encoder),
        seed=spec.seed,
        attended=spec.attended,
        drain=asyncio.Event(),
    )


class LocalCrew:
    """Agents and judges in the same process, one per service.

    Args:
        spec: the run.
        scribe: takes the rows of what they pay for.
    """

    def __init__(self, spec: RunSpec, scribe: Scribe) -> None:
        self._roles = Roles(spec.roles)
        self._agents = {
            service: build_agent(spec, binding, scribe) for service, binding in services(self._roles).items()
        }
        self._by_role: dict[str, Agent] = {}

    async def answer(self, ask: Ask) -> Answered:
        """See `ports.Crew.answer`."""
        agent = self._by_role.get(ask.role)
        if agent is None:
            agent = self._agents[service_of(ask.role, self._roles.binding(ask.role))]
            self._by_role[ask.role] = agent
        return await agent.answer(ask)

    async def close(self) -> None:
        """Release the models."""
        for agent in self._agents.values():
            await agent.close()
