"""What stopping replies early has cost and saved, as far as that can be estimated."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict

from moot.actors.early_stop import CUT
from moot.actors.record.rows import step_of
from moot.deploy.reading.record import Reply


class StoppedEarly(BaseModel):
    """Replies that were stopped early. All tokens are estimates: no server says what a reply that was cut has used.

    Attributes:
        replies: how many.
        tokens_used_estimate: their prompts, taken to be those of the replies that were kept in their place, and the
            tokens that had come; None when that is not known of all.
        tokens_saved_estimate: what they would have had more if they had become as long as the replies that were kept;
            negative when those were shorter. Saved against letting them end before asking again, not against a run
            without early stop. None as above.
    """

    model_config = ConfigDict(frozen=True)

    replies: int
    tokens_used_estimate: int | None
    tokens_saved_estimate: int | None


def stopped_early(replies: Sequence[Reply]) -> StoppedEarly | None:
    """Sum a run's; None when no reply was stopped."""
    stopped = [reply for reply in replies if reply.outcome == CUT]
    if not stopped:
        return None
    kept = {(*reply.key, reply.path): reply for reply in replies if reply.outcome != CUT and not reply.superseded}
    used, saved = 0, 0
    known = True
    for reply in stopped:
        instead = kept.get((*reply.key, step_of(reply.path)))
        if instead is None or instead.prompt is None or instead.completion is None or reply.received is None:
            known = False
            continue
        used += instead.prompt + reply.received
        saved += instead.completion - reply.received
    return StoppedEarly(
        replies=len(stopped),
        tokens_used_estimate=used if known else None,
        tokens_saved_estimate=saved if known else None,
    )
