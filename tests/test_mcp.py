"""Agents as MCP tools, tried with the official package's own client."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
from a2a_stubs import v1

from a2a_grpc.agent import Agent, Skill
from a2a_grpc.cli import main
from a2a_grpc.client import Client as Caller
from a2a_grpc.client_retries import Retries
from a2a_grpc.testing import serve
from tests.proxies import proxy
from tests.test_cli import ENVIRONMENT, PATIENCE

pytest.importorskip("mcp", reason="needs mcp")

import mcp_types as types
from mcp import StdioServerParameters
from mcp.client import Client
from mcp.client.stdio import stdio_client
from mcp.shared.exceptions import MCPError

from a2a_grpc.mcp import bridge

SIZES = {"type": "object", "properties": {"size": {"enum": ["S", "L"]}}, "required": ["size"]}
MODES = ["legacy", "auto"]


def shop(*skills: Skill, name: str = "Tea Shop") -> Agent:
    agent = Agent(name=name, description="Sells tea.", version="1", skills=skills)

    @agent.handle
    async def work(task: Any) -> Any:
        if task.answer is not None:
            return f"One {task.answer['size'] if isinstance(task.answer, dict) else task.answer} pot."
        if task.text == "order":
            return await task.ask("Which size?", schema=SIZES)
        if task.text == "name":
            return await task.ask("Your name?")
        if task.text == "login":
            return await task.ask_auth("Log in first")
        if task.text == "fail":
            return await task.fail("No tea.")
        if task.text == "picture":
            async with task.artifact(name="picture", media_type="image/png") as out:
                await out.write(b"\x89PNG")
            return None
        await task.working("boiling")
        if task.text == "wait":
            await asyncio.Event().wait()
        seen = await task.context.memory.get("seen", 0)
        await task.context.memory.set("seen", seen + 1)
        return f"{task.text} {task.data or ''}{task.metadata.get('skillId', '')} {seen}"

    return agent


@asynccontextmanager
async def host(*urls: str, mode: Any = "legacy", answer: Any = None, ask: bool = False) -> AsyncIterator[Client]:
    """The official client in front of agents. answer: what the user says to each question."""
    asked: Any = {}
    if answer is not None:

        async def user(_: Any, params: Any) -> types.ElicitResult:
            return answer(params)

        asked["elicitation_callback"] = user
    async with bridge(urls, ask=ask) as made, Client(made.server(), mode=mode, **asked) as client:
        yield client


def texts(result: Any) -> list[str]:
    return [block.text for block in result.content if isinstance(block, types.TextContent)]


def ident(result: Any, name: str) -> str:
    return next(text.split(f"{name} ")[1].rstrip(".") for text in texts(result) if f"{name} " in text)


TEA = Skill(id="sell-tea", name="Sell tea", description="Sells a pot.", tags=["tea"], examples=["order"])


@pytest.mark.parametrize("mode", MODES)
async def test_skills_are_tools_that_work_and_tell_of_it(mode: Any) -> None:
    async with serve(shop(TEA)) as server, host(server.http_url, mode=mode) as client:
        (tool,) = (await client.list_tools()).tools
        assert (tool.name, tool.title) == ("sell_tea", "Sell tea")
        assert "Sells a pot." in tool.description and "Example: order" in tool.description
        news: list[Any] = []

        async def heard(progress: float, _: Any, message: Any) -> None:
            news.append((progress, message))

        first = await client.call_tool("sell_tea", {"message": "hello"}, progress_callback=heard)
        assert not first.is_error and texts(first)[0] == "hello sell-tea 0" and news == [(1, "boiling")]
        context = ident(first, "context_id")
        again = await client.call_tool("sell_tea", {"message": "and", "data": {"a": 1}, "context_id": context})
        assert texts(again)[0] == "and {'a': 1}sell-tea 1"
        failed = await client.call_tool("sell_tea", {"message": "fail"})
        assert failed.is_error and texts(failed)[:2] == ["The task is failed.", "No tea."]
        wrong = await client.call_tool("sell_tea", {"message": "hi", "task_id": "nobody's"})
        assert wrong.is_error and texts(wrong)[0].startswith("TASK_NOT_FOUND")


@pytest.mark.parametrize("mode", MODES)
async def test_questions_are_put_to_the_user_where_the_host_can_ask(mode: Any) -> None:
    forms: list[Any] = []

    def user(params: Any) -> types.ElicitResult:
        forms.append((params.message, params.requested_schema["properties"]))
        if "Log" in params.message:
            raise AssertionError("credentials are no matter for a form")
        content = {"size": "L"} if "size" in params.requested_schema["properties"] else {"answer": "Ann"}
        return types.ElicitResult(action="accept", content=content)

    async with serve(shop()) as server, host(server.http_url, mode=mode, answer=user) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["ask"]
        assert texts(await client.call_tool("ask", {"message": "order"}))[0] == "One L pot."
        assert texts(await client.call_tool("ask", {"message": "name"}))[0] == "One Ann pot."
        login = await client.call_tool("ask", {"message": "login"})
        assert texts(login)[0] == "Log in first" and "waits for an authorisation" in texts(login)[1]
    assert forms == [
        ("Which size?", {"size": {"type": "string", "enum": ["S", "L"]}}),
        ("Your name?", {"answer": {"type": "string"}}),
    ]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("answer", [None, lambda _: types.ElicitResult(action="decline")])
async def test_other_hosts_are_told_the_task_to_go_on_with(mode: Any, answer: Any) -> None:
    async with serve(shop()) as server, host(server.http_url, mode=mode, answer=answer) as client:
        asked = await client.call_tool("ask", {"message": "order"})
        assert texts(asked)[0] == "Which size?" and not asked.is_error
        told = {"message": "S", "task_id": ident(asked, "task_id")}
        assert texts(await client.call_tool("ask", told))[0] == "One S pot."


@pytest.mark.parametrize("mode", MODES)
async def test_artifacts_are_resources(mode: Any) -> None:
    async with serve(shop()) as server, host(server.http_url, mode=mode) as client:
        result = await client.call_tool("ask", {"message": "picture"})
        image = next(block for block in result.content if isinstance(block, types.ImageContent))
        link = next(block for block in result.content if isinstance(block, types.ResourceLink))
        assert (image.data, image.mime_type, link.name) == ("iVBORw==", "image/png", "picture")
        (listed,) = (await client.list_resources()).resources
        assert listed.uri == link.uri
        (read,) = (await client.read_resource(link.uri)).contents
        assert isinstance(read, types.BlobResourceContents) and read.blob == "iVBORw=="
        with pytest.raises(MCPError, match="no resource a2a://nowhere/a") as caught:
            await client.read_resource("a2a://nowhere/a")
        assert caught.value.code == types.INVALID_PARAMS


async def test_several_agents_keep_apart_and_each_may_be_one_tool() -> None:
    async with serve(shop(TEA)) as one, serve(shop(TEA)) as two:
        async with host(one.http_url, two.http_url) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == [
                "tea_shop_sell_tea",
                "tea_shop_sell_tea_2",
            ]
            await client.call_tool("tea_shop_sell_tea_2", {"message": "hi"})
        async with Caller(one.http_url) as first, Caller(two.http_url) as second:
            assert [task async for task in first.tasks()] == []
            assert len([task async for task in second.tasks()]) == 1
        async with host(one.http_url, ask=True) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == ["ask"]


async def canceled(client: Client, url: str) -> list[int]:
    """The states of the agent's tasks once a call that was under way has been given up by the host."""
    begun = asyncio.Event()

    async def heard(*_: Any) -> None:
        begun.set()

    call = asyncio.create_task(client.call_tool("ask", {"message": "wait"}, progress_callback=heard))
    await asyncio.wait_for(begun.wait(), PATIENCE)
    call.cancel()
    await asyncio.gather(call, return_exceptions=True)
    async with Caller(url) as caller, asyncio.timeout(PATIENCE):
        return [(await caller.wait(task)).status.state async for task in caller.tasks()]


