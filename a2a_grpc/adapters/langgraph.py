"""A LangGraph graph as an agent: its messages are streamed, its interrupts are questions.

Laws: the graph's own checkpointer keeps what a conversation has come to; its thread is named after the conversation and
who leads it, so that no caller comes into another's. Only this module knows LangGraph.
"""

import hashlib
import importlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

import orjson

from a2a_grpc.agent import TaskHandle

Work = Callable[[TaskHandle], Awaitable[None]]

MODES: Final = ("messages", "updates")
"""What is heard of a graph: pieces of messages as they are written, and where it is interrupted."""

INTERRUPT: Final = "__interrupt__"

WAITING: Final = "a2a.interrupts"
"""Where the agent's state keeps the ids of the interrupts that wait for an answer, in the order of their questions."""


def _messages(task: TaskHandle) -> Mapping[str, Any]:
    return {"messages": [{"role": "user", "content": task.text}]}


def langgraph(graph: Any, *, given: Callable[[TaskHandle], Any] = _messages) -> Work:
    """The function of an agent that runs a compiled graph: `agent.handle(langgraph(graph))`.

    graph: compiled, with a checkpointer if it is to remember or to ask. given: makes the graph's input of a turn;
    default: the text as a user's message, for graphs whose state has `messages`. The text of the messages that its
    nodes write is the answer, as it is written. `interrupt(value)` ends the turn with a question, and its result is
    what the caller answers: a text is the prompt; an object is shown beside it, with its own `prompt` and `schema`.
    Several interrupts at once are one question with a numbered prompt, and `interrupts` beside it: of each its `id` and
    what it asks. An object with answers by id answers those; anything else the first. What is left is asked again.
    Interrupts need Python 3.11: before it, LangGraph does not know of them in a graph that is awaited.
    Raises ModuleNotFoundError without LangGraph.
    """
    resume = importlib.import_module("langgraph.types").Command

    async def work(task: TaskHandle) -> None:
        config = {"configurable": {"thread_id": _thread(task)}}
        waiting = task.state.pop(WAITING, None)
        start = resume(resume=_answers(waiting, task.answer)) if waiting else given(task)
        questions: dict[str, Any] = {}
        async with task.artifact(name="answer") as out:
            async for mode, told in graph.astream(start, config, stream_mode=list(MODES)):
                if mode == "messages":
                    if text := _text(told[0].content):
                        await out.write(text)
                elif isinstance(told, dict):
                    questions |= {each.id: _question(each) for each in told.get(INTERRUPT, ())}
        if questions:
            task.state[WAITING] = list(questions)
            prompt, shown, schema = _asked(questions)
            await task.ask(prompt, data=shown, schema=schema)

    return work


def _answers(waiting: Sequence[str], answer: Any) -> Mapping[str, Any]:
    """What each interrupt is answered, by its id."""
    if len(waiting) > 1 and isinstance(answer, dict) and answer.keys() & set(waiting):
        return {ident: answer[ident] for ident in waiting if ident in answer}
    return {waiting[0]: answer}


def _question(told: Any) -> Mapping[str, Any]:
    """What an interrupt asks, as an object."""
    schema = getattr(told, "response_schema", None)
    asked = told.value if isinstance(told.value, dict) else {"prompt": str(told.value)}
    return {"schema": schema, **asked} if isinstance(schema, dict) else asked


def _asked(questions: Mapping[str, Mapping[str, Any]]) -> tuple[str, Any, Any]:
    """Prompt, what is shown beside it, and the schema of the answer, of one question or of several together."""
    if len(questions) == 1:
        (asked,) = questions.values()
        more = {name: each for name, each in asked.items() if name not in ("prompt", "schema")}
        return str(asked.get("prompt", "")), more or None, asked.get("schema")
    prompts = (f"{number}. {asked.get('prompt', '')}" for number, asked in enumerate(questions.values(), 1))
    shown = [{**asked, "id": ident} for ident, asked in questions.items()]
    schemas = {ident: asked.get("schema") or {} for ident, asked in questions.items()}
    return "\n".join(prompts), {"interrupts": shown}, {"type": "object", "properties": schemas}


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
