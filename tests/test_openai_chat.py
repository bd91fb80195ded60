"""A model as an agent, before a small local server that speaks the chat completions of OpenAI's API."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from a2a_stubs import v1
from aiohttp import web

from a2a_grpc.adapters.openai_chat import openai_chat
from a2a_grpc.agent import Agent
from a2a_grpc.bindings import sse
from a2a_grpc.remote import RemoteAgent
from a2a_grpc.testing import connect, until
from tests.peers import listening

ODDITIES: list[Any] = [
    {"error": None, "choices": [{"delta": {"role": "assistant", "content": None}}]},
    {"choices": [{"delta": {"content": [{"type": "text", "text": "I "}, {"type": "thinking", "thinking": []}]}}]},
    {"choices": [{"delta": {"content": "know"}, "finish_reason": None}]},
    {"choices": [{"finish_reason": "stop"}]},
    {"choices": []},
]
"""What endpoints say that are compatible but for details: nulls, lists of blocks, an end without a delta, no [DONE]."""


class Model:
    """The server: what it was asked, and how it answers. words: of the answer; default: how many messages it knows."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.keys: list[str] = []
        self.url = self.mood = ""
        self.gate = asyncio.Event()
        self.left = False

    async def answer(self, request: web.Request) -> web.StreamResponse:
        assert (request.method, request.path) == ("POST", "/v1/chat/completions")
        self.asked.append(await request.json())
        self.keys.append(request.headers.get("authorization", ""))
        words = f"I know {len(self.asked[-1]['messages'])} messages".split(" ")
        if self.mood == "ill":
            return web.json_response({"error": {"message": "secret: no quota"}}, status=429)
        if self.mood == "whole":
            return web.json_response({"choices": [{"message": {"role": "assistant", "content": " ".join(words)}}]})
        reply = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await reply.prepare(request)
        if self.mood == "odd":
            for said in ODDITIES:
                await self._say(reply, said)
            return reply
        if self.mood == "long":
            for _ in range(80):
                await reply.write(b"data: " + b"x" * 65_536)
            return reply
        try:
            await self._stream(reply, words)
        except (ConnectionResetError, asyncio.CancelledError):
            self.left = True
            raise
        return reply

    async def _stream(self, reply: web.StreamResponse, words: list[str]) -> None:
        await self._say(reply, {"choices": [{"delta": {"role": "assistant", "content": ""}}]})
        for number, word in enumerate(words):
            await self._say(reply, {"choices": [{"delta": {"content": " " * bool(number) + word}}]})
            if self.mood == "slow":
                await self.gate.wait()
            if self.mood == "sick":
                await self._say(reply, {"error": {"message": "secret: it broke"}})
        await self._say(reply, {"choices": [], "usage": {"total_tokens": 7}})
        if self.mood != "cut":
            await reply.write(b"data: [DONE]\n\n")

    async def _say(self, reply: web.StreamResponse, told: Any) -> None:
        await reply.write(b"data: " + json.dumps(told).encode() + b"\n\n")


@asynccontextmanager
async def model() -> AsyncIterator[Model]:
    made = Model()
    async with listening(made.answer, handler_cancellation=True) as address:
        made.url = f"http://{address}/v1"
        try:
            yield made
        finally:
            made.gate.set()


@asynccontextmanager
async def asking(url: str, **settings: Any) -> AsyncIterator[RemoteAgent]:
    modes = ["text/plain", "application/json", "image/png", "application/zip"]
    agent = Agent(name="Model", description="Is one.", version="1", skills=[], default_input_modes=modes)
    agent.handle(openai_chat(url, "tea-1", **settings))
    async with connect(agent) as client:
        yield RemoteAgent(client)


async def test_the_answer_streams_and_the_conversation_is_remembered() -> None:
    async with model() as there:
        told = {"key": lambda: "k-1", "system": "Be kind.", "parameters": {"temperature": 0}}
        async with asking(there.url, **told) as agent:
            pieces = []
            run = agent.stream("Hello")
            async for update in run:
                pieces.append(update.text)
            first = await run.result()
            assert first.text == "I know 2 messages" and "know" in "".join(pieces[1:-1]) and len(pieces) > 4
            again = await agent.generate("And now?", context_id=first.context_id)
            assert again.text == "I know 4 messages"
            assert (await agent.generate("Anew")).text == "I know 2 messages"
    asked = there.asked[1]
    assert (asked["model"], asked["stream"], asked["temperature"]) == ("tea-1", True, 0)
    assert [each["role"] for each in asked["messages"]] == ["system", "user", "assistant", "user"]
    assert [each["content"] for each in asked["messages"]][1:] == ["Hello", "I know 2 messages", "And now?"]
    assert set(there.keys) == {"Bearer k-1"}


async def test_images_and_data_are_passed_on_and_other_files_are_not() -> None:
    async with model() as there, asking(there.url + "/") as agent:
        message = v1.Message(parts=[v1.Part(text="What is it?"), v1.Part(raw=b"x", media_type="image/png")])
        message.parts.add().data.struct_value.update({"a": 1})
        assert (await agent.generate(message)).finish_reason == "stop"
        content = there.asked[0]["messages"][0]["content"]
        assert [each["type"] for each in content] == ["text", "image_url", "text"]
        assert content[1]["image_url"]["url"] == "data:image/png;base64,eA==" and json.loads(content[2]["text"]) == {
            "a": 1
        }
        result = await agent.generate([v1.Part(raw=b"x", media_type="application/zip")])
        assert (result.finish_reason, len(there.asked)) == ("failed", 1)
        assert there.keys == [""]


async def test_servers_that_do_not_stream_are_understood() -> None:
    async with model() as there, asking(there.url) as agent:
        there.mood = "whole"
        assert (await agent.generate("Hello")).text == "I know 1 messages"


async def test_endpoints_that_differ_in_details_are_understood() -> None:
    async with model() as there, asking(there.url) as agent:
        there.mood = "odd"
        result = await agent.generate("Hello")
        assert (result.finish_reason, result.text) == ("stop", "I know")


async def test_an_answer_without_end_is_cut_off(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR, "a2a_grpc.openai_chat")
    monkeypatch.setattr(sse, "LIMIT", 1 << 20)
    monkeypatch.setattr(sse.Parser.__init__, "__defaults__", (1 << 20,))
    async with model() as there, asking(there.url) as agent:
        there.mood = "long"
        result = await agent.generate("Hello")
        assert (result.finish_reason, result.text) == ("failed", "The model did not answer")
        assert "larger than 1048576 bytes" in caplog.text


@pytest.mark.parametrize("mood", ["ill", "sick", "cut", "gone"])
async def test_what_is_wrong_goes_to_the_log_and_not_to_the_caller(mood: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR, "a2a_grpc.openai_chat")
    async with model() as there, asking("http://127.0.0.1:1" if mood == "gone" else there.url) as agent:
        there.mood = mood
        result = await agent.generate("Hello")
        assert result.finish_reason == "failed" and result.task is not None
        said = result.task.status.message.parts[0].text
        assert said.startswith("The model") and "secret" not in str(result.task)
        assert ("secret" in caplog.text) == (mood in ("ill", "sick"))
    with pytest.raises(ValueError, match="base_url"):
        openai_chat("model.example", "m")


async def test_a_canceled_task_leaves_the_model_alone() -> None:
    async with model() as there, asking(there.url) as agent:
        there.mood = "slow"
        run = agent.stream("Hello")
        async for update in run:
            if update.text == "I":
                break
        assert (await agent.abort(run.run_id)).finish_reason == "canceled"
        await until(lambda: there.left)
