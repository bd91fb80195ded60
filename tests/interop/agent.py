"""The agent that every outside client calls: echoes parts, its text in two pieces, or waits until it is canceled."""

import asyncio

from a2a_grpc.agent import Agent, Skill, TaskHandle

agent = Agent(
    name="Interop",
    description="Echoes a text; works until canceled when the text is `wait`.",
    version="1.0.0",
    skills=[Skill(id="echo", name="Echo", tags=["test"])],
    default_input_modes=("text/plain", "application/json", "image/png"),
)


@agent.handle
async def work(task: TaskHandle) -> None:
    """One turn."""
    await task.working("on it")
    if task.text == "wait":
        await asyncio.Event().wait()
    others = [part for part in task.message.parts if not part.text]
    if others:
        await task.add_artifact(others, name="others")
    async with task.artifact(name="answer") as out:
        for piece in ("echo ", task.text):
            await out.write(piece)
    await task.complete()