@pytest.mark.requirement("OP-CANCEL-03")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("piped", [False, True])
async def test_a_call_that_the_host_gives_up_is_canceled_at_the_agent(mode: Any, piped: bool) -> None:
    async with serve(shop()) as server, AsyncExitStack() as stack:
        way = (
            command(server.http_url) if piped else (await stack.enter_async_context(bridge([server.http_url]))).server()
        )
        client = await stack.enter_async_context(Client(way, mode=mode))
        assert await canceled(client, server.http_url) == [v1.TASK_STATE_CANCELED]
        assert texts(await client.call_tool("ask", {"message": "hello"}))[0] == "hello  0"


def command(url: str, *words: str) -> Any:
    """The command as a host starts it."""
    told = ["-m", "a2a_grpc", "mcp", url, *words]
    return stdio_client(StdioServerParameters(command=sys.executable, args=told, env=ENVIRONMENT))


@pytest.mark.parametrize("mode", MODES)
async def test_the_command_speaks_over_its_standard_input_and_output(mode: Any) -> None:
    async def answered(_: Any, __: Any) -> types.ElicitResult:
        return types.ElicitResult(action="accept", content={"answer": "Ann"})

    async with serve(shop()) as server:
        words = server.http_url, "--binding", "grpc"
        async with Client(command(*words), mode=mode, elicitation_callback=answered) as client:
            assert texts(await client.call_tool("ask", {"message": "name"}))[0] == "One Ann pot."


@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON", "GRPC"])
async def test_an_agent_that_is_lost_in_the_middle_of_a_call_is_told_and_called_again_when_it_is_back(
    binding: str,
) -> None:
    begun, settings = asyncio.Event(), {"binding": binding, "retries": Retries(patience=0.5)}

    async def heard(*_: Any) -> None:
        begun.set()

    async with proxy("") as way, AsyncExitStack() as stack:
        public = {"public_url": f"http://{way.address}", "public_grpc": way.address}
        server = await stack.enter_async_context(serve(shop(), **public))
        way.target = server.grpc_address if binding == "GRPC" else server.http_address
        made = await stack.enter_async_context(bridge([server.http_url], **settings))
        client = await stack.enter_async_context(Client(made.server(), mode="legacy"))
        call = asyncio.create_task(client.call_tool("ask", {"message": "wait"}, progress_callback=heard))
        await asyncio.wait_for(begun.wait(), PATIENCE)
        way.refuses = True
        way.cut()
        lost = await asyncio.wait_for(call, PATIENCE)
        assert lost.is_error and texts(lost)[0].startswith("UNAVAILABLE: ")
        task_id = texts(lost)[1].split("at work on task ")[1].split(",")[0]
        away = await client.call_tool("ask", {"message": "hello"})
        assert away.is_error and len(texts(away)) == 1 and texts(away)[0].startswith("UNAVAILABLE: ")
        way.refuses = False
        assert texts(await client.call_tool("ask", {"message": "hello"}))[0] == "hello  0"
        answer = await client.call_tool("ask", {"message": "more", "task_id": task_id})
        assert texts(answer)[0].startswith("UNSUPPORTED_OPERATION"), texts(answer)


def test_an_agent_that_is_not_there_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mcp", "http://127.0.0.1:1"]) == 1
    said = capsys.readouterr()
    assert not said.out and said.err.startswith("UNAVAILABLE: ")
