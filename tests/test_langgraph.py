"""A LangGraph graph as an agent: its messages stream, its interrupts are questions, its threads keep apart."""

import operator
import sys
from typing import Annotated, Any, TypedDict

import pytest

pytest.importorskip("langgraph", reason="needs langgraph")

from a2a_stubs import v1
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt

from a2a_grpc.adapters.langgraph import langgraph
from a2a_grpc.agent import Agent
from a2a_grpc.protojson_values import value_of
from a2a_grpc.remote import RemoteAgent
from a2a_grpc.testing import connect

interrupts = pytest.mark.skipif(sys.version_info < (3, 11), reason="needs Python 3.11, as interrupts of LangGraph do")


class State(TypedDict):
    messages: Annotated[list[Any], operator.add]


def node(state: State) -> dict[str, Any]:
    last = state["messages"][-1]["content"]
    if last == "order":
        size = interrupt({"prompt": "Which size?", "schema": {"type": "object"}, "sizes": ["S", "L"]})
        return {"messages": [AIMessage(content=f"One {size['size']}")]}
    if last == "name":
        return {"messages": [AIMessage(content=[{"type": "text", "text": f"Hello {interrupt('Your name?')}"}])]}
    return {"messages": [AIMessage(content=f"{last}, {len(state['messages'])}")]}


def size(state: State) -> dict[str, Any]:
    chosen = interrupt({"prompt": "Which size?", "schema": {"type": "string"}})
    return {"messages": [AIMessage(content=f"size {chosen};")]}


def name(state: State) -> dict[str, Any]:
    return {"messages": [AIMessage(content=f"name {interrupt('Your name?')}, {interrupt('Your other name?')};")]}


def shop(*nodes: Any) -> Agent:
    graph = StateGraph(State)
    for each in nodes or (node,):
        graph.add_node(each.__name__, each)
        graph.add_edge(START, each.__name__)
        graph.add_edge(each.__name__, END)
    agent = Agent(name="Graph", description="Is one.", version="1", skills=[])
    agent.handle(langgraph(graph.compile(checkpointer=InMemorySaver())))
    return agent


async def test_a_graph_answers_and_its_thread_is_the_conversation() -> None:
    async with connect(shop()) as client:
        agent = RemoteAgent(client)
        first = await agent.generate("hi")
        assert first.text == "hi, 1"
        assert (await agent.generate("again", context_id=first.context_id)).text == "again, 3"
        assert (await agent.generate("anew")).text == "anew, 1"


@interrupts
async def test_an_interrupt_is_a_question() -> None:
    async with connect(shop()) as client:
        agent = RemoteAgent(client)
        asked = await agent.generate("order")
        wanted = asked.suspended
        assert wanted is not None and (wanted.prompt, wanted.payload) == ("Which size?", {"sizes": ["S", "L"]})
        assert wanted.schema == {"type": "object"}
        assert (await agent.resume({"size": "L"}, run_id=asked.run_id)).text == "One L"
        asked = await agent.generate("name")
        assert asked.suspended is not None and asked.suspended.prompt == "Your name?"
        assert (await agent.resume("Ann", run_id=asked.run_id)).text == "Hello Ann"


@interrupts
async def test_interrupts_at_once_are_one_question_and_answered_by_their_ids() -> None:
    async with connect(shop(size, name)) as client:
        agent = RemoteAgent(client)
        asked = await agent.generate("both")
        wanted = asked.suspended
        assert wanted is not None
        ids = {each["prompt"]: each["id"] for each in wanted.payload["interrupts"]}
        assert list(ids) in (["Which size?", "Your name?"], ["Your name?", "Which size?"])
        assert wanted.prompt == "\n".join(f"{number}. {prompt}" for number, prompt in enumerate(ids, 1))
        schemas = {ids["Which size?"]: {"type": "string"}, ids["Your name?"]: {}}
        assert wanted.schema == {"type": "object", "properties": schemas}
        answers = {ids["Your name?"]: "Ann", ids["Which size?"]: "L"}
        asked = await agent.resume(answers, run_id=asked.run_id)
        assert asked.suspended is not None and asked.suspended.prompt == "Your other name?"
        assert asked.text == "size L;"
        assert (await agent.resume("Lee", run_id=asked.run_id)).text.endswith("name Ann, Lee;")


@interrupts
async def test_an_answer_without_an_id_is_for_the_first_interrupt_and_the_rest_is_asked_again() -> None:
    answers = {"Which size?": {"size": "L"}, "Your name?": "Ann", "Your other name?": "Lee"}
    async with connect(shop(size, name)) as client:
        agent = RemoteAgent(client)
        asked, seen = await agent.generate("both"), []
        while asked.suspended is not None:
            several = (asked.suspended.payload or {}).get("interrupts")
            seen.append(several[0]["prompt"] if several else asked.suspended.prompt)
            asked = await agent.resume(answers[seen[-1]], run_id=asked.run_id)
        assert sorted(seen) == sorted(answers)
        assert "name Ann, Lee;" in asked.text and "size {'size': 'L'};" in asked.text


@interrupts
async def test_null_is_an_answer() -> None:
    async with connect(shop()) as client:
        agent = RemoteAgent(client)
        asked = await agent.generate("name")
        null = v1.Message(parts=[v1.Part(data=value_of(None))])
        assert (await agent.resume(null, run_id=asked.run_id)).text == "Hello None"
