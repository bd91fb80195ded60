"""`a2a-grpc push`: webhooks that are behind or were given up, and how those are taken up again.

Laws: words and JSON lines only; what a store keeps is known below. Of a webhook's address only the host is shown. It
works beside the server that serves from the store, which goes on with what is taken up again within a second or two.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

from a2a_grpc import config
from a2a_grpc.admin_views import webhook
from a2a_grpc.commands.words import Parser, UsageError, add_store
from a2a_grpc.opening import lasting_store
from a2a_grpc.push_secrets import Seal, new_key, reseal
from a2a_grpc.tasks.store import Backlog, Store, StoreError

PAGE: Final = 500
"""Webhooks read, or taken up again, at a time."""


def parser() -> argparse.ArgumentParser:
    """What follows `a2a-grpc push`."""
    made = Parser(prog="a2a-grpc push", description="Looks after webhooks; prints JSON, one document a line.")
    told = (
        "list what is behind, replay what was given up, make a key for secret_keys, or seal all with the first of them"
    )
    made.add_argument("action", choices=("list", "replay", "key", "reseal"), help=told)
    made.add_argument("--task", metavar="ID", help="only the webhooks of this task")
    made.add_argument("--host", metavar="HOST[:PORT]", help="only webhooks at this host")
    made.add_argument("--given-up", action="store_true", help="list: only those that were given up")
    made.add_argument("--all", action="store_true", help="replay: all that were given up")
    add_store(made)
    return made


def run(words: Sequence[str]) -> int:
    """Code 0, or 1 when there was nothing to take up again, or something that no key opens."""
    arguments = parser().parse_args(words)
    if arguments.action == "key":
        print(new_key())
        return 0
    replay, sealing = arguments.action == "replay", arguments.action == "reseal"
    if replay and not (arguments.task or arguments.host or arguments.all):
        raise UsageError("replay needs --task, --host or --all")
    try:
        options = config.read(arguments.config, store=arguments.store)
        seal = Seal(options.secret_keys)
        if sealing and not options.secret_keys:
            raise UsageError("reseal needs secret_keys: A2A_GRPC_SECRET_KEYS or a file with the new key and the former")
        store = lasting_store(options)
        if sealing:
            return asyncio.run(_reseal(store, seal))
        done = asyncio.run(_work(store, seal, arguments, replay))
    except (OSError, config.OptionError, StoreError) as fault:
        raise UsageError(str(fault)) from None
    if replay:
        print(f"{done} taken up again", file=sys.stderr)
    return int(replay and not done)


async def _reseal(store: Any, seal: Seal) -> int:
    await store.open_beside()
    try:
        done, lost = await reseal(store, seal)
    finally:
        await store.close()
    for one in lost:
        print(json.dumps({"taskId": one.task_id, "id": one.config_id}))
    told = f"; {len(lost)} opened by none of the secret_keys: the key that sealed them is still needed" if lost else ""
    print(f"{done} sealed anew{told}", file=sys.stderr)
    return int(bool(lost))


async def _work(store: Any, seal: Seal, arguments: argparse.Namespace, replay: bool) -> int:
    await store.open_beside()
    try:
        done = 0
        async for page in _found(store, seal, arguments, replay or arguments.given_up):
            for line, _ in page:
                print(json.dumps(line), flush=True)
            if replay:
                done += await store.revive([found.delivery.config for _, found in page])
        return done
    finally:
        await store.close()


async def _found(
    store: Store, seal: Seal, arguments: argparse.Namespace, given_up: bool
) -> AsyncIterator[list[tuple[dict[str, Any], Backlog]]]:
    """What was asked for, a page at a time, each with its line."""
    after = ("", "")
    while page := await store.backlog(after, PAGE, given_up):
        lines = [(webhook(found, seal, store.now_ms()), found) for found in page]
        yield [
            (line, found)
            for line, found in lines
            if arguments.task in (None, line["taskId"])
            and arguments.host in (None, line["host"], (line["host"] or "").rpartition(":")[0])
        ]
        last = page[-1].delivery.config
        after = last.task_id, last.config_id
