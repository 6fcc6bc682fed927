"""The page of metrics: those that a run exports, and the library."""

from __future__ import annotations

import ast

from generator.markdown import code, first_paragraph, markdown_of, page, prose, table
from generator.source import ROOT, dotted_name, entry, is_public, tree_of
from moot.actors.telemetry.meter import METRICS

_EXPORTED = """A run on Ray exports these metrics to Prometheus, which puts `ray_` before each name. Every metric also
has the label `protocol`. No label names a debate or a case. [Monitoring](../operate/monitoring.md) says how to scrape
and read them."""

_LIBRARY = """You can use `moot.metrics` by itself: its functions take numbers and return numbers, without a model, a
run or a record. Unknown values are NaN or None, never 0."""


def metrics_page() -> str:
    """The metrics that a run exports, and the library of metrics by module."""
    exported = [
        (code(each.name), each.kind, ", ".join(map(code, each.labels)), prose(f"{each.about} {each.detail}"))
        for each in METRICS
    ]
    files = sorted((ROOT / "metrics").rglob("*.py"))
    names = [name for name in map(dotted_name, files) if name != "moot.metrics"]
    index = [
        (f"[`{name}`](#{name.replace('.', '')})", first_paragraph(ast.get_docstring(tree_of(name)) or ""))
        for name in names
    ]
    parts = ["## Exported metrics", _EXPORTED, table(("metric", "kind", "labels", "meaning"), exported)]
    parts += ["## Library", _LIBRARY, table(("module", "what it computes"), index)]
    for name in names:
        parts += [f"## `{name}`", markdown_of(tree_of(name))]
        parts += [entry(node, 3) for node in tree_of(name).body if is_public(node)]
    return page("# Metrics", *parts)
