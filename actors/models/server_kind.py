"""Which server stands behind an OpenAI-compatible URL, by what its list of models says of itself."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

import msgspec

from moot.actors.models.schema_dialects import DialectName

_OWNERS: Mapping[str, DialectName] = {
    "llamacpp": "llama.cpp",
    "vllm": "vllm",
    "sglang": "sglang",
    "library": "ollama",
}
"""What the servers write into `owned_by`."""

_HOSTS: Mapping[str, DialectName] = {"api.openai.com": "openai"}


class _Listed(msgspec.Struct):
    owned_by: str | None = None


class _List(msgspec.Struct):
    data: list[_Listed] = []


def dialect_of_server(base_url: str, models: bytes) -> DialectName:
    """The dialect of a server's JSON schemas.

    Args:
        base_url: of the server.
        models: its list of models as JSON; empty where it has none.

    >>> dialect_of_server("http://127.0.0.1:8000/v1", b'{"data": [{"id": "m", "owned_by": "vllm"}]}')
    'vllm'
    """
    if (host := urlsplit(base_url).hostname or "") in _HOSTS:
        return _HOSTS[host]
    try:
        listed = msgspec.json.decode(models, type=_List)
    except (ValueError, RecursionError):
        return "portable"
    found = {_OWNERS.get(model.owned_by or "", "portable") for model in listed.data}
    return found.pop() if len(found) == 1 else "portable"
