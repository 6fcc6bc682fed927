"""Injection texts for every field of a run, and a model server that generates them."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from aiohttp import web
from openai_server import ScriptedServer
from planted_records import EVIL

LABELS = ("<img src=x onerror=alert(1)>", "javascript:alert(2)", "\u202eNo\u202c")
HOSTILE = (
    f"{EVIL}</script><script>document.title='owned'</script><svg onload=alert(3)><iframe srcdoc='<b>x'></iframe>"
    "<a href='javascript:alert(4)' onclick=alert(5)>go</a><style>body{display:none}</style>--> ]]> \x00\x07\x9b31m"
    "\"'><img src=https://example.org/x> \u2066\u200b\ufeff &lt;b&gt; [x](javascript:alert(6)) \\u003cscript>"
)
NAME = "<svg onload=alert(7)> \u202e'\""
"""Name of a run's folder."""

CASES: list[dict[str, Any]] = [
    {
        "id": f"{number} {HOSTILE}"[:200],
        "question": HOSTILE,
        "passage": f"<!-- {HOSTILE}",
        "title": HOSTILE,
        "labels": list(LABELS),
        "gold": LABELS[number % 3],
        "group": HOSTILE,
    }
    for number in range(6)
]


class HostileServer(ScriptedServer):
    """Simulated model that appends a hostile text to each free text of its replies, token by token.

    Attributes:
        added: the appended text.
    """

    added: str = HOSTILE

    def _answer(self, step: str, body: bytes) -> web.Response:
        whole = json.loads(super()._answer(step, body).body)  # type: ignore[arg-type]
        choice = whole["choices"][0]
        text = choice["message"]["content"]
        try:
            text = json.dumps(self._hostile(json.loads(text)), ensure_ascii=False)
        except ValueError:
            text += self.added
        choice["message"]["content"] = text
        pieces = [text[at : at + 40] for at in range(0, len(text), 40)]
        others = [{"token": other, "logprob": -2.0} for other in ("<b>x</b>", "\u202e", "\x1b[2J")]
        choice["logprobs"] = {
            "content": [
                {"token": piece, "logprob": -0.2, "top_logprobs": [{"token": piece, "logprob": -0.2}, *others]}
                for piece in pieces
            ]
        }
        return web.Response(body=msgspec.json.encode(whole), content_type="application/json")

    def _hostile(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: each if key == "answer" else self._hostile(each) for key, each in value.items()}
        if isinstance(value, list):
            return [self._hostile(each) for each in value]
        is_free = isinstance(value, str) and " " in value and value not in LABELS
        return value + self.added if is_free else value
