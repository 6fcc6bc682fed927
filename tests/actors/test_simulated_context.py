"""The simulated context agent: it finds planted conflicts with its competence, by their words alone."""

from __future__ import annotations

import pytest
from claim_prompts import KEY
from simulated_calls import TEMPLATES, model

from moot.protocols.ceda.conflicts import Conflict
from moot.protocols.ceda.context_reply import ContextReply
from moot.protocols.ceda.items import Item
from moot.protocols.ceda.synthesis import Synthesis, grounded
from moot.protocols.messages import Decoding
from moot.protocols.replies import parse_reply

PAIR = ("The chapel was built in 1711, says a plaque.", "The register has the chapel built in 1714.")
PEACE = ("The chapel was built in 1711.", "The chapel has two doors.", "Bread is sold in the market.")


def asked(texts: tuple[str, ...], sample: int = 0, temperature: float = 0.3, **settings: float) -> str:
    slots = {
        "claim": "The chapel was built in 1711.",
        "evidence": [{"number": f"E{n}", "source": "d", "text": text} for n, text in enumerate(texts, 1)],
    }
    decoding = Decoding(temperature=temperature, max_tokens=700)
    return model(7, KEY, **settings).reply(TEMPLATES.render("ceda/context", slots), decoding, f"context/{sample}").text


def made(texts: tuple[str, ...], sample: int = 0, **options: float) -> tuple[Synthesis, tuple[Conflict, ...]]:
    items = [Item(id=f"E{n}", kind="document", document="d", chunk=n, text=text) for n, text in enumerate(texts, 1)]
    data = parse_reply(asked(texts, sample, **options), ContextReply).data
    return grounded(ContextReply.model_validate(data), items)


@pytest.mark.parametrize("competence", [0.4, 0.78, 1.0])
def test_a_conflict_is_found_with_the_competence(competence: float) -> None:
    found = sum(bool(made(PAIR, n, competence=competence)[1]) for n in range(400))
    assert found / 400 == pytest.approx(competence, abs=0.1)


def test_at_temperature_nought_it_finds_all_that_looks_so_and_nothing_else() -> None:
    assert len(made(PAIR, temperature=0.0, competence=0.1)[1]) == 1
    assert made(PEACE, temperature=0.0, competence=0.1)[1] == ()


def test_it_quotes_what_is_there_unless_it_invents() -> None:
    honest, _ = made(PAIR)
    assert (len(honest.statements), honest.unfounded) == (2, 0)
    inventive, conflicts = made(PAIR, competence=1.0, hallucination_rate=1.0)
    assert (inventive.statements, conflicts, inventive.unfounded) == ((), (), 3)
