"""What the inspector lets one copy, pasted where it belongs: curl, buf curl, Python, and TypeScript by its compiler."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from a2a_grpc import auth
from a2a_grpc.server import Server
from tests.interop.conftest import made, output
from tests.test_inspector import WIRES, Shop, browser, choose, opened, options, say, text_of

__all__ = ["browser"]
SECRET = "s3cret-key"
TEXT = "it's \"me\" & $HOME `x` \\n ü ''' end"


async def copies(page: Any) -> list[tuple[str, dict[str, str]]]:
    """What each call there is can be copied as, the newest first, with its operation."""
    await page.get_by_role("link", name="Calls").click()
    await page.get_by_role("heading", name="Calls").wait_for()  # the view is drawn in one piece
    found = []
    for call in await page.locator("ol.calls > li").all():
        operation = await call.locator("summary code").inner_text()
        await call.locator("summary").click()
        texts = {}
        for button in await call.get_by_role("button").all():
            name = await button.inner_text()
            texts[name] = await text_of(page, await button.element_handle())
        found.append((operation, texts))
    return found


async def run(*command: str | Path) -> str:
    environment = {**os.environ, "CREDENTIALS": SECRET, "PATH": f"{made('BUF').parent}{os.pathsep}{os.environ['PATH']}"}
    ran = await asyncio.to_thread(
        subprocess.run, [*map(str, command)], env=environment, capture_output=True, timeout=120
    )
    assert ran.returncode == 0, ran
    return ran.stdout.decode()


@pytest.mark.requirement("SEC-05")
@pytest.mark.parametrize("wire", WIRES)
async def test_every_call_runs_again_as_whatever_it_was_copied(browser: Any, tmp_path: Path, wire: str) -> None:
    types = made("A2A_TS_FOLDER") / "node_modules"
    keys = auth.ApiKey({auth.hashed(SECRET): "alice"})
    async with (
        Server(Shop().agent, options(grpc="127.0.0.1:0", inspector="on"), authenticators=keys) as server,
        opened(browser, server.http_url, quiet=False) as page,
    ):
        await page.get_by_label("Credentials").select_option(label="key in a header")
        await page.get_by_label("Secret").fill(SECRET)
        await page.get_by_role("button", name="Connect").click()
        await page.get_by_role("button", name="Send").wait_for()
        await choose(page, wire)
        await (await say(page, f"x {TEXT}")).locator(".badge.completed").wait_for()
        await page.get_by_label("answer in one piece").check()
        await (await say(page, f"x {TEXT}")).locator(".badge.completed").wait_for()
        await page.get_by_role("link", name="Tasks").click()
        await page.get_by_text("1 to 2 of 2 tasks").wait_for()
        found = await copies(page)
        sent = ["ListTasks", "SendMessage", "SendStreamingMessage"]
        assert [operation for operation, _ in found] == [*sent, "Card", "Card"]  # read before the secret was there, too
        files = []
        for operation, texts in found:
            (tmp_path / f"{operation}.mts").write_text(texts["TypeScript"], "utf-8")
            files.append(tmp_path / f"{operation}.mts")
        (tmp_path / "node_modules").symlink_to(types)
        strict = (
            "--strict",
            "--target",
            "es2022",
            "--module",
            "nodenext",
            "--types",
            "node",
            "--skipLibCheck",
            "false",
        )
        await asyncio.to_thread(output, types / ".bin" / "tsc", *strict, *files, cwd=tmp_path)
        for operation, texts in found:
            assert SECRET not in "".join(texts.values())
            said = {
                "curl": await run("sh", "-c", texts["curl"]),
                "buf curl": await run("sh", "-c", texts["buf curl"]),
                "Python": await run(sys.executable, "-c", texts["Python"]),
                "TypeScript": await run("node", tmp_path / f"{operation}.mjs"),
            }
            if operation == "Card":
                assert said.pop("buf curl") == "", "which gRPC has no call for"
                assert [name for name, answer in said.items() if "supportedInterfaces" not in answer] == []
                continue
            for name, answer in said.items():
                old = wire.endswith("0.3") and name != "buf curl" and operation != "ListTasks"
                word = '"completed"' if old and "JSONRPC" in wire else "TASK_STATE_COMPLETED"
                assert word in answer, (operation, name, answer)
                assert "$HOME" in answer, (operation, name, answer)
