"""Takes the scenario through a2a-sdk 0.3.x. Usage: client.py BASE_URL BINDING; prints one JSON line a step.

A2A_SHOW in the environment is SCHEME=SECRET of the card, to be shown by the SDK's own means. Those work on JSON-RPC
alone; else A2A_METADATA, NAME=VALUE, is sent by the HTTP client or the channel.
"""

import asyncio
import base64
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable
from typing import Any

import grpc.aio
import httpx
from a2a import types as a2a
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.client.auth.interceptor import AuthInterceptor
from a2a.client.errors import A2AClientJSONRPCError

URL, BINDING = sys.argv[1:]
HOOK = "https://hooks.example/a2a"
BYTES = "00ff6869"


def show(step: str, **facts: Any) -> None:
    print(json.dumps({"step": step, **facts}), flush=True)


def text(task: a2a.Task) -> str:
    return "".join(getattr(part.root, "text", "") for artifact in task.artifacts or () for part in artifact.parts)


def message(words: str, *more: a2a.DataPart | a2a.FilePart) -> a2a.Message:
    parts = [a2a.Part(root=part) for part in (a2a.TextPart(text=words), *more) if words]
    return a2a.Message(message_id=f"sdk03-{words}", role=a2a.Role.user, parts=parts)


async def only(answers: AsyncIterator[Any]) -> a2a.Task:
    ((task, _),) = [answer async for answer in answers]
    return task


async def follow(step: str, events: AsyncIterator[Any], first: Any = None) -> None:
    """The SDK folds the events into a task by itself."""
    kinds = []
    async for task, update in events:
        kinds.append(update.kind if update else task.kind)
        if len(kinds) == 1 and first:
            await first()
    show(step, first=kinds[0], state=task.status.state.value, text=text(task), final=update.final)


async def error(step: str, call: Awaitable[Any]) -> None:
    try:
        show(step, answer=repr(await call))
    except Exception as fault:
        if isinstance(fault, grpc.aio.AioRpcError):
            show(step, error=fault.code().name, text=fault.details())
        elif isinstance(fault, A2AClientJSONRPCError):
            show(step, error=str(fault.error.code), text=fault.error.message)
        else:
            show(step, error=str(getattr(fault, "status_code", repr(fault))))


async def parts(client: Any) -> None:
    content = base64.b64encode(bytes.fromhex(BYTES)).decode()
    file = a2a.FilePart(file=a2a.FileWithBytes(bytes=content, mime_type="image/png", name="a.bin"))
    done = await only(client.send_message(message("parts", a2a.DataPart(data={"n": [1, True]}), file)))
    first, second = (part.root for part in done.artifacts[0].parts)
    seen = {"name": second.file.name, "media": second.file.mime_type}
    show("parts", data=first.data, bytes=base64.b64decode(second.file.bytes).hex(), **seen)


async def push(client: Any, task: str) -> None:
    """The SDK can neither list nor delete configs."""
    hook = a2a.PushNotificationConfig(id="hook", url=HOOK, token="t")
    made = await client.set_task_callback(a2a.TaskPushNotificationConfig(task_id=task, push_notification_config=hook))
    got = await client.get_task_callback(
        a2a.GetTaskPushNotificationConfigParams(id=task, push_notification_config_id="hook")
    )
    for step, row in (("push-create", made), ("push-get", got)):
        kept = row.push_notification_config
        show(step, task=row.task_id == task, id=kept.id, url=kept.url, token=kept.token)


class Secrets:
    """What the SDK asks for the secret of a scheme."""

    async def get_credentials(self, scheme: str, _: Any) -> str | None:
        known, _, secret = os.environ.get("A2A_SHOW", "").partition("=")
        return secret if secret and scheme == known else None


METADATA = dict([os.environ["A2A_METADATA"].split("=", 1)]) if "A2A_METADATA" in os.environ else {}


async def with_metadata(proceed: Any, details: Any, request: Any) -> Any:
    more = [*(details.metadata or ()), *METADATA.items()]
    return await proceed(details._replace(metadata=grpc.aio.Metadata(*more)), request)


class Unary(grpc.aio.UnaryUnaryClientInterceptor):
    intercept_unary_unary = staticmethod(with_metadata)


class Stream(grpc.aio.UnaryStreamClientInterceptor):
    intercept_unary_stream = staticmethod(with_metadata)


async def main() -> None:
    shows = [AuthInterceptor(Secrets())]
    http = httpx.AsyncClient(headers=METADATA if BINDING == "HTTP+JSON" else {})
    card = await A2ACardResolver(http, URL).get_agent_card()
    config = {
        "httpx_client": http,
        "grpc_channel_factory": lambda url: grpc.aio.insecure_channel(url, interceptors=[Unary(), Stream()]),
        "supported_transports": [BINDING],
        "use_client_preference": True,
    }
    client = ClientFactory(ClientConfig(streaming=False, **config)).create(card, interceptors=shows)
    streaming = ClientFactory(ClientConfig(**config)).create(card, interceptors=shows)
    polling = ClientFactory(ClientConfig(streaming=False, polling=True, **config)).create(card, interceptors=shows)
    show("card", name=card.name, versions=[card.protocol_version])

    done = await only(client.send_message(message("hello")))
    show("send", state=done.status.state.value, text=text(done))
    await parts(client)
    await follow("stream", streaming.send_message(message("hello")))
    got = await client.get_task(a2a.TaskQueryParams(id=done.id, history_length=5))
    show("get", state=got.status.state.value, text=text(got), history=bool(got.history))
    running = await only(polling.send_message(message("wait")))
    show("send-now", state=running.status.state.value)
    await push(client, running.id)
    named = a2a.TaskIdParams(id=running.id)

    async def stop() -> None:
        show("cancel", state=(await client.cancel_task(named)).status.state.value)

    await follow("subscribe", streaming.resubscribe(named), stop)
    await error("cancel-finished", client.cancel_task(named))
    await error("unknown-task", client.get_task(a2a.TaskQueryParams(id="nobody")))
    await error("bad-message", only(client.send_message(message(""))))
    await error("bad-stream", follow("bad-stream", streaming.send_message(message(""))))


asyncio.run(main())
