"""Hooks of the site: what the pages' fences say to the tests that follow them means nothing to a reader."""

from __future__ import annotations

import re
import shlex
from typing import Any

_FENCE = re.compile(r"^```(\w+)[ \t]+(.+)$", re.MULTILINE)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """A page with plain fences; a file's name becomes its title.

    >>> on_page_markdown('```yaml file=run.yaml\\n```\\n```console exit=2 not-run="needs a key"\\n```')
    '```yaml title="run.yaml"\\n```\\n```console\\n```'
    """
    return _FENCE.sub(_plain, markdown)


def _plain(fence: re.Match[str]) -> str:
    said = dict(word.partition("=")[::2] for word in shlex.split(fence[2]))
    return f'```{fence[1]} title="{said["file"]}"' if "file" in said else f"```{fence[1]}"
