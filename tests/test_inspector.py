"""The inspector in a real browser: what a web developer sees and does on the page, on every wire it speaks."""

import asyncio
import copy
import functools
import operator
import os
import re
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from a2a_stubs import v1

from a2a_grpc import auth, demo
from a2a_grpc.agent import Agent, TaskHandle
from a2a_grpc.call import V1
from a2a_grpc.cards import WELL_KNOWN
from a2a_grpc.client import Client
from a2a_grpc.config import Options
from a2a_grpc.doctor import empty_lists
from a2a_grpc.methods import METHODS, missing
from a2a_grpc.server import Server
from a2a_grpc.v03_cards import card_up
from a2a_grpc.v03_names import JSONRPC_NAMES
from tests.turns import message

CHROMIUM = os.environ.get("A2A_CHROMIUM") or shutil.which("chromium") or ""
AXE = Path(os.environ.get("A2A_AXE_MODULES", "")) / "axe-core" / "axe.min.js"
PATIENCE = 25_000
WIRES = ["JSONRPC 1.0", "HTTP+JSON 1.0", "JSONRPC 0.3", "HTTP+JSON 0.3"]
TRIP = {
    "type": "object",
    "required": ["city", "nights"],
    "properties": {"city": {"type": "string"}, "nights": {"type": "integer"}, "meals": {"type": "boolean"}},
}
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c6360f8cf500f0003860180347d6b620000000049454e44ae426082"
)
EVIL = "<img src=x onerror=document.title='owned'> [click](javascript:document.title='owned') <script>1</script>"


