"""Check of one claim against documents and pictures: `moot.check`, and functions shared with the command."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from moot.actors.debate.run_spec import Engine
from moot.deploy.runs.checking.check_result import CASE_ID, Checked, read_checked
from moot.deploy.runs.prepare import Prepared
from moot.deploy.runs.prior_runs import reused_folder
from moot.deploy.runs.resume import identity_digest
from moot.deploy.runs.run import Role, arun
from moot.deploy.runs.run_folders import check_folder, default_out, run_folder
from moot.deploy.runs.run_library import default_library_folder
from moot.deploy.runs.single_debate import Subject, default_engine
from moot.protocols.claims import CLAIM_ALIASES, CLAIM_LABELS
from moot.protocols.errors import ConfigError

if TYPE_CHECKING:  # with aiohttp, it takes a tenth of the start of every command that runs debates
    from moot.actors.models.pictures import PictureSource

PROTOCOL = "ceda"

PathName = str | os.PathLike[str]

Documents = PathName | Sequence[PathName] | Mapping[str, str]
"""Files or folders of documents, a library (as returned by `moot.index`) or its folder, or texts by name."""


async def check(
    claim: str,
    docs: Documents = (),
    images: Sequence[PictureSource] = (),
    *,
    model: str = "simulated",
    roles: Mapping[str, Role | Sequence[Role]] | None = None,
    encoder: str = "hashed-ngrams",
    classifier: str | Path | None = None,
    seed: int = 0,
    set: Mapping[str, Any] | None = None,
    out: str | Path | None = None,
    engine: Engine | None = None,
    address: str | None = None,
) -> Checked:
    """Check one claim; several checks may run concurrently in one process.

    Args:
        claim: a statement, or a question with its answer.
        docs: documents to check it against. For many claims on the same documents, embed these once by `moot.index`
            and pass the library.
        images: files, URLs to fetch, or bytes.
        model: the model of every role without one in `roles`: `debater` (two), `judge`, `vision`.
        encoder: text encoder of the search for passages that are similar to the claim.
        classifier: folder of a classifier made by `moot train-classifier`; None uses the judges alone.
        set: settings of the protocol `ceda`.
        out: the record's folder, resumed if it exists; None keeps no record.
        engine: `ray` or `inline`; None means `ray` if this process has joined a Ray cluster, else `inline`.
        address: as for `moot.run`.

    Raises:
        UserError: the input is invalid, or a model cannot be used; nothing was written.
        ConfigError: also if there is no verdict, because the run was stopped.
    """
    check_folder(out)
    async with AsyncExitStack() as stack:
        scratch = stack.enter_context(TemporaryDirectory(prefix="moot-"))
        done = await arun(
            task=[claim_case(claim, images)],
            protocol=PROTOCOL,
            docs=await _files(docs, encoder, stack),
            model=model,
            roles=roles or {},
            encoder=encoder,
            classifier=classifier,
            seed=seed,
            set=set or {},
            out=out or Path(scratch) / "run",
            engine=engine or default_engine(),
            address=address,
        )
        checked = read_checked(done.path, kept=out is not None)
    if checked is None:
        raise ConfigError(f"the claim was not checked: {done.stopped_by or done.status}")
    return checked


def claim_case(claim: str, images: Sequence[PictureSource] = ()) -> dict[str, Any]:
    """The claim as a case.

    Raises:
        ConfigError: the claim is empty or not valid text.
    """
    if not claim.strip():
        raise ConfigError("the claim is empty")
    try:
        claim.encode()
    except UnicodeEncodeError:
        raise ConfigError("the claim is not UTF-8 text") from None
    aliases = dict(zip(CLAIM_LABELS, CLAIM_ALIASES, strict=True))
    case = {"id": CASE_ID, "question": claim.strip(), "labels": CLAIM_LABELS, "aliases": aliases}
    return {**case, "images": list(images)}


async def _files(docs: Documents, encoder: str, stack: AsyncExitStack) -> tuple[str, ...]:
    """Paths of the documents for a run; texts become a temporary library, deleted when `stack` is closed."""
    if isinstance(docs, Mapping):
        if not docs:
            return ()
        from moot.actors.retrieval.documents.library import index

        return (os.fspath(await stack.enter_async_context(await index(docs, encoder=encoder))),)
    several = [docs] if isinstance(docs, str | os.PathLike) else docs
    return tuple(os.fspath(each) for each in several)


def with_content_folder(prepared: Prepared) -> Prepared:
    """The check, with a folder named by a hash of everything that determines its outcome: claim, documents, pictures,
    models and settings. The same check resumes its record, and a different one gets its own."""
    config = prepared.config
    claim = next(prepared.cases()).case.question
    out = default_out("check", Subject(claim, identity_digest(prepared)).name, config.seed, config.model)
    folder = run_folder(out)
    docs = prepared.docs
    return replace(
        prepared,
        config=config.model_copy(update={"out": out}),
        folder=folder,
        reuse=reused_folder(config, folder) if config.reuse else None,
        library=None if docs is None else docs.library or default_library_folder(folder),
    )
