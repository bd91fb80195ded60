"""A LangGraph graph as an agent: its messages are streamed, its interrupts are questions.

Laws: the graph's own checkpointer keeps what a conversation has come to; its thread is named after the conversation and
who leads it, so that no caller comes into another's. Only this module knows LangGraph.
"""

import hashlib
import importlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import orjson

from a2a_grpc.agent import TaskHandle

Work = Callable[[TaskHandle], Awaitable[None]]

MODES: Final = ("messages", "updates")
"""What is heard of a graph: pieces of messages as they are written, and where it is interrupted."""

INTERRUPT: Final = "__interrupt__"


def _messages(task: TaskHandle) -> Mapping[str, Any]:
    return {"messages": [{"role": "user", "content": task.text}]}


def langgraph(graph: Any, *, given: Callable[[TaskHandle], Any] = _messages) -> Work:
    """The function of an agent that runs a compiled graph: `agent.handle(langgraph(graph))`.

    graph: compiled, with a checkpointer if it is to remember or to ask. given: makes the graph's input of a turn;
    default: the text as a user's message, for graphs whose state has `messages`. The text of the messages that its
    nodes write is the answer, as it is written. `interrupt(value)` ends the turn with a question, and its result is
    what the caller answers: a text is the prompt; an object is shown beside it, with its own `prompt` and `schema`.
    Raises ModuleNotFoundError without LangGraph.
    """
    resume = importlib.import_module("langgraph.types").Command

    async def work(task: TaskHandle) -> None:
        config = {"configurable": {"thread_id": _thread(task)}}
        start = given(task) if task.answer is None else resume(resume=task.answer)
        questions: list[Any] = []
        async with task.artifact(name="answer") as out:
            async for mode, told in graph.astream(start, config, stream_mode=list(MODES)):
                if mode == "messages":
                    if text := _text(told[0].content):
                        await out.write(text)
                elif isinstance(told, dict):
                    questions += [each.value for each in told.get(INTERRUPT, ())]
        if questions:
            value = questions[0]
            asked = value if isinstance(value, dict) else {"prompt": str(value)}
            more = {name: each for name, each in asked.items() if name not in ("prompt", "schema")}
            await task.ask(str(asked.get("prompt", "")), data=more or None, schema=asked.get("schema"))

    return work


def _thread(task: TaskHandle) -> str:
    """The name of the thread, in which no part can pass for another."""
    named = orjson.dumps([task.tenant, task.caller.subject, task.context_id])
    return hashlib.sha256(named).hexdigest()


def _text(content: Any) -> str:
    """The text in the content of a message, which is a text or a list of blocks."""
    if isinstance(content, str):
        return content
    blocks = [each if isinstance(each, str) else each.get("text", "") for each in content]
    return "".join(text for text in blocks if isinstance(text, str))
