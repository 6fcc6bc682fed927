"""Reply ids: stable names of reply types in messages and fingerprints, wherever their modules are."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar

from pydantic import BaseModel

from moot.protocols.errors import ConfigError
from moot.protocols.user_modules import named_object

_EVINCE = ("Argued", "Estimate", "Prediction", "Rebutting", "ReasonedEstimate", "ReasonedPrediction")

MOVED = {
    "moot.actors.outcomes:DecisionReply": "moot.protocols.replies:DecisionReply",
    "moot.protocols.rubrics.mark_sheet:MarkSheet": "moot.protocols.rubrics.score_sheet:ScoreSheet",
    **{f"moot.protocols.evince.standing:{name}": f"moot.protocols.evince.side_state:{name}" for name in _EVINCE},
}
"""Current locations of moved reply types and factories, by id. An id is the first location of a type: it is part of
recorded fingerprints, and never changes."""

_ID_OF = {place: first for first, place in MOVED.items()}


def reply_id(model: type[BaseModel]) -> str:
    """Id of a reply type, which names it in messages and fingerprints: `module:Class`.

    A class that a factory made from a text has the id `module:factory(TEXT)`, from its `made_by`.
    """
    made_by: str = getattr(model, "made_by", "")
    place, called, argument = (made_by or f"{model.__module__}:{model.__qualname__}").partition("(")
    return f"{_ID_OF.get(place, place)}{called}{argument}"


def reply_name(path: str) -> str:
    """Name of the reply type in an id, without its module: of one that a factory made, the factory's as a class.

    >>> reply_name("moot.protocols.replies:Position"), reply_name('moot.protocols.rubrics.sheet:mark_sheet({"a":1})')
    ('Position', 'MarkSheet')
    """
    name, made, _ = path.partition(":")[2].partition("(")
    return "".join(map(str.capitalize, name.split("_"))) if made else name or path


Factory = TypeVar("Factory", bound=Callable[[str], type[BaseModel]])


_MARKED = "makes_replies"


def reply_factory(factory: Factory) -> Factory:
    """Marks a function that makes a reply model from a text; `load_reply` calls no other."""
    setattr(factory, _MARKED, True)
    return factory


@lru_cache(maxsize=256)
def load_reply(path: str) -> type[BaseModel]:
    """Reply type with an id: `module:Class` or `module:factory(TEXT)`.

    Raises:
        ConfigError: the class cannot be imported, e.g. because it was defined in a notebook; or the factory is not
            marked with `reply_factory`, or cannot make a type from the text.
    """
    name, called, argument = path.partition("(")
    try:
        found = named_object(MOVED.get(name, name))
    except (ImportError, AttributeError) as error:
        raise ConfigError(
            f"reply model {path!r} cannot be imported by the agents: put it into a module, or use engine='inline'"
        ) from error
    if called:
        found = _made(path, found, argument.removesuffix(")"))
    if not (isinstance(found, type) and issubclass(found, BaseModel)):
        raise ConfigError(f"reply model {path!r} is not a pydantic model")
    return found


def _made(path: str, factory: Any, argument: str) -> Any:
    if getattr(factory, _MARKED, None) is not True:
        raise ConfigError(f"reply model {path!r} is made by no reply factory: mark the function with `reply_factory`")
    try:
        return factory(argument)
    except (ValueError, TypeError) as error:
        raise ConfigError(f"reply model {path!r} cannot be made: {' '.join(str(error).split())}") from error
