"""Preparation of a run: opens and validates everything that its configuration names.

Calls no model and writes no record; `moot.deploy.runs.checks` calls the models.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import structlog
from pydantic import BaseModel

from moot.actors.agent.roles import RoleBinding
from moot.actors.classifiers.classifier import ResolvedClassifier, find_classifier
from moot.actors.debate.placement import ClusterSettings, cluster_address
from moot.actors.debate.run_spec import RunSpec
from moot.actors.encoders.hashed_ngrams import HASHED_NGRAMS
from moot.actors.encoders.resolve import identity
from moot.actors.limits.settings import EndpointLimits
from moot.actors.models.prices import Price
from moot.actors.record.folder import RunFolder
from moot.actors.record.store.mirror import Mirror
from moot.actors.record.store.uri import is_uri
from moot.actors.retrieval.documents.docs import DocumentSet
from moot.actors.simulated.answer_key import AnswerKey
from moot.deploy.runs.bindings import bind_roles
from moot.deploy.runs.case_columns import CaseColumns
from moot.deploy.runs.limits import budget, endpoint_limits, known_prices
from moot.deploy.runs.prior_runs import chosen_encoder, is_simulated, reused_folder, with_absolute_replay
from moot.deploy.runs.run_config import RunConfig
from moot.deploy.runs.run_folders import default_out, run_folder, run_mirror, run_name
from moot.deploy.runs.run_library import LibraryCache, run_documents
from moot.deploy.runs.task import Cases, check_first_case, open_task_for, task_from_cases
from moot.protocols.base import DebateProtocol
from moot.protocols.case import LabelledCase
from moot.protocols.errors import ConfigError
from moot.protocols.own_protocols import adopt_protocol
from moot.protocols.registry import make_protocol
from moot.protocols.tasks import Task, TaskSummary
from moot.protocols.tasks.registry import absolute_spec
from moot.protocols.templates import Templates

_log = structlog.get_logger(__name__)

Bindings = Mapping[str, list[RoleBinding]]
"""Models and decoding by role family."""


@dataclass(frozen=True)
class Prepared:
    """Prepared run: its task, protocol, settings, models and templates are valid.

    Attributes:
        config: the configuration, with `out` filled in and `encoder` as its identity.
        task: the cases.
        checked: result of the validation pass over the task; None for a source that cannot be read twice.
        columns: which columns of the cases the protocol reads, of all cases that were validated.
        in_memory: whether the task was given as an object, so that other processes cannot open its spec.
        protocol: the protocol object.
        settings: the protocol's settings with every default filled in, as plain data.
        bindings: models and decoding by role family.
        templates: all prompt templates.
        folder: the run's folder, absolute; the local copy of a run in a store.
        mirror: copies the folder to the store; None for a run in a local folder.
        limits: limits by endpoint.
        prices: known prices by model.
        reuse: absolute folder of the run whose replies are reused; None without one.
        docs: the documents for retrieval; None without any.
        library: absolute folder of their library: the run's own, a shared one, or an existing one; None without
            documents.
        d_untested: whether the gate's test of D is off because no threshold is known for the run's encoder.
        classifier: the run's classifier of judges' summaries; None without one.
        trials_done: whether trial calls were made, so that the bindings have their results.
    """

    config: RunConfig
    task: Task
    checked: TaskSummary | None
    columns: CaseColumns
    in_memory: bool
    protocol: DebateProtocol
    settings: Mapping[str, Any]
    bindings: Bindings
    templates: Templates
    folder: Path
    mirror: Mirror | None
    limits: Mapping[str, EndpointLimits]
    prices: Mapping[str, Price]
    reuse: Path | None
    docs: DocumentSet | None
    library: Path | None
    d_untested: bool
    classifier: ResolvedClassifier | None
    trials_done: bool = False

    def cases(self) -> Iterator[LabelledCase]:
        """Cases of the task, up to the limit; of those that could not be validated before, warns of unread columns."""
        for labelled in islice(self.task.cases(), self.config.limit):
            if self.checked is None and not labelled.invalid:
                self.columns.warn_of(labelled.case)
            yield labelled

    @property
    def total(self) -> int | None:
        """Number of cases of the run; None if unknown before the run."""
        if self.checked is None:
            return None
        return self.checked.count if self.config.limit is None else min(self.checked.count, self.config.limit)

    @property
    def columns_read(self) -> str:
        """Which columns of the cases the protocol reads, in a line; those of cases that come later are not known."""
        return self.columns.words(self.task.columns())

    @property
    def record(self) -> RunFolder:
        """The run's folder, with its store if it has one."""
        return RunFolder(self.folder, None if self.mirror is None else self.mirror.store)

    @cached_property
    def members(self) -> list[RoleBinding]:
        """Bindings of all families."""
        return [member for members in self.bindings.values() for member in members]

    @property
    def simulated(self) -> bool:
        """Whether any reply comes from the simulated model."""
        return any(is_simulated(member.model) for member in self.members)

    @property
    def gated(self) -> bool:
        """Whether a gate decides which cases are debated."""
        return self.protocol.gated

    @property
    def compares_words(self) -> bool:
        """Whether the gate compares texts of real models by an encoder of words, not of meaning."""
        tested = self.protocol.embedding_threshold is not None
        return tested and not self.simulated and self.config.encoder == HASHED_NGRAMS

    def spec(
        self,
        epoch: int,
        spent: Mapping[str, float],
        resumed: bool,
        *,
        proven: Iterable[str] = (),
        followed: bool = False,
    ) -> RunSpec:
        """Specification of the run for its actors.

        Args:
            epoch: epoch of the folder's owner.
            spent: use of earlier sessions by budget.
            resumed: whether there was an earlier session.
            proven, followed: see `RunSpec`.
        """
        return RunSpec(
            protocol=self.config.protocol,
            settings=dict(self.settings),
            roles={
                family: [with_absolute_replay(member) for member in members]
                for family, members in self.bindings.items()
            },
            templates=self.templates.sources,
            task=absolute_spec(self.task.spec) if self.task.replayable else self.task.spec,
            key=self._key() if self.in_memory else None,
            seed=self.config.seed,
            encoder=self.config.encoder,
            encoder_key_env=self.config.encoder_key_env,
            save_tokens=self.config.save_tokens,
            save_reasoning=self.config.save_reasoning,
            reuse=str(self.reuse) if self.reuse else None,
            classifier=str(self.classifier.folder) if self.classifier else None,
            classifier_digest=self.classifier.card.digest if self.classifier else None,
            library=str(self.library) if self.library else None,
            attended=self.config.attended,
            followed=followed,
            folder=str(self.folder),
            store=None if self.mirror is None else self.mirror.store.uri,
            epoch=epoch,
            writers=self.config.cluster.writers,
            cluster=self.config.cluster,
            max_open=self.config.max_open,
            limits=dict(self.limits),
            budget=budget(self.config),
            spent=dict(spent),
            resumed=resumed,
            prices=dict(self.prices),
            max_unusable=self.config.max_unusable,
            proven=sorted(proven),
            debate_timeout_s=self.config.debate_timeout_s,
        )

    def _key(self) -> dict[int, str]:
        """Answer key of cases in memory, for the simulated model."""
        needs_key = self.simulated and self.task.replayable
        return AnswerKey.from_cases(replace(self.task, load_picture=None).cases()).slots if needs_key else {}


