"""A LangGraph graph as an agent: its messages stream, its interrupts are questions, its threads keep apart."""

import operator
from typing import Annotated, Any, TypedDict

import pytest

pytest.importorskip("langgraph", reason="needs langgraph")

from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt

from a2a_grpc.adapters.langgraph import langgraph
from a2a_grpc.agent import Agent
from a2a_grpc.remote import RemoteAgent
from a2a_grpc.testing import connect


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


def shop() -> Agent:
    graph = StateGraph(State)
    graph.add_node("answer", node)
    graph.add_edge(START, "answer")
    graph.add_edge("answer", END)
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
