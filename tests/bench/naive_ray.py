"""The naive Ray design, for comparison: an actor per role, and one pydantic message per actor call."""

from __future__ import annotations

from typing import Any

import ray
from debate7 import DEBATERS, ROUNDS, ChatClient, TranscriptTurn, debater_turn, judge_turn, run_many
from pydantic import BaseModel


class TurnRequest(BaseModel):
    """Asks a debater for its turn, or the judge for a score."""

    case: int
    round: int
    transcript: list[tuple[str, str]]

    def said(self) -> list[TranscriptTurn]:
        """The transcript as turns."""
        return [TranscriptTurn(by, text) for by, text in self.transcript]


class TurnReply(BaseModel):
    """A debater's turn or the judge's score."""

    by: str
    text: str
    score: float = 0.0


class NaiveAgent:
    """A debater or the judge."""

    def __init__(self, url: str, logprobs: bool, name: str) -> None:
        self._url, self._logprobs, self._name = url, logprobs, name
        self._client: ChatClient | None = None

    async def speak(self, asked: TurnRequest) -> TurnReply:
        """One LLM call."""
        if self._client is None:
            self._client = ChatClient(self._url, self._logprobs)
        if self._name == "judge":
            score = await judge_turn(self._client, asked.case, asked.said())
            return TurnReply(by=self._name, text="", score=score)
        said = await debater_turn(self._client, asked.case, asked.said(), asked.round, self._name)
        return TurnReply(by=said.by, text=said.text)


class NaiveModerator:
    """Leads debates: seven awaited calls each."""

    def __init__(self, debaters: list[Any], judge: Any) -> None:
        self._debaters, self._judge = debaters, judge

    async def debate(self, case: int) -> float:
        """One debate; its score."""
        transcript: list[tuple[str, str]] = []
        for round_ in range(1, ROUNDS + 1):
            for debater in self._debaters:
                request = TurnRequest(case=case, round=round_, transcript=transcript)
                reply: TurnReply = await debater.speak.remote(request)
                transcript.append((reply.by, reply.text))
        final: TurnReply = await self._judge.speak.remote(TurnRequest(case=case, round=0, transcript=transcript))
        return final.score


class NaiveRay:
    """The four actors, started in the Ray session of this process.

    Args:
        url: the completions URL.
        logprobs: whether to ask for and decode log-probabilities.
    """

    def __init__(self, url: str, logprobs: bool) -> None:
        options = {"num_cpus": 0, "max_concurrency": 4000, "enable_task_events": False}
        speaker, chair = ray.remote(NaiveAgent).options(**options), ray.remote(NaiveModerator).options(**options)
        debaters = [speaker.remote(url, logprobs, name) for name in DEBATERS]
        judge = speaker.remote(url, logprobs, "judge")
        self._chair = chair.remote(debaters, judge)
        self._actors = [*debaters, judge, self._chair]

    async def hold(self, debates: int, open_: int) -> None:
        """Hold `debates` debates, `open_` at once: one more actor call for each."""

        async def one(number: int) -> float:
            score: float = await self._chair.debate.remote(number)
            return score

        await run_many(one, debates, open_)

    def stop(self) -> None:
        """Take the actors down."""
        for actor in self._actors:
            ray.kill(actor)
