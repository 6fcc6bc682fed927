"""Base classes of results: immutable models, and models that `print`, a notebook and `repr` show as their report."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from pydantic import BaseModel, ConfigDict

from moot.deploy.results.report.blocks import Block


class FrozenModel(BaseModel):
    """Immutable base model; ignores unknown fields of its source."""

    model_config = ConfigDict(frozen=True)


class DisplayMixin:
    """Mixin that displays a result as its report. It must be the first base of a class."""

    def report_blocks(self) -> Iterable[Block]:
        """Report blocks of the result: those of the function that is registered for its class."""
        return _BLOCKS_OF[type(self)](self)

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


F = TypeVar("F", bound=Callable[..., Iterable[Block]])

_BLOCKS_OF: dict[type, Callable[..., Iterable[Block]]] = {}


def displays(shown: type[DisplayMixin]) -> Callable[[F], F]:
    """Decorator: registers the function of a class's report blocks; the class does not know how it is drawn."""

    def register(blocks_of: F) -> F:
        _BLOCKS_OF[shown] = blocks_of
        return blocks_of

    return register