class Shop:
    """An agent that answers in every form a page may have to show; `go` lets it finish."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.agent = Agent(name="Shop", description="Answers in every form.", version="2.0", skills=[])
        self.agent.handle(self.work)

    async def work(self, task: TaskHandle) -> Any:
        word, _, rest = task.text.partition(" ")
        if task.answer is not None:
            await task.complete(f"booked {task.answer!r}")
        elif word == "ask":
            await task.ask("Which trip?", schema=TRIP)
        elif word == "forms":
            await task.add_artifact("# Title\n\n- *one*\n- `two`", name="report")
            await task.add_artifact({"deep": [1, {"x": None}]}, name="numbers")
            await task.add_artifact(v1.Part(raw=PIXEL, media_type="image/png", filename="dot.png"), name="dot")
        elif word == "held":
            async with task.artifact(name="steps") as steps:
                await steps.write("before ")
                await self.go.wait()
                await steps.write("after")
        elif word == "evil":
            return EVIL
        else:
            return f"said {rest}"
        return None


def options(**more: Any) -> Options:
    return Options(**{"grpc": "", "http": "127.0.0.1:0", "store": "memory:", "grace": 0.0, **more})


@pytest.fixture
async def browser() -> AsyncIterator[Any]:
    if not CHROMIUM:
        pytest.skip("needs chromium")
    playwright = pytest.importorskip("playwright.async_api", reason="needs playwright")
    async with playwright.async_playwright() as started:
        made = await started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield made
        await made.close()


@asynccontextmanager
async def opened(
    browser: Any, url: str, *, quiet: bool = True, shows: str = "#message", **more: Any
) -> AsyncIterator[Any]:
    """The page at an address. quiet: nothing may be said on its console, and nothing fail. shows: what it shows."""
    context = await browser.new_context(permissions=["clipboard-read", "clipboard-write"], **more)
    context.set_default_timeout(PATIENCE)
    page, said = await context.new_page(), []
    page.on("console", lambda line: said.append(line.text) if line.type in ("error", "warning") else None)
    page.on("pageerror", lambda fault: said.append(str(fault)))
    await page.goto(f"{url}/inspector")
    await page.wait_for_selector(shows)
    yield page
    await context.close()
    assert not (quiet and said), said


@pytest.fixture
def shop() -> Shop:
    return Shop()


@pytest.fixture
async def server(shop: Shop) -> AsyncIterator[Server]:
    async with Server(shop.agent, options(push_notifications=True, push_allow=("127.0.0.1",))) as started:
        yield started


async def choose(page: Any, wire: str) -> None:
    await page.select_option("#wire", label=wire)


async def say(page: Any, text: str) -> Any:
    """Send a text; the turn that answers it, once it is there."""
    await page.wait_for_selector("#message")
    turns = page.locator("li.turn")
    before = await turns.count()
    await page.fill("#message", text)
    await page.keyboard.press("Enter")
    await turns.nth(before).wait_for(state="attached")
    return turns.last


async def shows(place: Any, text: str) -> None:
    await place.get_by_text(text).first.wait_for()


@pytest.mark.parametrize("wire", WIRES)
async def test_a_message_is_answered_and_a_pause_is_answered_by_a_form(browser: Any, server: Server, wire: str) -> None:
    async with opened(browser, server.http_url) as page:
        await choose(page, wire)
        turn = await say(page, "hello there")
        await shows(turn, "said there")
        await turn.locator(".badge.completed").wait_for()
        turn = await say(page, "ask me")
        await turn.get_by_label("city").fill("Rome")
        await turn.get_by_label("nights").fill("3")
        await turn.get_by_label("meals").check()
        await turn.get_by_role("button", name="Answer").click()
        answered = page.locator("li.turn").last
        await shows(answered, "'city': 'Rome'")
        assert "'nights': 3" in await answered.inner_text() and "'meals': True" in await answered.inner_text()


@pytest.mark.requirement("SUB-03", "SSE-06")
@pytest.mark.parametrize("wire", WIRES)
async def test_a_stream_is_stopped_and_taken_up_again_without_gap_or_double(
    browser: Any, server: Server, shop: Shop, wire: str
) -> None:
    async with opened(browser, server.http_url) as page:
        await choose(page, wire)
        turn = await say(page, "held")
        await shows(turn, "before")
        await turn.get_by_role("button", name="Stop reading").click()
        shop.go.set()
        await turn.get_by_role("button", name="Resume").click()
        await turn.locator(".badge.completed").wait_for()
        await shows(turn, "after")  # which is drawn a moment later than the badge
        assert (await turn.locator(".artifact .text").inner_text()).split() == ["before", "after"]


async def test_artifacts_are_shown_by_what_they_are(browser: Any, server: Server) -> None:
    async with opened(browser, server.http_url) as page:
        for wire in WIRES:
            await choose(page, wire)
            turn = await say(page, "forms")
            await turn.locator(".badge.completed").wait_for()
            assert await turn.locator("li em").inner_text() == "one" and await turn.locator("li code").count() == 1
            assert "deep" in await turn.locator(".data").inner_text()
            size = await turn.locator("img").evaluate("image => image.decode().then(() => image.naturalWidth)")
            assert size == 1 and await turn.locator("a[download='dot.png']").count() == 1


@pytest.mark.requirement("SEC-05")
async def test_nothing_an_agent_says_becomes_part_of_the_page(browser: Any, server: Server) -> None:
    async with opened(browser, server.http_url) as page:
        turn = await say(page, "evil")
        await shows(turn, "onerror")
        assert await turn.locator(".artifact :is(img, script, a)").count() == 0
        assert await page.title() != "owned"


async def test_a_task_is_cancelled_and_its_time_line_tells_how(browser: Any, server: Server) -> None:
    async with opened(browser, server.http_url) as page:
        turn = await say(page, "held")
        await shows(turn, "before")
        await turn.get_by_role("button", name="Cancel task").click()
        await turn.locator(".badge.canceled").wait_for()
        await turn.get_by_role("link", name="Details").click()
        line = page.get_by_role("list", name="Time line")
        await line.get_by_text("canceled").wait_for()
        kinds = [text.split()[1] for text in await line.locator(".moment > details > summary").all_inner_texts()]
        assert kinds[0] == "task" and kinds[-1] == "status" and "artifact" in kinds


@pytest.mark.requirement("LIST-05")
async def test_five_hundred_tasks_are_paged_and_filtered(browser: Any, server: Server) -> None:
    async with await Client.connect(server.http_url) as client:
        for start in range(0, 500, 50):
            await asyncio.gather(
                *(client.send(message(f"x {start + index}", message_id=str(start + index))) for index in range(50))
            )
        waiting = (await client.send(message("ask"))).task
    async with opened(browser, server.http_url) as page:
        await page.get_by_role("link", name="Tasks").click()
        await page.get_by_text("1 to 50 of 501 tasks").wait_for()
        seen = set(await page.locator("tbody a").all_inner_texts())
        for first in range(51, 502, 50):
            await page.get_by_role("button", name="Next page").click()
            await page.get_by_text(f"{first} to").wait_for()
            seen |= set(await page.locator("tbody a").all_inner_texts())
        assert len(seen) == 501 and await page.get_by_role("button", name="Next page").is_disabled()
        await page.get_by_role("button", name="Earlier page").click()
        await page.get_by_text("451 to 500").wait_for()
        await page.get_by_label("State").select_option(label="input required")
        await page.get_by_role("button", name="Show").click()
        await page.get_by_text("1 to 1 of 1 tasks").wait_for()
        assert await page.locator("tbody a").inner_text() == waiting.id


@pytest.mark.requirement("ERR-06")
@pytest.mark.parametrize("wire", WIRES)
async def test_errors_are_shown_as_the_server_said_them(browser: Any, server: Server, wire: str) -> None:
    async with opened(browser, server.http_url, quiet=False) as page:
        await choose(page, wire)
        await page.goto(f"{server.http_url}/inspector/#tasks/nowhere")
        await page.get_by_role("alert").get_by_text("TASK_NOT_FOUND").wait_for()


async def test_push_configs_are_added_and_deleted(browser: Any, server: Server) -> None:
    async with opened(browser, server.http_url, quiet=False) as page:
        for wire in WIRES:
            await choose(page, wire)
            await page.get_by_role("link", name="Chat").click()
            turn = await say(page, "held")
            await shows(turn, "before")
            await turn.get_by_role("link", name="Details").click()
            form = page.get_by_role("form", name="New config")
            await form.get_by_label("Webhook").fill("http://10.0.0.1/hook")
            await form.get_by_role("button").click()
            await page.get_by_role("alert").get_by_text("url").wait_for()
            await form.get_by_label("Webhook").fill("http://127.0.0.1:9/hook")
            await form.get_by_role("button").click()
            await page.locator(".configs li").get_by_text("http://127.0.0.1:9/hook").wait_for()
            await page.locator(".configs button").click()
            await page.locator(".configs:empty").wait_for(state="attached")


async def text_of(page: Any, button: Any) -> str:
    """What a button copies. That it is told is watched from before the press: the word goes again after a moment."""
    await button.evaluate(
        """button => { button.told = new Promise((done) => new MutationObserver(
            () => button.textContent === 'Copied' && done()).observe(button, { childList: true })); }"""
    )
    await button.click()
    await button.evaluate("button => button.told")
    text: str = await page.evaluate("navigator.clipboard.readText()")
    return text


async def copied(page: Any, name: str) -> str:
    """What the button of the newest send gives."""
    call = page.locator("ol.calls > li").filter(has_text="SendMessage").first
    if await call.locator("details[open]").count() == 0:
        await call.locator("summary").first.click()
    return await text_of(page, await call.get_by_role("button", name=name, exact=True).element_handle())


@pytest.mark.requirement("SEC-05")
async def test_calls_can_be_pasted_into_a_shell_and_python_and_hold_no_secret(browser: Any, shop: Shop) -> None:
    keys = auth.ApiKey({auth.hashed("s3cret-key"): "alice"})
    async with (
        Server(shop.agent, options(inspector="on"), authenticators=keys) as server,
        opened(browser, server.http_url, quiet=False) as page,
    ):
        await page.get_by_label("Credentials").select_option(label="key in a header")
        await page.get_by_label("Secret").fill("s3cret-key")
        await page.get_by_role("button", name="Connect").click()
        await page.get_by_label("answer in one piece").check()
        await shows(await say(page, 'it\'s "me" & $HOME'), "said")
        await page.get_by_role("link", name="Calls").click()
        environment = {**os.environ, "CREDENTIALS": "s3cret-key"}
        for name, command in {"curl": ["sh", "-c"], "Python": [sys.executable, "-c"]}.items():
            program = await copied(page, name)
            assert "s3cret-key" not in program
            ran = await asyncio.to_thread(
                subprocess.run, [*command, program], env=environment, capture_output=True, timeout=60
            )
            assert b"TASK_STATE_COMPLETED" in ran.stdout, ran
        for name, word in {"buf curl": "no gRPC interface", "TypeScript": "fetch("}.items():
            assert word in await copied(page, name)
        assert "s3cret-key" not in await page.content()
        assert await page.evaluate("localStorage.length + sessionStorage.length + document.cookie.length") == 0


async def test_another_server_is_looked_at_where_it_allows_that(browser: Any, server: Server, shop: Shop) -> None:
    async with (
        Server(Shop().agent, options(cors_origins=(server.http_url,))) as open_one,
        Server(Shop().agent, options()) as closed_one,
        opened(browser, server.http_url, quiet=False) as page,
    ):
        for other, word in ((open_one, ""), (closed_one, "cannot be reached from this page")):
            await page.get_by_label("Address").fill(other.http_url)
            await page.get_by_role("button", name="Connect").click()
            if word:
                await page.get_by_role("alert").get_by_text(word).wait_for()
            else:
                await shows(await say(page, "hello you"), "said you")
                assert other.engine.store is not server.engine.store


async def test_nothing_can_be_said_to_the_server_that_is_being_left(browser: Any, server: Server) -> None:
    asked, go = asyncio.Event(), asyncio.Event()

    async def slow(route: Any) -> None:
        asked.set()
        await go.wait()
        await route.continue_()

    async with (
        Server(Shop().agent, options(cors_origins=(server.http_url,))) as other,
        opened(browser, server.http_url) as page,
    ):
        await page.route(f"{other.http_url}/**", slow)
        await page.get_by_label("Address").fill(other.http_url)
        await page.get_by_role("button", name="Connect").click()
        await asyncio.wait_for(asked.wait(), PATIENCE / 1000)
        await shows(page, "Connecting")
        assert not await page.locator("#message").count()
        go.set()
        await shows(await say(page, "hello you"), "said you")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
async def test_every_view_is_fit_for_everybody(browser: Any, server: Server, scheme: str, width: int) -> None:
    if not AXE.exists():
        pytest.skip("needs axe-core (make interop-setup)")
    size = {"width": width, "height": 800}
    async with opened(browser, server.http_url, color_scheme=scheme, viewport=size) as page:
        await (await say(page, "forms")).locator(".badge.completed").wait_for()
        turn = await say(page, "ask")
        await turn.get_by_role("button", name="Answer").wait_for()
        task = (await turn.get_by_role("link", name="Details").get_attribute("href")).removeprefix("#")
        await page.evaluate(AXE.read_text())
        views: dict[str, Callable[[], Awaitable[Any]]] = {
            "chat": turn.wait_for,
            "tasks": page.locator("tbody tr").first.wait_for,
            "card": page.get_by_text("As it was sent").wait_for,
            "calls": page.locator("ol.calls summary").first.wait_for,
            task: page.get_by_role("list", name="Time line").locator("li").first.wait_for,
        }
        for view, there in views.items():
            await page.evaluate(f"location.hash = '#{view}'")
            await there()
            found = await page.evaluate("axe.run().then(({violations}) => violations)")
            assert not found, [(each["id"], [node["html"] for node in each["nodes"]][:3]) for each in found]
            wider = await page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert wider <= 0, (view, wider)


async def test_the_page_knows_operations_as_the_server_does(browser: Any, server: Server) -> None:
    async with opened(browser, server.http_url) as page:
        rows = await page.evaluate("import('./operations.js').then(({ROWS}) => ROWS)")
    for operation, (old, verb, path, streams) in rows.items():
        known = METHODS[V1][operation]
        assert old == JSONRPC_NAMES.get(operation) and streams is known.streaming
        route = known.routes[0]
        plain = re.sub("_(.)", lambda letter: letter[1].upper(), route.template.replace("=*", ""))
        assert (verb, path) == (route.verb, plain), operation


async def test_the_page_misses_in_a_card_what_the_doctor_misses(browser: Any, server: Server) -> None:
    async with (
        Server(demo.agent, options()) as other,
        aiohttp.ClientSession(other.http_url) as session,
        session.get(WELL_KNOWN, headers={"A2A-Version": V1}) as reply,
    ):
        good = await reply.json()
    paths = [(name,) for name in good]
    paths += [("skills", 0, name) for name in good["skills"][0]]
    paths += [("supportedInterfaces", 0, name) for name in good["supportedInterfaces"][0]]
    bad = [good]
    for *way, name in paths:
        bad.append(copy.deepcopy(good))
        del functools.reduce(operator.getitem, way, bad[-1])[name]
    async with opened(browser, server.http_url) as page:
        told = await page.evaluate("cards => import('./card.js').then(({problems}) => cards.map(problems))", bad)
    for path, card, lines in zip([(), *paths], bad, told, strict=True):
        wrong = [each.field for each in missing(card_up(card))] + [*empty_lists(card_up(card))]
        doctor = {re.split(r"[.\[]", each)[0] for each in wrong}
        assert doctor <= {where for where, _ in lines}, path
        assert doctor or not lines or path[-1] == "protocolVersion", path  # which is guessed where it is not told
    assert sum(map(bool, told)) >= 14, "cards without what they must have"


@pytest.mark.requirement("SEC-05")
async def test_the_page_is_served_with_a_strict_policy_and_only_where_it_is_wanted(shop: Shop) -> None:
    keys = auth.ApiKey({auth.hashed("key"): "alice"})
    cases: list[tuple[Server, int]] = [
        (Server(shop.agent, options()), 200),
        (Server(shop.agent, options(inspector="off")), 404),
        (Server(shop.agent, options(), authenticators=keys), 401),
        (Server(shop.agent, options(inspector="on"), authenticators=keys), 200),
        (Server({"one": shop.agent, "two": Shop().agent}, options()), 200),
    ]
    async with aiohttp.ClientSession() as session:
        for server, status in cases:
            async with server:
                for prefix in ("", "/one") if len(server.agents) > 1 else ("",):
                    place = f"{server.http_url}{prefix}/inspector"
                    async with session.get(place) as reply:
                        assert reply.status == status
                    if status == 200:
                        await check_page(session, place, reply)


async def check_page(session: aiohttp.ClientSession, place: str, reply: aiohttp.ClientResponse) -> None:
    """Redirected to its folder; a policy without outside sources; asked again, it is unchanged; not to be posted to."""
    assert reply.url.path.endswith("/inspector/") and reply.history[0].status == 308
    policy = reply.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "script-src 'self'" in policy
    async with session.get(f"{place}/app.js", headers={"If-None-Match": "x"}) as again:
        assert again.status == 200 and again.content_type == "text/javascript"
    async with session.get(f"{place}/app.js", headers={"If-None-Match": again.headers["etag"]}) as again:
        assert again.status == 304
    async with session.get(f"{place}/app.js", headers={"If-None-Match": f'"x", W/{again.headers["etag"]}'}) as again:
        assert again.status == 304
    async with session.post(f"{place}/app.js") as refused:
        assert (refused.status, refused.headers["allow"]) == (405, "GET, HEAD")
