"""The trial calls of a pool: every server is tried, and the pool has what all of them have."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pool_servers import PoolServer, pool_of
from structlog.testing import capture_logs
from trial_server import REPLIES

from moot.actors.models.model_profile import ModelProfile
from moot.actors.models.probe import ProbeResult, probe
from moot.actors.models.probe_calls import ProbeRequest
from moot.protocols.errors import CapabilityMissing, ConfigError, ModelUnavailable
from moot.protocols.messages import Decoding

ASKS = Decoding(temperature=0.3, top_p=0.9, max_tokens=300, top_logprobs=3)
NEEDED = ProbeRequest(ASKS, 5.0, REPLIES, needs_logprobs=True)
WANTED = replace(NEEDED, needs_logprobs=False)
USUAL = ModelProfile(schemas="portable", held_logprobs="raw")


async def tried(
    *servers: PoolServer, trial: ProbeRequest = WANTED
) -> tuple[ProbeResult, list[str], list[dict[str, Any]]]:
    """Result of the trial of a pool, its servers' names, and the log."""
    async with pool_of(*servers) as (pool, urls):
        with capture_logs() as logs:
            await pool.check()
            found = await probe(pool, trial)
    return found, [f"{url}#m" for url in urls], [dict(line) for line in logs]


async def test_every_server_is_tried_with_the_same_calls() -> None:
    servers = [PoolServer() for _ in range(3)]
    found, _, logs = await tried(*servers, trial=NEEDED)
    assert found == ProbeResult(USUAL, gives_logprobs=True)
    assert len(servers[0].bodies) == len(REPLIES)
    assert servers[0].bodies == servers[1].bodies == servers[2].bodies
    assert logs == []


@pytest.mark.parametrize("place", range(3))
async def test_one_server_without_log_probabilities_is_found_and_named(place: int) -> None:
    servers = [PoolServer(logprobs=number != place) for number in range(3)]
    needed, names, _ = await tried(*servers, trial=NEEDED)
    assert (needed.gives_logprobs, needed.lacking) == (False, (names[place],))
    servers[place].logprobs, servers[place].refuses = True, {"logprobs": "logprobs are not supported"}
    refused, names, _ = await tried(*servers, trial=NEEDED)
    assert (refused.gives_logprobs, refused.lacking) == (False, (names[place],))
    servers[place].logprobs, servers[place].refuses = False, {}
    wanted, names, logs = await tried(*servers)
    assert wanted.profile == USUAL.model_copy(update={"alternatives": 0, "held_logprobs": "unknown"})
    assert [names[place]] in [line.get("servers") for line in logs]


REFUSES = "`{}` is not supported"


@pytest.mark.parametrize(
    ("other", "profile"),
    [
        (PoolServer(alternatives=2), {"alternatives": 2}),
        (PoolServer(alternatives=1, bounds=True), {"alternatives": 1}),
        (PoolServer(refuses={"temperature": REFUSES.format("temperature")}), {"omitted": ("temperature",)}),
        (PoolServer(refuses={"response_format": REFUSES.format("response_format")}), {"schemas": "free"}),
        (PoolServer(schemas=False), {"schemas": "free"}),
        (PoolServer(masked=True), {"logprobs_when_held": False, "held_logprobs": "unknown"}),
        (PoolServer(listed={"owned_by": "vllm"}), {"schemas": "portable", "server": "portable"}),
    ],
)
@pytest.mark.parametrize("first", [True, False])
async def test_what_one_server_lacks_is_asked_of_none(other: PoolServer, profile: dict[str, Any], first: bool) -> None:
    servers = [other, PoolServer()] if first else [PoolServer(), other]
    found, _, _ = await tried(*servers)
    assert {name: getattr(found.profile, name) for name in profile} == profile
    other.bodies.clear()


async def test_what_the_user_set_is_refused_with_the_name_of_the_server() -> None:
    few = PoolServer(alternatives=2)
    trial = replace(WANTED, written=frozenset({"top_logprobs"}))
    with pytest.raises(ConfigError, match=r"127\.0\.0\.1.*top_logprobs: 2"):
        await tried(PoolServer(), few, trial=trial)
    masked = replace(NEEDED, replies=[replace(REPLIES[0], logprobs="needed")])
    with pytest.raises(CapabilityMissing, match=r"raw at http://\S+, masked at http://"):
        await tried(PoolServer(), PoolServer(masked=True), trial=masked)


async def test_a_server_that_does_not_answer_is_left_untried_and_one_without_the_model_is_an_error() -> None:
    async with pool_of(PoolServer(), PoolServer(status=503)) as (pool, urls):
        await pool.check()
        found = await probe(pool, NEEDED)
    assert found == ProbeResult(USUAL.model_copy(update={"untried": (urls[1],)}), gives_logprobs=True)
    with pytest.raises(ModelUnavailable, match="no such model"):
        await tried(PoolServer(), PoolServer(refuses={"model": "no such model"}))


@pytest.mark.parametrize(
    ("one", "other", "said"),
    [
        (PoolServer(fingerprint="b1"), PoolServer(fingerprint="b2"), "different models: m b1 at"),
        (PoolServer(), PoolServer(usage=False), "no usage is reported"),
        (PoolServer(listed={"root": "/a"}), PoolServer(listed={"root": "/b"}), "other weights"),
        (PoolServer(listed={"max_model_len": 9}), PoolServer(listed={"max_model_len": 8}), "8 tokens at"),
        (PoolServer(listed={"meta": {"n_params": 7}}), PoolServer(listed={"meta": {"n_params": 8}}), "n_params 8"),
    ],
)
async def test_what_has_no_effect_on_the_requests_is_said(one: PoolServer, other: PoolServer, said: str) -> None:
    found, _, logs = await tried(one, other)
    assert found.profile == USUAL
    (difference,) = (line["difference"] for line in logs)
    assert said in difference
