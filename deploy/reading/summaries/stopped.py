"""What stopping replies early has cost and saved, as far as that can be estimated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import BaseModel, ConfigDict

from moot.actors.early_stop import CUT
from moot.actors.record.rows import INVALID_SUFFIX, call_of, step_of
from moot.deploy.reading.record import Reply


class StoppedEarly(BaseModel):
    """Replies that were stopped early. All tokens are estimates: no server says what a reply that was cut has used.

    Attributes:
        replies: how many.
        unknown: of them, those that nothing can be estimated of: none was kept in their place yet, or it did not say
            what it used. The estimates are over the others.
        tokens_used_estimate: their prompts, taken to be those of the replies that were kept in their place, and the
            tokens that had come; None when all are unknown.
        tokens_saved_estimate: what they would have had more if they had become as long as the replies that were kept;
            negative when those were shorter. Saved against letting them end before asking again, not against a run
            without early stop. None as above.
    """

    model_config = ConfigDict(frozen=True)

    replies: int
    unknown: int
    tokens_used_estimate: int | None
    tokens_saved_estimate: int | None


def stopped_early(replies: Sequence[Reply]) -> StoppedEarly | None:
    """Sum a run's; None when no reply was stopped."""
    stopped = [reply for reply in replies if reply.outcome == CUT]
    if not stopped:
        return None
    kept = {(*reply.key, reply.path): reply for reply in replies if reply.outcome != CUT and not reply.superseded}
    used, saved, unknown = 0, 0, 0
    for reply in stopped:
        instead = _kept_for(reply, kept)
        if instead is None or instead.prompt is None or instead.completion is None or reply.received is None:
            unknown += 1
            continue
        used += instead.prompt + reply.received
        saved += instead.completion - reply.received
    known = unknown < len(stopped)
    return StoppedEarly(
        replies=len(stopped),
        unknown=unknown,
        tokens_used_estimate=used if known else None,
        tokens_saved_estimate=saved if known else None,
    )


def _kept_for(reply: Reply, kept: Mapping[tuple[str, int, str], Reply]) -> Reply | None:
    """The reply to the same call: an unreadable first one, or the one that ended the ask."""
    call = call_of(reply.path) or reply.path
    step = step_of(reply.path)
    first = kept.get((*reply.key, step + INVALID_SUFFIX))
    return first if first is not None and call == step else kept.get((*reply.key, step))
