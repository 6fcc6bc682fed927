"""A protocol that only looks for passages of the run's documents; nothing is asked."""

from __future__ import annotations

from moot.protocols.case import Case
from moot.protocols.floor import Floor
from moot.protocols.messages import Verdict


class Finding:
    """Finds the passages nearest to a case's question."""

    roles = ("agent",)
    name = "finding"
    needs_logprobs = False
    reads_documents = True

    async def run(self, case: Case, floor: Floor) -> Verdict:
        """Debate one case."""
        found = await floor.search(case.question, n=3)
        passages = [[each.document, each.chunk, each.page, each.text, each.similarity] for each in found]
        return Verdict(answer=None, how="found", payload={"passages": passages})
