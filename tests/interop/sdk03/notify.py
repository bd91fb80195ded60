"""Sends push notifications as servers on a2a-sdk 0.3 do. Usage: notify.py URL TOKEN."""

import asyncio
import sys
from typing import Any

import httpx
from a2a import types as a2a
from a2a.server.tasks import BasePushNotificationSender

URL, TOKEN = sys.argv[1:]


class Configs:
    """One config, for every task."""

    async def get_info(self, task_id: str) -> list[Any]:
        return [a2a.PushNotificationConfig(url=URL, token=TOKEN)]


async def main() -> None:
    async with httpx.AsyncClient() as client:
        for state in (a2a.TaskState.working, a2a.TaskState.completed):
            task = a2a.Task(id="t", context_id="c", status=a2a.TaskStatus(state=state))
            await BasePushNotificationSender(client, Configs()).send_notification(task)


asyncio.run(main())