def prepare(
    config: RunConfig,
    *,
    task: Cases | None = None,
    protocol: object | None = None,
    shared_libraries: LibraryCache | None = None,
) -> Prepared:
    """Open and check everything that a run names.

    Args:
        config: the configuration.
        task: cases as objects, instead of `config.task`.
        protocol: an object with `async def run(self, case, floor)`, instead of `config.protocol`.
        shared_libraries: libraries of related runs; None without related runs.

    Raises:
        UserError: the first error found.
    """
    _check_engine(config)
    instance = (
        make_protocol(config.protocol, config.settings()) if protocol is None else _user_protocol(protocol, config)
    )
    opened = open_task_for(config.task, instance) if task is None else task_from_cases(task)
    columns = CaseColumns(instance)
    checked = opened.validate(columns.add)
    check_first_case(instance, opened)
    bindings = bind_roles(config, instance)
    members = [member for each in bindings.values() for member in each]
    templates = _templates(config.prompts, instance)
    out = config.out or default_out(run_name(instance.name, config.preset), opened.name, config.seed, config.model)
    mirror = run_mirror(out) if is_uri(out) else None
    folder = run_folder(out) if mirror is None else mirror.folder
    reuse = reused_folder(config.model_copy(update={"out": out}), folder) if config.reuse else None
    encoder = identity(chosen_encoder(config, instance, [each.model for each in members], folder, reuse))
    tested = instance.embedding_threshold is not None
    instance = instance.for_encoder(encoder)
    if config.docs and not instance.reads_documents:
        raise ConfigError(f"--docs: protocol {instance.name!r} searches no documents")
    filled_in = {"out": out, "encoder": encoder, "task": opened.spec, "protocol": _named(config, protocol, instance)}
    config = config.model_copy(update=filled_in)
    docs, library = run_documents(config.docs, encoder, folder, shared_libraries) if config.docs else (None, None)
    if mirror is not None and docs is not None and docs.library is None:
        raise ConfigError(
            "--docs: for a run in a bucket give the folder of a library that every node sees; `moot.index` makes one"
        )
    return Prepared(
        config=config,
        task=opened,
        checked=checked,
        columns=columns,
        in_memory=task is not None,
        protocol=instance,
        settings=_settings_of(instance, config),
        bindings=bindings,
        templates=templates,
        folder=folder,
        mirror=mirror,
        limits=endpoint_limits(config, members),
        prices=known_prices(config, members),
        reuse=reuse,
        docs=docs,
        library=library,
        d_untested=tested and instance.embedding_threshold is None,
        classifier=_classifier(config, instance, encoder),
    )


