"""Display of results in Python: `print` shows the terminal's tables, a notebook shows HTML, `repr` is one line."""

from __future__ import annotations

from collections.abc import Iterable

from moot.deploy.results.report.blocks import Block


class DisplayMixin:
    """Mixin that displays a result as its report. It must be the first base of a class."""

    def report_blocks(self) -> Iterable[Block]:
        """Report blocks of the result."""
        raise NotImplementedError

    def display_name(self) -> str:
        """Text of the result for `repr`."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.display_name()}>"

    def __str__(self) -> str:
        from moot.deploy.results.report.render import report_string

        return report_string(self.report_blocks())

    def _repr_html_(self) -> str:
        """Escaped HTML for a notebook, without scripts and styles."""
        from moot.deploy.results.report.html import blocks_html

        return blocks_html(list(self.report_blocks()))
