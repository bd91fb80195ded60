"""An agent on a2a-sdk 1.x, on every wire and version that it serves. Usage: server.py HTTP_PORT GRPC_PORT FILE [BELOW].

FILE is where tasks are kept, so that they outlive the process; "" for memory. BELOW is the address of an agent that
does the work in its place, called with the SDK's own client over gRPC. Prints one line when it is ready.
"""

import asyncio
import sys

import grpc.aio
import uvicorn
from a2a import types as a2a
from a2a.client import Client, ClientCallContext, ClientConfig, ClientFactory
from a2a.compat.v0_3 import a2a_v0_3_pb2_grpc
from a2a.compat.v0_3.grpc_handler import CompatGrpcHandler
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler, GrpcHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import (
    DatabaseTaskStore,
    InMemoryPushNotificationConfigStore,
    InMemoryTaskStore,
    TaskUpdater,
)
from a2a.types.a2a_pb2_grpc import add_A2AServiceServicer_to_server
from sqlalchemy.ext.asyncio import create_async_engine
from starlette.applications import Starlette

HTTP, GRPC, FILE, *BELOW = sys.argv[1:]
PIECES = 40


def text(words: str) -> a2a.Part:
    return a2a.Part(text=words)


async def working(context: RequestContext, queue: EventQueue) -> TaskUpdater:
    """The task, made unless it is there, at work from now on."""
    task = context.current_task
    if task is None:
        task = a2a.Task(id=context.task_id, context_id=context.context_id, history=[context.message])
        task.status.state = a2a.TaskState.TASK_STATE_SUBMITTED
        await queue.enqueue_event(task)
    updater = TaskUpdater(queue, task.id, task.context_id)
    await updater.start_work()
    return updater


class Obedient(AgentExecutor):
    """Does what the first word says."""

    async def execute(self, context: RequestContext, queue: EventQueue) -> None:
        word = context.get_user_input()
        if word == "reply":
            message = a2a.Message(message_id="r", role=a2a.Role.ROLE_AGENT, parts=[text("said")])
            await queue.enqueue_event(message)
            return
        updater = await working(context, queue)
        if word in ("ask", "auth"):
            asks = updater.requires_input if word == "ask" else updater.requires_auth
            await asks(updater.new_agent_message([text("Which?")]))
            return
        if word == "wait":
            await asyncio.Event().wait()
        pieces = [f"{number} " for number in range(PIECES)] if word == "slow" else ["echo ", word]
        for number, piece in enumerate(pieces):
            if word == "slow":
                await asyncio.sleep(0.03)
            last = number == len(pieces) - 1
            await updater.add_artifact([text(piece)], artifact_id="answer", append=number > 0, last_chunk=last)
        await updater.complete()

    async def cancel(self, context: RequestContext, queue: EventQueue) -> None:
        await TaskUpdater(queue, context.task_id, context.context_id).cancel()


class Relay(AgentExecutor):
    """Lets another agent do what it is told, with its question and its cancel, in the trace of its caller."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.client: Client | None = None
        self.connecting = asyncio.Lock()
        self.runs: dict[str, str] = {}

    async def below(self) -> Client:
        async with self.connecting:
            if self.client is None:
                config = ClientConfig(
                    supported_protocol_bindings=["GRPC"], grpc_channel_factory=grpc.aio.insecure_channel
                )
                self.client = await ClientFactory(config).create_from_url(self.url)
        return self.client

    async def execute(self, context: RequestContext, queue: EventQueue) -> None:
        updater = await working(context, queue)
        message = a2a.Message(
            message_id=f"below-{context.message.message_id}",
            role=a2a.Role.ROLE_USER,
            parts=context.message.parts,
            task_id=self.runs.get(updater.task_id, ""),
        )
        headers = context.call_context.state["headers"] if context.call_context else {}
        trace = {name: headers[name] for name in ("traceparent", "tracestate") if name in headers}
        called = ClientCallContext(service_parameters=trace)
        said, status = "", a2a.TaskStatus()
        async for event in (await self.below()).send_message(a2a.SendMessageRequest(message=message), context=called):
            if event.HasField("task"):
                self.runs[updater.task_id], status = event.task.id, event.task.status
            elif event.HasField("status_update"):
                status = event.status_update.status
            else:
                said += "".join(part.text for part in event.artifact_update.artifact.parts)
        if status.state == a2a.TaskState.TASK_STATE_INPUT_REQUIRED:
            await updater.requires_input(updater.new_agent_message(list(status.message.parts)))
        elif status.state == a2a.TaskState.TASK_STATE_COMPLETED:
            await updater.add_artifact([text(said)], artifact_id="answer")
            await updater.complete()

    async def cancel(self, context: RequestContext, queue: EventQueue) -> None:
        await (await self.below()).cancel_task(a2a.CancelTaskRequest(id=self.runs[context.task_id]))
        await TaskUpdater(queue, context.task_id, context.context_id).cancel()


def card() -> a2a.AgentCard:
    made = a2a.AgentCard(
        name="Official",
        description="Obeys.",
        version="1",
        capabilities=a2a.AgentCapabilities(streaming=True, push_notifications=True),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[a2a.AgentSkill(id="obey", name="Obey", description="Obeys.", tags=["test"])],
    )
    urls = {"JSONRPC": f"http://127.0.0.1:{HTTP}/rpc", "HTTP+JSON": f"http://127.0.0.1:{HTTP}/rest"}
    for version in ("1.0", "0.3"):
        for binding, url in {**urls, "GRPC": f"127.0.0.1:{GRPC}"}.items():
            made.supported_interfaces.add(url=url, protocol_binding=binding, protocol_version=version)
    return made


async def main() -> None:
    described = card()
    handler = DefaultRequestHandler(
        Relay(*BELOW) if BELOW else Obedient(),
        DatabaseTaskStore(create_async_engine(f"sqlite+aiosqlite:///{FILE}", pool_size=1, max_overflow=0))
        if FILE
        else InMemoryTaskStore(),
        described,
        push_config_store=InMemoryPushNotificationConfigStore(),
    )
    server = grpc.aio.server()
    add_A2AServiceServicer_to_server(GrpcHandler(handler), server)
    a2a_v0_3_pb2_grpc.add_A2AServiceServicer_to_server(CompatGrpcHandler(handler), server)
    server.add_insecure_port(f"127.0.0.1:{GRPC}")
    await server.start()
    routes = [
        *create_agent_card_routes(described),
        *create_jsonrpc_routes(handler, "/rpc", enable_v0_3_compat=True),
        *create_rest_routes(handler, path_prefix="/rest", enable_v0_3_compat=True),
    ]
    settings = uvicorn.Config(Starlette(routes=routes), port=int(HTTP), log_level="error")
    web = uvicorn.Server(settings)
    serving = asyncio.create_task(web.serve())
    while not web.started:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    print("ready", flush=True)
    await serving


asyncio.run(main())
