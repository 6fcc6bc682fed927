"""Earlier runs that a run depends on: its own sessions, the reused run, the replayed run."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from moot.actors.agent.roles import RoleBinding
from moot.actors.debate.placement import cluster_address
from moot.actors.debate.reuse import count_reusable
from moot.actors.encoders.hashed_ngrams import HASHED_NGRAMS
from moot.actors.encoders.minilm import HOW, MINILM, minilm_installed
from moot.actors.encoders.resolve import AUTO
from moot.actors.models.resolve import ModelSpec
from moot.actors.record.folder import RunFolder
from moot.actors.record.recorded_run import RecordedRun
from moot.actors.record.run_yaml import read_run_yaml
from moot.actors.record.store.mirror import is_copy, record_path
from moot.actors.record.store.uri import is_uri, local_path
from moot.deploy.runs.run_config import RunConfig
from moot.protocols.base import DebateProtocol
from moot.protocols.errors import ConfigError, RecordError
from moot.protocols.near_paths import near_path

_MODEL_FIELDS = frozenset({"model", "base_url", "api_key_env", "structured"})
"""Fields of a binding that a replay does not take over from the recorded model."""


def reused_folder(config: RunConfig, own: Path) -> Path:
    """Absolute folder of the run that `config.reuse` names; for a URI, of a local copy.

    Args:
        config: the configuration, with `reuse` and `out`.
        own: this run's folder.

    Raises:
        ConfigError: there is no run, its record cannot be read by this version, it is this run, or it is in a store and
            other machines could not read the copy; or as `cluster_address`.
    """
    reuse = str(config.reuse)
    if reuse == config.out or local_path(reuse).resolve() == own.resolve():
        raise ConfigError(f"--reuse {reuse}: that is this run's own folder; choose another one with --out")
    if is_uri(reuse) and not _is_local(config):
        raise ConfigError(
            f"--reuse {reuse}: on a cluster the folder must be visible to every node; copy that run into one"
        )
    folder = _local_copy(reuse).absolute()
    if not RunFolder(folder).exists():
        raise ConfigError(f"--reuse {reuse}: no run there (no run.yaml){near_path(reuse, 'run.yaml')}")
    try:
        read_run_yaml(RunFolder(folder))
    except RecordError as error:
        raise ConfigError(f"--reuse {reuse}: {error}") from None
    return folder


def _local_copy(reuse: str) -> Path:
    try:
        return record_path(reuse)
    except RecordError as error:
        raise ConfigError(f"--reuse {reuse}: {error}") from None


def _is_local(config: RunConfig) -> bool:
    """Whether all processes of the run are on this machine."""
    ray = sys.modules.get("ray")
    return config.engine == "inline" or not (
        cluster_address(config.address) or (ray is not None and ray.is_initialized())
    )


def recorded_encoder(folder: Path, reuse: Path | None, models: Iterable[str]) -> str | None:
    """Encoder of the run in `folder`, else of the reused run, else of a replayed run; None without any of them.

    Raises:
        RecordError: a run.yaml cannot be read.
        ConfigError: a replayed run is missing.
    """
    replayed = (run for model in models if (run := replayed_run(model)) is not None)
    for run in (RunFolder(folder), *([RunFolder(reuse)] if reuse else []), *replayed):
        encoder = read_run_yaml(run).get("encoder") if run.exists() else None
        if isinstance(encoder, str):
            return encoder
    return None


def reusable_replies(folder: Path) -> int:
    """Number of reusable replies of a run; reads its index.

    Raises:
        ConfigError: the record cannot be read.
    """
    try:
        return count_reusable(RecordedRun(folder))
    except RecordError as error:
        raise ConfigError(f"--reuse {folder}: {error}") from None


def replayed_run(model: str) -> RunFolder | None:
    """Folder of the run that `replay/RUN` names; None for any other model.

    Raises:
        ConfigError: there is no run, or it is in a store.
    """
    spec = ModelSpec.parse(model)
    if spec.kind != "replay":
        return None
    if is_uri(spec.model):
        raise ConfigError(f"model {model!r}: a replay reads a folder: copy the run into one that every node sees")
    folder = RunFolder(Path(spec.model).expanduser().absolute())
    if is_copy(folder.path):
        raise ConfigError(f"model {model!r}: this is the copy of an unfinished run in a bucket: finish that run first")
    if not folder.exists():
        raise ConfigError(f"model {model!r}: no run in {spec.model} (no run.yaml)")
    return folder


def is_simulated(model: str) -> bool:
    """Whether a model is simulated: the embedded one, a simulated server, or a replay of one."""
    spec = ModelSpec.parse(model)
    replayed = replayed_run(model)
    if replayed is not None:
        return bool(read_run_yaml(replayed).get("simulated", False))
    return spec.kind == "simulated" or (spec.kind in ("url", "anthropic") and spec.model == "simulated")


def recorded_members(model: str, family: str) -> list[dict[str, Any]]:
    """Bindings of a role family in the run of `replay/RUN`, without their model; empty for any other model.

    Raises:
        ConfigError: there is no run, or its run.yaml cannot be read.
    """
    folder = replayed_run(model)
    if folder is None:
        return []
    try:
        families = read_run_yaml(folder).get("bindings")
    except RecordError as error:
        raise ConfigError(f"model {model!r}: {error}") from None
    members = families.get(family, []) if isinstance(families, Mapping) else []
    known = RoleBinding.model_fields.keys() - _MODEL_FIELDS
    return [{key: value for key, value in member.items() if key in known} for member in members]


def with_absolute_replay(binding: RoleBinding) -> RoleBinding:
    """The binding for remote actors, with the folder of a replay as an absolute path."""
    folder = replayed_run(binding.model)
    return binding if folder is None else binding.model_copy(update={"model": f"replay/{folder.path}"})


def chosen_encoder(
    config: RunConfig, protocol: DebateProtocol, models: Sequence[str], folder: Path, reuse: Path | None
) -> str:
    """Encoder of a run: the named one or, for `auto`, a choice.

    The first that applies:

    - The recorded encoder of a run that has begun: packages that are installed later change no run.
    - If D is compared, the encoder of the run whose replies are reused or replayed: another D would request other
      replies.
    - The encoder that a configured threshold for D implies.
    - The best installed one if D compares texts of a real model, else hashed n-grams. The simulated model draws its
      texts from a few phrases, for which these suffice; and a library of documents, which may be large, is not embedded
      by a model unless requested.

    Args:
        config: the configuration.
        protocol: the protocol, before `for_encoder`.
        models: of every member of every role.
        folder: the run's folder.
        reuse: the reused run's folder; None without one.

    Raises:
        RecordError, ConfigError: as `recorded_encoder`.
    """
    if config.encoder != AUTO:
        return config.encoder
    compared = protocol.compares_embeddings
    recorded = recorded_encoder(folder, reuse, models) if compared else recorded_encoder(folder, None, ())
    if recorded is not None:
        return recorded
    if protocol.threshold_encoder == HASHED_NGRAMS:
        return HASHED_NGRAMS
    real = not any(map(is_simulated, models))
    return MINILM if compared and real and minilm_installed() else HASHED_NGRAMS


def better_encoder() -> str:
    """Advice on a semantic encoder for this machine, as the end of a sentence."""
    return f"use --encoder {MINILM}" if minilm_installed() else f"{HOW}, then use --encoder {MINILM}"
