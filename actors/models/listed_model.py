"""Listed model: what a server's list of models states about one of them, and what the servers of a pool state
differently."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from moot.actors.models.openai_wire import token_count


@dataclass(frozen=True, slots=True)
class ListedModel:
    """Model as its server lists it.

    Attributes:
        weights: what identifies its weights: their path (vLLM, SGLang), or their number and size (llama.cpp); empty
            where the server states none.
        context_tokens: longest prompt and reply together; None where the server does not state it.
    """

    weights: str = ""
    context_tokens: int | None = None


class _Entry(msgspec.Struct):
    id: Any = None
    root: Any = None
    max_model_len: Any = None
    meta: Any = None


class _List(msgspec.Struct):
    data: list[_Entry] = []


def listed_model(models: bytes, name: str) -> ListedModel:
    """Entry of a model in its server's list of models; the only entry where none has this name. Raises nothing.

    Args:
        models: the list as JSON; empty where the server has none.
        name: of the model on that server.

    >>> listed_model(b'{"data": [{"id": "m", "root": "/models/m-8b", "max_model_len": 8192}]}', "m")
    ListedModel(weights='/models/m-8b', context_tokens=8192)
    """
    try:
        entries = msgspec.json.decode(models, type=_List).data
    except (ValueError, RecursionError):
        return ListedModel()
    entry = next((each for each in entries if each.id == name), entries[0] if len(entries) == 1 else _Entry())
    meta = entry.meta if isinstance(entry.meta, dict) else {}
    counted = [f"{key} {meta[key]}" for key in ("n_params", "size") if type(meta.get(key)) is int]
    path = entry.root if isinstance(entry.root, str) and entry.root.isprintable() else ""
    return ListedModel(" ".join([*([path] if path else []), *counted]), token_count(entry.max_model_len))


def listed_differences(listed: Mapping[str, ListedModel]) -> Iterator[str]:
    """What the servers of a pool state differently, as phrases; what a server does not state is no difference.

    Args:
        listed: by server.

    >>> a, b = ListedModel("/m-8b", 8192), ListedModel("/m-8b", 4096)
    >>> list(listed_differences({"http://a": a, "http://b": b}))
    ['the shortest context holds: 8192 tokens at http://a, 4096 tokens at http://b']
    """
    weights = {server: each.weights for server, each in listed.items() if each.weights}
    contexts = {server: f"{each.context_tokens} tokens" for server, each in listed.items() if each.context_tokens}
    yield from _differing("other weights under one name", weights)
    yield from _differing("the shortest context holds", contexts)


def _differing(what: str, by_server: Mapping[str, str]) -> Iterator[str]:
    if len(set(by_server.values())) > 1:
        yield f"{what}: {', '.join(f'{said} at {server}' for server, said in by_server.items())}"
