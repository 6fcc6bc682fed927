"""Protocol registry: the built-in protocols by name, users' own as `module:Class`, and the reader of settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from moot.protocols.base import DebateProtocol
from moot.protocols.ceda.protocol import Ceda
from moot.protocols.constructor_auditor.protocol import ConstructorAuditor
from moot.protocols.errors import ConfigError, unknown_name
from moot.protocols.evince.protocol import Evince
from moot.protocols.judge_panel.protocol import JudgePanel
from moot.protocols.own_protocols import adopt_protocol, can_run
from moot.protocols.presets.preset import find_preset, preset_names
from moot.protocols.selene.protocol import Selene
from moot.protocols.socrasynth.protocol import SocraSynth
from moot.protocols.user_modules import named_object, own_classes
from moot.protocols.validation_messages import explain_error

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class ProtocolEntry:
    """Registered protocol.

    Attributes:
        description: one line for lists.
        make: constructs the protocol from settings (dotted keys or nested); raises `ConfigError`.
        settings_model: model of its settings.
        preset: dotted keys whose defaults differ from the model's.
        fixed: dotted keys that define the protocol; another value is refused.
    """

    description: str
    make: Callable[[Mapping[str, Any]], DebateProtocol]
    settings_model: type[BaseModel]
    preset: Mapping[str, Any] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict)


def _entry(
    name: str,
    protocol: Callable[[Any], DebateProtocol],
    model: type[BaseModel],
    description: str,
    preset: Mapping[str, Any] | None = None,
    fixed: Mapping[str, Any] | None = None,
) -> ProtocolEntry:
    preset, fixed = dict(preset or {}), dict(fixed or {})

    def make(settings: Mapping[str, Any]) -> DebateProtocol:
        return protocol(read_settings(model, settings, name=name, preset=preset, fixed=fixed))

    return ProtocolEntry(description, make, model, preset, fixed)


def _selene(name: str, description: str, **values: Mapping[str, Any]) -> ProtocolEntry:
    return _entry(name, partial(Selene, name=name), Selene.Settings, description, **values)


PROTOCOLS: dict[str, ProtocolEntry] = {
    "selene": _selene(
        "selene",
        "a gate skips the debate where agents already agree; judges score the answers over sampled evidence "
        "(`judging.variants=paraphrase`: paraphrased evidence, as in the paper's experiments)",
    ),
    "always-debate": _selene(
        "always-debate",
        "CFMAD-like: debate every case, one judge pass per answer (real CFMAD also presets stances)",
        preset={"judging.method": "single"},
        fixed={"gate.when": "always"},
    ),
    "single-agent": _selene(
        "single-agent",
        "one agent, one answer, no debate and no judge",
        fixed={"agents": 1, "gate.when": "never", "judging.method": "none", "vote.samples": 1},
    ),
    "majority-vote": _selene(
        "majority-vote",
        "a vote over independent answers (agents x vote.samples, about as many calls as a debate)",
        preset={"vote.samples": 3},
        fixed={"gate.when": "never", "judging.method": "none"},
    ),
    "evince": _entry(
        "evince",
        Evince,
        Evince.Settings,
        "agents debate with distributions over a closed list of labels; information-theoretic measures moderate",
    ),
    "socrasynth": _entry(
        "socrasynth",
        SocraSynth,
        SocraSynth.Settings,
        "two sides debate a subject, less contentiously in each round; joint proposal, a panel judges in both orders",
    ),
    "constructor-auditor": _entry(
        "constructor-auditor",
        ConstructorAuditor,
        ConstructorAuditor.Settings,
        "an argument, a challenge, an answer from both, and judges of the reasoning: essays, mathematics, factual QA",
    ),
    "ceda": _entry(
        "ceda",
        Ceda,
        Ceda.Settings,
        "is a claim supported or hallucinated? Two agents debate over the evidence; judges or a classifier decide",
    ),
    "judge-panel": _entry(
        "judge-panel",
        JudgePanel,
        JudgePanel.Settings,
        "no debate: judges score existing replies under a rubric, in one or several passes",
    ),
}
"""Built-in protocols by name."""


def make_protocol(name: str, settings: Mapping[str, Any] | None = None) -> DebateProtocol:
    """Constructs the protocol `name`, or a user's own behind `module:Class`, with its settings.

    A user's class is a subclass of `DebateProtocol`, or any class with `async def run(self, case, floor)`. If it has a
    pydantic model as `Settings`, it is called with an instance of that, else without arguments. Its optional attributes
    are the capabilities of `DebateProtocol`.

    Args:
        name: a key of `PROTOCOLS`, or an import path.
        settings: dotted keys (`{"gate.tau_d": 0.2}`), nested mappings, or both.

    Raises:
        ConfigError: for an unknown protocol, an unknown setting or a wrong value, or a mistyped or malformed capability
            of a user's protocol; always one line.
    """
    if ":" in name:
        return _own_protocol(name, settings or {})
    if name not in PROTOCOLS and name in preset_names():
        raise ConfigError(f"{name!r} is a preset of protocol {find_preset(name).protocol!r}: give --preset {name}")
    if name not in PROTOCOLS:
        unknown = unknown_name("protocol", name, PROTOCOLS)
        if found := own_classes(name):
            raise ConfigError(f"{unknown}. A class of your own is given as --protocol {found[0]}")
        raise unknown
    return PROTOCOLS[name].make(settings or {})


def read_settings(
    model: type[M],
    settings: Mapping[str, Any],
    *,
    name: str,
    preset: Mapping[str, Any] | None = None,
    fixed: Mapping[str, Any] | None = None,
) -> M:
    """Reads settings, from dotted keys or nested mappings, over the protocol's preset.

    Raises:
        ConfigError: names the dotted key: an unknown one with the nearest known, a wrong value with the expected one,
            one given twice, or one that the protocol `name` fixes.
    """
    leaves = list(setting_keys(model))
    groups = {leaf.rpartition(".")[0] for leaf in leaves} - {""}
    given: dict[str, Any] = {}
    for key, value in _flat(settings, frozenset(leaves)):
        if key in groups:
            inside = ", ".join(leaf for leaf in leaves if leaf.startswith(f"{key}."))
            raise ConfigError(f"setting `{key}` is a group, not a value: set one of {inside}")
        if key not in leaves:
            raise unknown_name("setting", key, leaves)
        if key in given:
            raise ConfigError(f"setting `{key}` is given twice")
        given[key] = value
    try:
        read = model.model_validate(_nested({**(preset or {}), **(fixed or {}), **given}))
    except ValidationError as error:
        raise ConfigError(_explain(error)) from error
    for key, value in (fixed or {}).items():
        if _at(read, key) != value:
            raise ConfigError(f"setting `{key}` is fixed to {value!r} in protocol {name!r}")
    return read


def setting_keys(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """Every setting of a tree as a dotted key, in the tree's order; a model that is `set_as_a_whole` is one setting.

    >>> list(setting_keys(Selene.Settings))[:2]
    ['agents', 'answer_first']
    """
    for name, info in model.model_fields.items():
        kind = info.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel) and not getattr(kind, "set_as_a_whole", False):
            yield from setting_keys(kind, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"


def _flat(settings: Mapping[str, Any], leaves: frozenset[str], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in settings.items():
        key = f"{prefix}{name}"
        if isinstance(value, Mapping) and key not in leaves:
            yield from _flat(value, leaves, f"{key}.")
        else:
            yield key, value


def _nested(flat: Mapping[str, Any]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for key, value in flat.items():
        *path, last = key.split(".")
        branch = tree
        for part in path:
            branch = branch.setdefault(part, {})
        branch[last] = value
    return tree


def _at(settings: BaseModel, key: str) -> Any:
    found: Any = settings
    for part in key.split("."):
        found = getattr(found, part)
    return found


def _explain(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    return f"setting `{where}`: {explain_error(first)}" if where else f"settings: {explain_error(first)}"


class NoSettings(BaseModel):
    """Settings of a protocol without any."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def _own_protocol(path: str, settings: Mapping[str, Any]) -> DebateProtocol:
    try:
        found = named_object(path)
    except Exception as error:
        raise ConfigError(f"protocol {path!r} cannot be imported: {type(error).__name__}: {error}") from error
    if not (isinstance(found, type) and can_run(found)):
        raise ConfigError(f"protocol {path!r} is not a class with `async def run(self, case, floor)`")
    model = getattr(found, "Settings", None)
    if model is None:
        read_settings(NoSettings, settings, name=path)
        return adopt_protocol(_made(path, found), path)
    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        raise ConfigError(f"protocol {path!r}: `Settings` is not a pydantic model")
    return adopt_protocol(_made(path, found, read_settings(model, settings, name=path)), path)


def _made(path: str, found: type, *settings: BaseModel) -> Any:
    try:
        return found(*settings)
    except Exception as error:
        raise ConfigError(f"protocol {path!r} cannot be made: {type(error).__name__}: {error}") from error
