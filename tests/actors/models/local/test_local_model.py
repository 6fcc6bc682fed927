"""`local/PATH` on tiny models with random weights: its replies are those of the model, whatever the batch."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import deque
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny_model import CONTEXT, ask, said, tiny_folder

from moot.actors.models.interface import ModelError, ModelReply
from moot.actors.models.local import engine as local_engine
from moot.actors.models.local import generation as local_generation
from moot.actors.models.local.generation import Generation
from moot.actors.models.local.model import LocalModel
from moot.actors.models.local.prompt import PromptEncoder
from moot.actors.models.local.sequence import GenerationRequest
from moot.actors.models.local.token_decoder import TokenDecoder
from moot.actors.models.local.weights import Weights, load_weights
from moot.protocols.messages import Decoding, Message

pytestmark = pytest.mark.extras

GREEDY = Decoding(temperature=0.0, top_p=None, max_tokens=24, top_logprobs=5)


@pytest.fixture(scope="module", params=["llama", "gpt2"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_folder(tmp_path_factory.mktemp(request.param), request.param)


@pytest.fixture
def llama(tmp_path: Path) -> Path:
    return tiny_folder(tmp_path / "llama")


class TestAgainstTheModelItself:
    async def test_greedy_tokens_and_log_probabilities(self, folder: Path) -> None:
        model = LocalModel(str(folder), seed=1)
        reply = await ask(model, "Is it so?", GREEDY)
        await model.close()
        weights = load_weights(folder)
        pieces, ids = TokenDecoder(weights.tokenizer), PromptEncoder(weights.tokenizer).encode(said("Is it so?"))
        assert reply.tokens is not None
        assert reply.usage.prompt_tokens == len(ids)
        for place in range(reply.usage.completion_tokens or 0):
            with torch.inference_mode():
                logprob = weights.model(torch.tensor([ids])).logits[0, -1].float().log_softmax(-1)
            best = logprob.topk(5)
            assert reply.tokens.logprob[place] == pytest.approx(float(best.values[0]), abs=1e-4)
            np.testing.assert_allclose(reply.tokens.alt_logprob[place], best.values.numpy(), atol=1e-4)
            names = reply.tokens.alt_tokens[place * 5 : place * 5 + 5]
            assert names == [pieces.alternative(token) for token in best.indices.tolist()]
            ids.append(int(best.indices[0]))
        assert reply.text == "".join(reply.tokens.tokens)

    async def test_probabilities_are_those_before_temperature(self, folder: Path) -> None:
        model = LocalModel(str(folder), seed=1)
        cold, hot = [
            await ask(model, "x", Decoding(temperature=heat, top_p=share, max_tokens=1, top_logprobs=300))
            for heat, share in ((0.0, None), (2.0, 0.5))
        ]
        await model.close()
        assert cold.tokens is not None
        assert hot.tokens is not None
        np.testing.assert_allclose(cold.tokens.alt_logprob, hot.tokens.alt_logprob, atol=1e-5)
        whole = cold.tokens.alt_logprob[0]
        assert np.nansum(np.exp(whole.astype(float))) == pytest.approx(1.0, abs=1e-5)
        vocabulary = int(np.isfinite(whole).sum())
        assert 256 < vocabulary < 300
        assert cold.tokens.alt_tokens[vocabulary:] == [""] * (300 - vocabulary)
        assert np.isnan(whole[vocabulary:]).all()


class TestBatches:
    async def test_a_reply_is_the_same_alone_and_in_a_crowd(self, folder: Path) -> None:
        model = LocalModel(str(folder), seed=1)
        texts = ["x" * (1 + 7 * number % 90) + str(number) for number in range(100)]
        together = await asyncio.gather(*(ask(model, text) for text in texts))
        assert len({reply.text for reply in together}) > 90
        for text, crowded in zip(texts[::9], together[::9], strict=True):
            alone = await ask(model, text)
            assert (alone.text, alone.finish_reason, alone.usage) == (
                crowded.text,
                crowded.finish_reason,
                crowded.usage,
            )
            assert alone.tokens is not None
            assert crowded.tokens is not None
            assert alone.tokens.tokens == crowded.tokens.tokens
            np.testing.assert_allclose(alone.tokens.logprob, crowded.tokens.logprob, atol=1e-4)
            np.testing.assert_allclose(alone.tokens.alt_logprob, crowded.tokens.alt_logprob, atol=1e-4)
        await model.close()

    def test_waiting_calls_join_while_others_continue(self, llama: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(local_generation, "MOST_ROWS", 3)
        generation = Generation(replace(load_weights(llama), ends=frozenset()))
        calls = deque(_call(str(tokens), tokens) for tokens in (20, 4, 4, 12, 5, 9))
        sizes = []
        with torch.inference_mode():
            while calls or generation.busy:
                generation.admit(lambda: calls.popleft() if calls else None)
                sizes.append(len(generation._batch.rows))
                generation.step()
        # Beside the reply of 20 tokens: those of 4 and 4, then 12 and 5, then 9 in the place of the 5.
        assert sizes == [3] * 16 + [2] * 2 + [1] * 2

    def test_a_batch_keeps_within_its_tokens(self, llama: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(local_generation, "MOST_TOKENS", 300)
        generation = Generation(load_weights(llama))
        calls = deque(_call(text, 50) for text in ("a", "b", "c" * 100, "d"))
        waiting = list(calls)
        most = 0
        with torch.inference_mode():
            while calls or generation.busy:
                generation.admit(lambda: calls.popleft() if calls else None)
                rows = generation._batch.rows
                most = max(most, len(rows))
                assert len(rows) == 1 or len(rows) * max(row.most_tokens for row in rows) <= 300
                generation.step()
        assert most == 2
        assert all(call.reply.result().text for call in waiting)


def _call(text: str, tokens: int = 20) -> GenerationRequest:
    reply: Future[ModelReply] = Future()
    return GenerationRequest(
        said(text), Decoding(temperature=1.0, max_tokens=tokens), text.encode().ljust(16)[:16], reply
    )


class TestCancelling:
    def test_a_cancelled_call_leaves_and_the_others_stay(self, llama: Path) -> None:
        weights = load_weights(llama)
        alone, generation = Generation(weights), Generation(weights)
        calls = [_call(text) for text in ("a", "b" * 30, "c")]
        undisturbed = _call("c")
        with torch.inference_mode():
            _generate(alone, deque([undisturbed]))
            left = deque(calls)
            for _ in range(3):
                generation.admit(lambda: left.popleft() if left else None)
                generation.step()
            assert calls[1].reply.cancel()
            generation.step()
            assert [row.call for row in generation._batch.rows] == [calls[0], calls[2]]
            _generate(generation, left)
        assert calls[2].reply.result().text == undisturbed.reply.result().text

    async def test_cancelling_the_task_cancels_the_call(self, llama: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        begun, go_on = _hold_steps(monkeypatch)
        model = LocalModel(str(llama), seed=1)
        task = asyncio.create_task(ask(model, "x"))
        # The thread is stopped in a step; that the loop gets here shows that it is not.
        await asyncio.to_thread(begun.wait, 60)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        go_on.set()
        assert (await ask(model, "y")).text
        await model.close()


def _hold_steps(monkeypatch: pytest.MonkeyPatch) -> tuple[threading.Event, threading.Event]:
    """Every step signals its start, and waits until it may continue."""
    begun, go_on = threading.Event(), threading.Event()
    step = Generation.step

    def held(self: Generation) -> None:
        begun.set()
        assert go_on.wait(60)
        step(self)

    monkeypatch.setattr(Generation, "step", held)
    return begun, go_on


def _generate(generation: Generation, calls: deque[GenerationRequest]) -> None:
    while calls or generation.busy:
        generation.admit(lambda: calls.popleft() if calls else None)
        generation.step()


class TestSeeds:
    async def test_seed_messages_and_step_decide(self, llama: Path) -> None:
        model, other = LocalModel(str(llama), seed=1), LocalModel(str(llama), seed=2)
        first = (await ask(model, "x", key="a")).text
        assert (await ask(model, "x", key="a")).text == first
        assert (await ask(model, "x", key="b")).text != first
        assert (await ask(model, "y", key="a")).text != first
        assert (await ask(other, "x", key="a")).text != first
        greedy = (await ask(model, "x", GREEDY, key="a")).text
        assert (await ask(other, "x", GREEDY, key="b")).text == greedy
        await model.close()
        await other.close()


class TestEnds:
    async def test_the_reply_ends_at_an_end_token_which_is_no_part_of_it(self, llama: Path) -> None:
        model = LocalModel(str(llama), seed=1)
        long = await ask(model, "x", GREEDY)
        await model.close()
        weights = load_weights(llama)
        ids = _greedy_ids(weights, said("x"), 24)
        end = next(token for token in ids[3:] if token not in ids[:3])
        cut = ids.index(end)
        (llama / "generation_config.json").write_text(
            json.dumps({"eos_token_id": [weights.tokenizer.eos_token_id, end]})
        )
        short = await ask(model, "x", GREEDY)
        await model.close()
        assert (long.finish_reason, short.finish_reason) == ("length", "stop")
        assert short.usage.completion_tokens == cut
        assert short.tokens is not None
        assert len(short.tokens.tokens) == cut
        assert short.tokens.alt_logprob.shape == (cut, 5)

    async def test_the_context_bounds_the_reply(self, folder: Path) -> None:
        model = LocalModel(str(folder), seed=1)
        reply = await ask(model, "x" * (CONTEXT - 70), Decoding(temperature=0.0, max_tokens=1000))
        assert reply.finish_reason == "length"
        assert (reply.usage.prompt_tokens or 0) + (reply.usage.completion_tokens or 0) == CONTEXT
        with pytest.raises(ModelError) as caught:
            await ask(model, "x" * CONTEXT)
        assert caught.value.kind == "context_length"
        with pytest.raises(ModelError, match="expected 0 to 1000"):
            await ask(model, "x", Decoding(top_logprobs=1001))
        await model.close()


def _greedy_ids(weights: Any, messages: list[Message], count: int) -> list[int]:
    ids = PromptEncoder(weights.tokenizer).encode(messages)
    prompt = len(ids)
    for _ in range(count):
        with torch.inference_mode():
            ids.append(int(weights.model(torch.tensor([ids])).logits[0, -1].argmax()))
    return ids[prompt:]


class TestOneCopy:
    @pytest.fixture
    def loads(self, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
        seen: list[Path] = []

        def counted(folder: Path) -> Weights:
            seen.append(folder)
            return load_weights(folder)

        monkeypatch.setattr(local_engine, "load_weights", counted)
        return seen

    async def test_models_of_one_folder_share_it(self, llama: Path, tmp_path: Path, loads: list[Path]) -> None:
        (tmp_path / "link").symlink_to(llama)
        agent, judge = LocalModel(str(llama), seed=1), LocalModel(str(tmp_path / "link"), seed=1)
        assert loads == []
        agent.load()
        judge.load()
        first = await ask(agent, "x")
        await agent.close()
        assert (await ask(judge, "x")).text == first.text
        assert len(loads) == 1
        await judge.close()
        assert not [thread for thread in threading.enumerate() if thread.name.startswith("local-llama")]
        assert (await ask(agent, "x")).text == first.text
        assert len(loads) == 2
        await agent.close()

    async def test_closing_ends_what_is_under_way(self, llama: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        begun, go_on = _hold_steps(monkeypatch)
        model = LocalModel(str(llama), seed=1)
        asked = asyncio.create_task(ask(model, "x"))
        await asyncio.to_thread(begun.wait, 60)
        closing = asyncio.create_task(model.close())
        await asyncio.sleep(0)
        go_on.set()
        await closing
        with pytest.raises(ModelError, match="was closed"):
            await asked
