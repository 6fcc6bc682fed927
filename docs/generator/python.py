"""The pages of the Python API and of the library of metrics."""

from __future__ import annotations

import ast

import moot
from generator.markdown import first_paragraph, markdown_of, page, table
from generator.source import ROOT, definition, dotted_name, entry, imports, is_public, tree_of


def metrics_page() -> str:
    """The library of metrics, by module."""
    files = sorted((ROOT / "metrics").rglob("*.py"))
    names = [name for name in map(dotted_name, files) if name != "moot.metrics"]
    intro = f"""`moot.metrics` can be used by itself: numbers in, numbers out, without a model, a run or a record.
{first_paragraph(ast.get_docstring(tree_of("moot.metrics")) or "")} The metrics that a run exports to Prometheus are
[another list](exported-metrics.md)."""
    index = [
        (f"[`{name}`](#{name.replace('.', '')})", first_paragraph(ast.get_docstring(tree_of(name)) or ""))
        for name in names
    ]
    parts = [intro, table(("module", "what it computes"), index)]
    for name in names:
        parts += [f"## `{name}`", markdown_of(tree_of(name))]
        parts += [entry(node, 3) for node in tree_of(name).body if is_public(node)]
    return page("# Metrics library", *parts)


def python_page() -> str:
    """The public names of `moot`, below how to use them."""
    homes = imports(tree_of("moot"))
    intro = "The public names of `moot`. Everything else may change; see [what is stable](stability.md)."
    entries = []
    for name in sorted(moot.__all__, key=str.lower):
        _, node, below = definition(homes[name], name)
        entries.append(entry(node, 3, below))
    return page("## Public names", intro, *entries)