def _check_engine(config: RunConfig) -> None:
    """Check that only a run on Ray has cluster settings.

    Raises:
        ConfigError: an inline run has cluster settings, or the address is invalid.
    """
    if config.engine == "ray":
        cluster_address(config.address)
    elif config.address is not None:
        raise ConfigError("--address: with --engine inline a run stays in its own process; leave one of the two out")
    elif config.cluster != ClusterSettings():
        raise ConfigError("--cluster: with --engine inline a run stays in its own process; leave one of the two out")


def _classifier(config: RunConfig, protocol: DebateProtocol, encoder: str) -> ResolvedClassifier | None:
    """Classifier of the run; None without one.

    Raises:
        ConfigError: the protocol uses no classifier, or the classifier cannot be used.
    """
    if config.classifier is None:
        return None
    if not protocol.classifies:
        raise ConfigError(f"protocol {protocol.name!r} uses no classifier: leave --classifier out")
    return find_classifier(config.classifier, encoder)


def _user_protocol(protocol: object, config: RunConfig) -> DebateProtocol:
    adopted = adopt_protocol(protocol)
    if config.settings():
        raise ConfigError("`set` and `agents` need a protocol's name; an object has its own settings")
    return adopted


def _named(config: RunConfig, protocol: object | None, instance: DebateProtocol) -> str:
    return config.protocol if protocol is None else instance.name


def _templates(prompts: str | None, protocol: DebateProtocol) -> Templates:
    """Templates of the package, overridden by those of `prompts`, and the protocol's own (`templates`)."""
    templates = Templates(prompts, protocol.renders)
    for name, source in protocol.templates.items():
        templates.add(name, source)
    return templates


def _settings_of(protocol: DebateProtocol, config: RunConfig) -> Mapping[str, Any]:
    settings = protocol.settings
    return settings.model_dump(mode="json") if isinstance(settings, BaseModel) else config.settings()
