"""An agent on a2a-sdk 0.3.x, on every wire that it serves. Usage: server.py HTTP_PORT GRPC_PORT FILE, as of 1.x."""

import asyncio
import sys

import grpc.aio
import uvicorn
from a2a import types as a2a
from a2a.grpc.a2a_pb2_grpc import add_A2AServiceServicer_to_server
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.apps import A2ARESTFastAPIApplication, A2AStarletteApplication
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler, GrpcHandler
from a2a.server.tasks import DatabaseTaskStore, InMemoryPushNotificationConfigStore, TaskUpdater
from a2a.utils import new_agent_text_message, new_task
from sqlalchemy.ext.asyncio import create_async_engine
from starlette.applications import Starlette
from starlette.routing import Mount

HTTP, GRPC, FILE = sys.argv[1:]
PIECES = 40


def part(words: str) -> a2a.Part:
    return a2a.Part(root=a2a.TextPart(text=words))


class Obedient(AgentExecutor):
    """Does what the first word says."""

    async def execute(self, context: RequestContext, queue: EventQueue) -> None:
        word = context.get_user_input()
        if word == "reply":
            await queue.enqueue_event(new_agent_text_message("said"))
            return
        task = context.current_task
        if task is None:
            task = new_task(context.message)
            await queue.enqueue_event(task)
        updater = TaskUpdater(queue, task.id, task.context_id)
        await updater.start_work()
        if word in ("ask", "auth"):
            asks = updater.requires_input if word == "ask" else updater.requires_auth
            await asks(updater.new_agent_message([part("Which?")]), final=True)
            return
        if word == "wait":
            await asyncio.Event().wait()
        pieces = [f"{number} " for number in range(PIECES)] if word == "slow" else ["echo ", word]
        for number, piece in enumerate(pieces):
            if word == "slow":
                await asyncio.sleep(0.03)
            last = number == len(pieces) - 1
            await updater.add_artifact([part(piece)], artifact_id="answer", append=number > 0, last_chunk=last)
        await updater.complete()

    async def cancel(self, context: RequestContext, queue: EventQueue) -> None:
        await TaskUpdater(queue, context.task_id, context.context_id).cancel()


def card() -> a2a.AgentCard:
    urls = {"JSONRPC": f"http://127.0.0.1:{HTTP}/rpc", "HTTP+JSON": f"http://127.0.0.1:{HTTP}/rest"}
    urls["GRPC"] = f"127.0.0.1:{GRPC}"
    return a2a.AgentCard(
        name="Official",
        description="Obeys.",
        version="1",
        url=urls["JSONRPC"],
        preferred_transport="JSONRPC",
        additional_interfaces=[a2a.AgentInterface(transport=name, url=url) for name, url in urls.items()],
        capabilities=a2a.AgentCapabilities(streaming=True, push_notifications=True),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[a2a.AgentSkill(id="obey", name="Obey", description="Obeys.", tags=["test"])],
    )


async def main() -> None:
    described = card()
    handler = DefaultRequestHandler(
        Obedient(),
        DatabaseTaskStore(create_async_engine(f"sqlite+aiosqlite:///{FILE}", connect_args={"timeout": 60})),
        push_config_store=InMemoryPushNotificationConfigStore(),
    )
    server = grpc.aio.server()
    add_A2AServiceServicer_to_server(GrpcHandler(described, handler), server)
    server.add_insecure_port(f"127.0.0.1:{GRPC}")
    await server.start()
    rest = A2ARESTFastAPIApplication(described, handler).build()
    rpc = A2AStarletteApplication(described, handler).build(rpc_url="/rpc")
    settings = uvicorn.Config(
        Starlette(routes=[Mount("/rest", rest), Mount("", rpc)]), port=int(HTTP), log_level="error"
    )
    web = uvicorn.Server(settings)
    serving = asyncio.create_task(web.serve())
    while not web.started:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    print("ready", flush=True)
    await serving


asyncio.run(main())
