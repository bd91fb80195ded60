"""Secrets of webhooks: only who has the keys reads them, and nothing else changes."""

import logging
import sqlite3
from contextlib import closing
from pathlib import Path

import asyncpg
import pytest
from a2a_stubs import v1

from a2a_grpc.call import V1, Call
from a2a_grpc.config import OptionError, Options, read
from a2a_grpc.errors import UnavailableError
from a2a_grpc.push_secrets import Seal, Sealed, new_key
from a2a_grpc.testing import until
from scripts.services import free_port
from tests.receivers import PATIENCE, receiver
from tests.stores import postgres_url
from tests.test_push import hook, send, serving

HUSH = ("hush-path", "hush-query", "hush-token", "hush-credentials")
KEYS = (new_key(), new_key(), new_key())


def secret(url: str, name: str = "one") -> v1.TaskPushNotificationConfig:
    authentication = v1.AuthenticationInfo(scheme="Bearer", credentials="hush-credentials")
    return hook(f"{url}/hush-path?key=hush-query", name, token="hush-token", authentication=authentication)


async def shown(server: object, task_id: str) -> v1.TaskPushNotificationConfig:
    request = v1.GetTaskPushNotificationConfigRequest(task_id=task_id, id="one")
    found: v1.TaskPushNotificationConfig = await server.service.GetTaskPushNotificationConfig(  # type: ignore[attr-defined]
        request, Call("GetTaskPushNotificationConfig", version=V1)
    )
    return found


def on_disk(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.iterdir())


@pytest.mark.requirement("PUSH-23", "SEC-05", "PUSH-12", "PUSH-13")
async def test_no_byte_of_a_secret_is_in_the_file_and_the_receiver_gets_it_all_the_same(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 'a2a.db'}"
    async with serving(store, secret_keys=KEYS[:1]) as server, receiver() as there:
        task = await send(server, "ask", secret(there.url))
        await there.until(lambda: len(there.got) == 2)
        assert there.got[0].headers["authorization"] == "Bearer hush-credentials"
        assert there.got[0].headers["x-a2a-notification-token"] == "hush-token"
        assert there.got[0].path == "/hush-path"
        assert (await shown(server, task.id)).token == "hush-token"
        assert not [word for word in HUSH if word.encode() in on_disk(tmp_path)]
    assert not [word for word in HUSH if word.encode() in on_disk(tmp_path)]
    # The next key seals from now on, the former still opens; with neither nothing is told.
    async with serving(store, secret_keys=(KEYS[1], KEYS[0])) as server, receiver() as there:
        assert (await shown(server, task.id)).authentication.credentials == "hush-credentials"
        second = await send(server, "ask", secret(there.url))
    async with serving(store, secret_keys=KEYS[1:2]) as server:
        assert (await shown(server, second.id)).token == "hush-token"
        with pytest.raises(UnavailableError, match="config one"):
            await shown(server, task.id)
        request = v1.ListTaskPushNotificationConfigsRequest(task_id=task.id)
        with pytest.raises(UnavailableError, match="config one"):
            await server.service.ListTaskPushNotificationConfigs(
                request, Call("ListTaskPushNotificationConfigs", version=V1)
            )
    async with serving(store) as server:
        with pytest.raises(UnavailableError):
            await shown(server, second.id)


@pytest.mark.requirement("PUSH-23", "SEC-05")
async def test_no_secret_is_in_the_database() -> None:
    async with postgres_url() as url, serving(url, secret_keys=KEYS) as server, receiver() as there:
        task = await send(server, "ask", secret(there.url))
        connection = await asyncpg.connect(url)
        try:
            [kept] = await connection.fetch("SELECT config FROM push_configs")
        finally:
            await connection.close()
        assert kept["config"].startswith(b"\0") and not [word for word in HUSH if word.encode() in kept["config"]]
        assert (await shown(server, task.id)).token == "hush-token"


@pytest.mark.requirement("PUSH-23", "PUSH-15")
async def test_a_webhook_whose_key_is_lost_is_told_and_waits_for_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = f"sqlite:{tmp_path / 'a2a.db'}"
    url = f"http://127.0.0.1:{free_port()}"
    async with serving(store, secret_keys=KEYS[:1]) as server:
        await send(server, "ask", secret(url))
        await until(lambda: "failed and is tried again: ClientConnectorError" in caplog.text, PATIENCE)
    async with serving(store, secret_keys=KEYS[1:]) as server:
        await until(lambda: "opens this push notification config" in caplog.text, PATIENCE)
        [behind] = await server.store.backlog(("", ""), 9, False)
    async with serving(store, secret_keys=KEYS) as server:
        await server.store.revive([behind.delivery.config])
        async with receiver(port=int(url.rpartition(":")[2])) as there:
            await there.until(lambda: len(there.got) == 2)
    assert "hush" not in caplog.text


@pytest.mark.requirement("PUSH-23")
async def test_what_was_kept_before_there_was_a_key_is_read_and_sealed_when_it_is_made_anew(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = f"sqlite:{tmp_path / 'a2a.db'}"
    with caplog.at_level(logging.WARNING):
        async with serving(store) as server:
            task = await send(server, "ask", secret("http://127.0.0.1:9"))
    assert caplog.text.count("secret_keys") == 1
    caplog.clear()
    async with serving(store, secret_keys=KEYS) as server:
        assert (await shown(server, task.id)).token == "hush-token"
        await send(server, "ask", secret("http://127.0.0.1:9"), task_id=task.id)
    assert "secret_keys" not in caplog.text
    with closing(sqlite3.connect(tmp_path / "a2a.db")) as connection:
        [(kept,)] = connection.execute("SELECT config FROM push_configs").fetchall()
    assert kept.startswith(b"\0")


@pytest.mark.requirement("PUSH-23")
def test_a_sealed_config_opens_in_its_own_place_only_and_no_byte_of_it_can_be_changed() -> None:
    seal = Seal(KEYS[:1])
    kept = seal.close(b"config", "task", "one")
    assert seal.open(kept, "task", "one") == b"config"
    assert seal.close(b"config", "task", "one") != kept
    broken = [kept[:at] + bytes([kept[at] ^ 1]) + kept[at + 1 :] for at in range(1, len(kept))]
    for wrong, task_id, config_id in [(kept, "task", "two"), (kept, "tas", "k one"), (b"\0", "task", "one")] + [
        (each, "task", "one") for each in (*broken, kept[:-1], kept[:9])
    ]:
        with pytest.raises(Sealed):
            seal.open(wrong, task_id, config_id)


@pytest.mark.parametrize("key", ["", "short", "!" * 43, KEYS[0] + "AAAA"], ids=["none", "short", "no base64", "long"])
@pytest.mark.requirement("SEC-05")
def test_a_key_that_is_none_is_refused_without_being_shown(key: str) -> None:
    with pytest.raises(OptionError, match="secret_keys") as told:
        Seal((key,))
    assert not key or key not in str(told.value)


@pytest.mark.requirement("SEC-05")
def test_keys_come_from_the_environment_and_are_in_no_repr() -> None:
    options = read(environment={"A2A_GRPC_SECRET_KEYS": f"{KEYS[0]}, {KEYS[1]}"})
    assert options.secret_keys == KEYS[:2] and KEYS[0] not in repr(options)
    with pytest.raises(OptionError, match="secret_keys") as told:
        Options(secret_keys=KEYS[0])  # type: ignore[arg-type]
    assert KEYS[0] not in str(told.value)
