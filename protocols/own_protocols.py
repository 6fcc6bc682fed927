"""User's own protocol: its capabilities are validated, and a plain class is adapted to the base class."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from functools import cache
from typing import Any, get_type_hints

from pydantic import TypeAdapter, ValidationError

from moot.protocols.base import DebateProtocol
from moot.protocols.case import Case
from moot.protocols.errors import ConfigError
from moot.protocols.floor import Floor
from moot.protocols.messages import Verdict

_METHODS = frozenset({"replies_for", "reads_of", "effective_settings", "for_encoder", "run"})
"""Capabilities that are methods; the others are attributes with a type."""

_LIKENESS = 0.8
"""Similarity from which an unknown attribute counts as a mistyped capability; 1 is equal."""

_OF_OURS = frozenset(DebateProtocol.__mro__)


class ProtocolAdapter(DebateProtocol):
    """Adapter of an object that has `run` without being a `DebateProtocol`; it copies the object's capabilities.

    Args:
        path: its name, if it has none.
        inner: the user's object.
    """

    def __init__(self, path: str, inner: Any) -> None:
        self.inner = inner
        for capability in (_attribute_types().keys() | _METHODS) - {"run", "for_encoder"}:
            if (given := getattr(inner, capability, None)) is not None:
                setattr(self, capability, given)
        self.roles = tuple(self.roles)
        self.name = self.name or path

    def for_encoder(self, encoder: str) -> DebateProtocol:
        """See `DebateProtocol.for_encoder`."""
        if not hasattr(self.inner, "for_encoder"):
            return self
        return ProtocolAdapter(self.name, self.inner.for_encoder(encoder))

    async def run(self, case: Case, floor: Floor) -> Verdict:
        """Debate one case with the user's object."""
        verdict: Verdict = await self.inner.run(case, floor)
        return verdict


def can_run(found: object) -> bool:
    """Whether a class or an object has a `run` of its own; the abstract one of the base class does not count."""
    run = getattr(found, "run", None)
    return callable(run) and not getattr(run, "__isabstractmethod__", False)


def adopt_protocol(found: object, path: str | None = None) -> DebateProtocol:
    """Validates a user's object as a protocol: returns the object itself, or an adapter if it has another base class.

    Args:
        found: the object.
        path: name of an object without one; None: that of its class.

    Raises:
        ConfigError: it has no `run`, a capability has a wrong type, or an attribute looks like a mistyped capability.
    """
    if isinstance(found, type) or not can_run(found):
        raise ConfigError("`protocol`: expected a name, or an object with `async def run(self, case, floor)`")
    path = path or f"{type(found).__module__}:{type(found).__qualname__}"
    _check_spelling(found, path)
    _check_types(found, path)
    if not isinstance(found, DebateProtocol):
        return ProtocolAdapter(path, found)
    if not found.name:
        object.__setattr__(found, "name", path)  # plain assignment fails on a frozen dataclass
    return found


def _check_spelling(found: object, path: str) -> None:
    """Refuse an unknown public attribute that resembles a capability left at its default.

    A value that the capability could not have is the protocol's own state: `temperature = 0.5` is no `temperatures`.
    """
    kinds = [kind for kind in reversed(type(found).__mro__) if kind not in _OF_OURS]
    on_class = {name: value for kind in kinds for name, value in vars(kind).items()}
    on_instance = getattr(found, "__dict__", {})
    capabilities = _attribute_types().keys() | _METHODS
    left = capabilities - on_class.keys() - on_instance.keys()
    for name, value in {**on_instance, **on_class}.items():
        if name.startswith("_") or name in capabilities:
            continue
        close = difflib.get_close_matches(name, sorted(left & _of_its_kind(value)), n=1, cutoff=_LIKENESS)
        if close and (close[0] in _METHODS or _is_valid(_attribute_types()[close[0]], value)):
            raise ConfigError(f"protocol {path!r}: unknown attribute `{name}`; did you mean `{close[0]}`?")


def _of_its_kind(value: object) -> AbstractSet[str]:
    """Capabilities whose types an attribute's value matches."""
    if isinstance(value, type):
        return {"Settings"}
    if callable(value) or isinstance(value, classmethod):
        return _METHODS
    return _attribute_types().keys() - {"Settings"}


def _check_types(found: object, path: str) -> None:
    """Refuse a capability whose value does not match the type in the base class."""
    for name, kind in _attribute_types().items():
        value = getattr(found, name, None)
        plain = value is None and not isinstance(found, DebateProtocol)
        if plain or not hasattr(found, name) or _is_valid(kind, value):
            continue
        wanted = str(DebateProtocol.__annotations__[name]).replace("AbstractSet", "Set")
        raise ConfigError(f"protocol {path!r}: `{name}` must be {wanted}, not {repr(value)[:60]}")
    for name in _METHODS:
        if hasattr(found, name) and not callable(getattr(found, name)):
            raise ConfigError(f"protocol {path!r}: `{name}` must be a method, not {repr(getattr(found, name))[:60]}")


def _is_valid(kind: TypeAdapter[Any], value: object) -> bool:
    """Whether a value is of a type; a read-only mapping counts as a plain one, and a list as a set."""
    forms: list[object] = [dict(value)] if isinstance(value, Mapping) else [value]
    if isinstance(value, AbstractSet):
        forms = [frozenset(value), list(value)]
    for form in forms:
        try:
            kind.validate_python(form, strict=True)
        except ValidationError:
            continue
        return True
    return False


@cache
def _attribute_types() -> dict[str, TypeAdapter[Any]]:
    """Validators of the capabilities that are attributes, by name."""
    return {name: TypeAdapter(kind) for name, kind in get_type_hints(DebateProtocol).items()}
