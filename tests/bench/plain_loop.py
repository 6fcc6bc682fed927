"""The bars' denominator: the seven-call debate as a plain asyncio + aiohttp + msgspec loop in a process of its own.

Reads one JSON request per line, `{"url", "logprobs", "debates", "open"}`, and answers each with `{"wall_s", "cpu_s"}`.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from functools import partial

from debate7 import ChatClient, plain_debate, run_many


async def measured(url: str, logprobs: bool, debates: int, open_: int) -> dict[str, float]:
    """Wall and CPU seconds of `debates` debates, after one wave that warms the connections up."""
    client = ChatClient(url, logprobs)
    try:
        debate = partial(plain_debate, client)
        await run_many(debate, open_, open_)
        wall, cpu = time.perf_counter(), time.process_time()
        await run_many(debate, debates, open_)
        return {"wall_s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu}
    finally:
        await client.close()


def main() -> None:
    """Serve requests from standard input until it ends."""
    for line in sys.stdin:
        asked = json.loads(line)
        result = asyncio.run(measured(asked["url"], asked["logprobs"], asked["debates"], asked["open"]))
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
