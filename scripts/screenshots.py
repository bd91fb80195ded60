"""Takes the pictures of the inspector that docs/inspector.md shows. Needs Chromium; run by hand after a change.

Laws of this file: what is shown is the demo agent, as a newcomer sees it; one picture a view.
"""

import asyncio
import shutil
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "generated")]

from playwright.async_api import async_playwright  # noqa: E402

from a2a_grpc import demo  # noqa: E402
from a2a_grpc.config import Options  # noqa: E402
from a2a_grpc.server import Server  # noqa: E402

SIZE = {"width": 900, "height": 680}


async def say(page: Any, text: str, until: str) -> Any:
    """Send a text and wait until the turn shows what a selector finds."""
    await page.fill("#message", text)
    await page.keyboard.press("Enter")
    turn = page.locator("li.turn").last
    await turn.locator(until).wait_for()
    return turn


async def main() -> None:
    """Write docs/inspector-*.png."""
    options = Options(grpc="", http="127.0.0.1:0", store="memory:")
    async with Server(demo.agent, options) as server, async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = await browser.new_page(viewport=SIZE, color_scheme="light")
        await page.goto(f"{server.http_url}/inspector")
        await page.wait_for_selector("#message")
        await say(page, "Where is my order?", "form.answer")
        await page.locator("form.answer input").fill("1001")
        await page.locator("form.answer button").click()
        first = page.locator("li.turn").last
        await first.locator(".badge.completed").wait_for()
        await page.screenshot(path=ROOT / "docs" / "inspector-chat.png")
        await first.get_by_role("link", name="Details").click()
        await page.locator(".moment").last.wait_for()
        await page.locator(".badge.completed").wait_for()
        await page.screenshot(path=ROOT / "docs" / "inspector-task.png")
        await browser.close()


asyncio.run(main())
