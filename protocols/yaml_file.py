"""YAML reader: aliases and nesting are bounded, and errors are one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from moot.protocols.errors import ConfigError
from moot.protocols.near_paths import near_path
from moot.protocols.regular_files import cause, read_regular_text

_MERGE = "tag:yaml.org,2002:merge"
_MOST_NODES = 100_000
"""Most values of a text after its aliases are expanded."""

_MOST_LEVELS = 500
"""Most levels of nesting: the C parser crashes the process at some ten thousand."""

_PARSER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def parsed_yaml(text: str, loader: Any = yaml.SafeLoader) -> Any:
    """Content of a YAML text from an untrusted source.

    Args:
        loader: PyYAML's, one that makes plain data.

    Raises:
        yaml.YAMLError: it is invalid, has too many values, is nested too deeply, or its aliases expand to themselves.
        ValueError: it contains an invalid date or number.
    """
    if "*" in text or len(text) > _MOST_NODES or _may_be_deep(text):
        _check(text)
    try:
        return yaml.load(text, loader)
    except RecursionError:
        raise yaml.YAMLError("it is nested too deeply") from None


def _may_be_deep(text: str) -> bool:
    """Whether it could be nested too deeply: each level takes a bracket or a column."""
    if text.count("[") + text.count("{") > _MOST_LEVELS:
        return True
    return len(text) > _MOST_LEVELS and max(map(len, text.splitlines()), default=0) > _MOST_LEVELS


def _check(text: str) -> None:
    """Refuse aliases that expand too much or to themselves, and too many levels."""
    sizes: dict[str, int] = {}
    open_nodes: list[tuple[str | None, int]] = []
    nodes = 0
    for event in yaml.parse(text, _PARSER):
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in sizes:
                raise _at(event, f"the alias *{event.anchor} stands for nothing that ended before it")
            nodes += sizes[event.anchor]
        elif isinstance(event, yaml.NodeEvent):
            nodes += 1
            if isinstance(event, yaml.CollectionStartEvent):
                open_nodes.append((event.anchor, nodes))
                if len(open_nodes) > _MOST_LEVELS:
                    raise _at(event, f"it is nested more than {_MOST_LEVELS:,} levels deep")
            elif event.anchor:
                sizes[event.anchor] = 1
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = open_nodes.pop()
            if anchor:
                sizes[anchor] = nodes - before + 1
        if nodes > _MOST_NODES:
            raise _at(event, f"it holds more than {_MOST_NODES:,} values, those that aliases stand for included")


def _at(event: Any, problem: str) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)


class _EachKeyOnce(yaml.SafeLoader):
    """Loader that refuses repeated keys of a mapping, of which YAML silently takes the last."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        """The mapping."""
        seen = set[Any]()
        for key, _ in node.value:
            names = self._names(key)
            if seen & names:
                raise yaml.MarkedYAMLError(problem=f"`{key.value}` is given twice", problem_mark=key.start_mark)
            seen |= names
        return super().construct_mapping(node, deep)

    def _names(self, key: Any) -> set[Any]:
        """Written and parsed forms of a key: `1`, `+1` and `"1"` are equal."""
        if not isinstance(key, yaml.ScalarNode) or key.tag == _MERGE:
            return {id(key)}
        return {key.value, self.construct_object(key)}


def read_keys_and_values(file: Path) -> dict[Any, Any]:
    """Content of a YAML file; empty for an empty file.

    Raises:
        ConfigError: the file cannot be read or is no YAML mapping; names the file and, if known, the line.
    """
    try:
        content = parsed_yaml(read_regular_text(file), _EachKeyOnce)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise ConfigError(f"{file}:{line}: not valid YAML: {error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{file}: not valid YAML: {' '.join(str(error).split())}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{file}: expected UTF-8 text, found other bytes") from None
    except ValueError as error:  # such as an impossible date: YAML parses anything like a date
        raise ConfigError(f"{file}: a value cannot be read ({error}): put it between quotation marks") from None
    except OSError as error:
        near = near_path(file) if isinstance(error, FileNotFoundError) else ""
        raise ConfigError(f"{file}: {cause(error)}{near}") from None
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise ConfigError(f"{file}:1: expected keys and values, found {type(content).__name__}")
    return content
