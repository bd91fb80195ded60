"""Takes the scenario through a2a-sdk 1.x. Usage: client.py BASE_URL BINDING VERSION CARD; prints one JSON line a step.

CARD is the version in which the card is asked for: that of the SDK is 1.0. With an agent that offers both, 0.3 is what
makes the SDK choose its compatibility transports. A2A_SHOW in the environment is SCHEME=SECRET of the card, to be shown
by the SDK's own means.
"""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable
from typing import Any

import grpc.aio
import httpx
from a2a import types as a2a
from a2a.client import ClientConfig, ClientFactory
from a2a.client.auth.interceptor import AuthInterceptor
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.struct_pb2 import Value

URL, BINDING, VERSION, CARD = sys.argv[1:]
HOOK = "https://hooks.example/a2a"
BYTES = "00ff6869"


def show(step: str, **facts: Any) -> None:
    print(json.dumps({"step": step, **facts}), flush=True)


def text(*artifacts: a2a.Artifact) -> str:
    return "".join(part.text for artifact in artifacts for part in artifact.parts)


def state(status: a2a.TaskStatus) -> str:
    return a2a.TaskState.Name(status.state)


def request(words: str, *more: a2a.Part, **configuration: Any) -> a2a.SendMessageRequest:
    parts = [a2a.Part(text=words), *more] if words else []
    message = a2a.Message(message_id=f"sdk1-{words}", role=a2a.Role.ROLE_USER, parts=parts)
    return a2a.SendMessageRequest(message=message, configuration=configuration)


async def only(answers: AsyncIterator[a2a.StreamResponse]) -> a2a.Task:
    (answer,) = [answer async for answer in answers]
    return answer.task


async def follow(step: str, events: AsyncIterator[a2a.StreamResponse], first: Any = None) -> None:
    kinds, told, words = [], "", ""
    async for event in events:
        kinds.append(event.WhichOneof("payload"))
        if len(kinds) == 1 and first:
            await first()
        if event.HasField("task"):
            told, words = state(event.task.status), text(*event.task.artifacts)
        elif event.HasField("status_update"):
            told = state(event.status_update.status)
        elif event.HasField("artifact_update"):
            words += text(event.artifact_update.artifact)
    show(step, first=kinds[0], state=told, text=words)


async def error(step: str, call: Awaitable[Any]) -> None:
    try:
        show(step, answer=repr(await call))
    except Exception as fault:
        show(step, error=type(fault).__name__, text=str(fault))


async def parts(client: Any) -> None:
    file = a2a.Part(raw=bytes.fromhex(BYTES), filename="a.bin", media_type="image/png")
    data = a2a.Part(data=ParseDict({"n": [1, True]}, Value()))
    done = await only(client.send_message(request("parts", data, file)))
    first, second = done.artifacts[0].parts
    seen = {"name": second.filename, "media": second.media_type, "bytes": second.raw.hex()}
    show("parts", data=MessageToDict(first.data), **seen)


async def listed(client: Any, context: str) -> None:
    try:
        page = await client.list_tasks(a2a.ListTasksRequest(context_id=context, include_artifacts=True))
        show("list", total=page.total_size, text=text(*page.tasks[0].artifacts))
    except Exception as fault:  # as of an agent that lists none
        show("list", error=type(fault).__name__)


async def push(client: Any, task: str) -> None:
    made = await client.create_task_push_notification_config(
        a2a.TaskPushNotificationConfig(task_id=task, id="hook", url=HOOK, token="t")
    )
    show("push-create", task=made.task_id == task, id=made.id, url=made.url, token=made.token)
    named = {"task_id": task, "id": "hook"}
    got = await client.get_task_push_notification_config(a2a.GetTaskPushNotificationConfigRequest(**named))
    show("push-get", task=got.task_id == task, id=got.id, url=got.url, token=got.token)
    if VERSION == "0.3" and BINDING == "HTTP+JSON":  # not in the SDK
        return
    everything = a2a.ListTaskPushNotificationConfigsRequest(task_id=task)
    listed = await client.list_task_push_notification_configs(everything)
    show("push-list", ids=[row.id for row in listed.configs])
    await client.delete_task_push_notification_config(a2a.DeleteTaskPushNotificationConfigRequest(**named))
    show("push-delete", left=len((await client.list_task_push_notification_configs(everything)).configs))


class Secrets:
    """What the SDK asks for the secret of a scheme."""

    async def get_credentials(self, scheme: str, _: Any) -> str | None:
        known, _, secret = os.environ.get("A2A_SHOW", "").partition("=")
        return secret if secret and scheme == known else None


async def main() -> None:
    shows = [AuthInterceptor(Secrets())]
    config = {
        "httpx_client": httpx.AsyncClient(headers={"A2A-Version": CARD}),
        "grpc_channel_factory": grpc.aio.insecure_channel,
        "supported_protocol_bindings": [BINDING],
    }
    client = await ClientFactory(ClientConfig(streaming=False, **config)).create_from_url(URL, interceptors=shows)
    card = client._card
    show("card", name=card.name, versions=sorted({row.protocol_version for row in card.supported_interfaces}))
    streaming = ClientFactory(ClientConfig(**config)).create(card, interceptors=shows)

    done = await only(client.send_message(request("hello")))
    show("send", state=state(done.status), text=text(*done.artifacts))
    await parts(client)
    await follow("stream", streaming.send_message(request("hello")))
    got = await client.get_task(a2a.GetTaskRequest(id=done.id, history_length=5))
    show("get", state=state(got.status), text=text(*got.artifacts), history=bool(got.history))
    if VERSION == "1.0":
        await listed(client, done.context_id)
    running = await only(client.send_message(request("wait", return_immediately=True)))
    show("send-now", state=state(running.status))
    await push(client, running.id)
    cancel = a2a.CancelTaskRequest(id=running.id)

    async def stop() -> None:
        show("cancel", state=state((await client.cancel_task(cancel)).status))

    await follow("subscribe", streaming.subscribe(a2a.SubscribeToTaskRequest(id=running.id)), stop)
    await error("cancel-finished", client.cancel_task(cancel))
    await error("unknown-task", client.get_task(a2a.GetTaskRequest(id="nobody")))
    await error("bad-message", only(client.send_message(request(""))))
    await error("bad-stream", follow("bad-stream", streaming.send_message(request(""))))


asyncio.run(main())
