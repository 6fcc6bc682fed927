"""The public names of `moot`."""

from __future__ import annotations

import moot
from generator.markdown import page
from generator.source import definition, entry, imports, tree_of


def python_page() -> str:
    """The public names of `moot`, below how to use them."""
    homes = imports(tree_of("moot"))
    intro = "The public names of `moot`. Everything else may change; see [what is stable](../index.md#what-is-stable)."
    entries = []
    for name in sorted(moot.__all__, key=str.lower):
        _, node, below = definition(homes[name], name)
        entries.append(entry(node, 3, below))
    return page("## Public names", intro, *entries)
