"""The inspector as different people use it: by keyboard alone, with secrets, with files, with forms of every kind."""

import asyncio
import base64
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from a2a_stubs import v1

from a2a_grpc import auth
from a2a_grpc.agent import Agent, TaskHandle
from a2a_grpc.client import Client
from a2a_grpc.server import Server
from tests.test_inspector import PATIENCE, WIRES, browser, choose, opened, options, say, shows
from tests.turns import message

__all__ = ["browser"]
SECRET, ANY = "s3cret-key", ["*/*"]
FORM = {
    "type": "object",
    "required": ["size", "where"],
    "properties": {
        "size": {"enum": ["S", "M", "L"], "default": "M"},
        "speed": {"oneOf": [{"const": 1, "title": "slow"}, {"const": 9, "title": "fast"}]},
        "where": {"type": "object", "title": "Place"},
        "code": {"type": "string", "pattern": "[0-9]"},
    },
}


class Desk:
    """An agent that talks until it may stop, asks with a form, and gives files back. `more` lets it say one word."""

    def __init__(self) -> None:
        self.more = asyncio.Semaphore(0)
        self.agent = Agent(name="Desk", description="Is asked by all.", version="1", skills=[], default_input_modes=ANY)
        self.agent.handle(self.work)

    async def work(self, task: TaskHandle) -> Any:
        if task.answer is not None:
            return f"heard {task.answer!r}"
        if task.text == "talk":
            async with task.artifact(name="talk") as talk:
                for number in range(20):
                    await self.more.acquire()
                    await talk.write(f"word{number} ")
            return None
        if task.text == "ask":
            return await task.ask("What?", schema={"type": "string", "title": "Name"})
        if task.text == "form":
            return await task.ask("Which?", schema=FORM)
        for file in (part for part in task.parts if part.WhichOneof("content") == "raw"):
            await task.add_artifact(file, name="copy")
        return f"said {task.text} in {task.context_id}"


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
async def server(desk: Desk) -> AsyncIterator[Server]:
    async with Server(desk.agent, options()) as started:
        yield started


async def tab_to(page: Any, place: Any, key: str = "Tab") -> None:
    """Press a key until something has the focus, and can be seen to have it."""
    for _ in range(80):
        await page.keyboard.press(key)
        if await place.evaluate("element => element === document.activeElement"):
            width = await place.evaluate("element => parseFloat(getComputedStyle(element).outlineWidth)")
            assert width >= 2, "nobody sees where the focus is"
            return
    raise AssertionError(f"no way to {place} by keyboard")


async def test_everything_can_be_done_by_keyboard(browser: Any, server: Server, desk: Desk) -> None:
    async with opened(browser, server.http_url) as page:
        await tab_to(page, page.get_by_role("link", name="Skip to content"))
        await tab_to(page, page.get_by_label("Wire"))
        await page.keyboard.press("ArrowDown")
        assert await page.locator("#wire option:checked").inner_text() == "HTTP+JSON 1.0"
        await tab_to(page, page.locator("#message"))
        await page.keyboard.type("ask")
        await page.keyboard.press("Enter")
        name = page.locator("li.turn").last.get_by_label("Name")
        await name.wait_for()
        await tab_to(page, name, "Shift+Tab")
        await page.keyboard.type("Ada")
        await page.keyboard.press("Enter")
        await shows(page.locator("li.turn").last, "heard 'Ada'")
        await tab_to(page, page.locator("#message"))
        await page.keyboard.type("talk")
        await page.keyboard.press("Enter")
        desk.more.release()
        turn = page.locator("li.turn").last
        await shows(turn, "word0")
        await tab_to(page, turn.get_by_role("button", name="Stop reading"), "Shift+Tab")
        for number in range(1, 5):  # the button is still the one that has the focus, whatever comes
            desk.more.release()
            await shows(turn, f"word{number}")
        await page.keyboard.press("Enter")
        await turn.get_by_role("button", name="Resume").wait_for()
        await tab_to(page, page.get_by_role("link", name="Tasks"))
        await page.keyboard.press("Enter")
        await page.get_by_text("1 to 2 of 2 tasks").wait_for()
        await tab_to(page, page.locator("tbody a").first)
        await page.keyboard.press("Enter")
        line = page.get_by_role("list", name="Time line")
        await tab_to(page, line.locator("summary").first)
        await page.keyboard.press("Enter")
        await line.locator("details[open] .inside").first.wait_for()
        await tab_to(page, page.get_by_role("button", name="Cancel task"), "Shift+Tab")
        await page.keyboard.press("Enter")
        await page.locator("h2 .badge.canceled").wait_for()


async def test_the_way_past_the_header_leaves_the_view_as_it_is(browser: Any, server: Server) -> None:
    async with opened(browser, server.http_url) as page:
        await page.get_by_role("link", name="Card").click()
        await page.get_by_text("As it was sent").wait_for()
        skip = page.get_by_role("link", name="Skip to content")
        await tab_to(page, skip, "Shift+Tab")
        await page.keyboard.press("Enter")
        await shows(page, "As it was sent")
        assert await page.evaluate("document.activeElement.id") == "view"
        await tab_to(page, page.get_by_role("region", name="Interfaces"))


async def test_who_reads_further_up_is_left_there(browser: Any, server: Server, desk: Desk) -> None:
    size = {"width": 800, "height": 500}
    async with opened(browser, server.http_url, viewport=size) as page:
        for number in range(12):
            await shows(await say(page, f"line {number}"), f"said line {number}")
        place = page.get_by_role("log")
        below = "element => element.scrollHeight - element.scrollTop - element.clientHeight"
        assert await place.evaluate(below) < 5
        turn = await say(page, "talk")
        await place.evaluate("element => { element.scrollTop = 0; }")
        desk.more.release()
        await shows(turn, "word0")
        assert await place.evaluate("element => element.scrollTop") == 0


async def test_a_form_refuses_what_is_no_json_and_knows_choices(browser: Any, server: Server) -> None:
    async with opened(browser, server.http_url) as page:
        turn = await say(page, "form")
        answer, place = turn.get_by_role("button", name="Answer"), turn.get_by_label("Place")
        await place.fill("{oops")
        await answer.click()
        assert await place.evaluate("element => element.validationMessage") == "This is not JSON."
        assert await page.locator("li.turn").count() == 1
        await place.fill('{"city": "Rome"}')
        await turn.get_by_label("speed").select_option(label="fast")
        await turn.get_by_label("code").fill("a")
        await answer.click()
        assert await page.locator("li.turn").count() == 1
        await turn.get_by_label("code").fill("a1b")
        await answer.click()
        heard = await (await ended(page)).locator(".artifact").inner_text()
    for word in ("'size': 'M'", "'speed': 9", "'where': {'city': 'Rome'}", "'code': 'a1b'"):
        assert word in heard, heard


async def ended(page: Any) -> Any:
    turn = page.locator("li.turn").last
    await turn.locator(".badge.completed").wait_for()
    return turn


@pytest.mark.parametrize("wire", WIRES)
async def test_files_go_there_and_come_back(browser: Any, server: Server, tmp_path: Path, wire: str) -> None:
    data = bytes(range(256)) * 300
    (tmp_path / "some.bin").write_bytes(data)
    async with opened(browser, server.http_url) as page:
        await choose(page, wire)
        await page.get_by_label("Files").set_input_files(tmp_path / "some.bin")
        await say(page, "take this")
        link = (await ended(page)).locator("a[download='some.bin']")
        async with page.expect_download() as loading:
            await link.click()
        assert (await asyncio.to_thread(Path(await (await loading.value).path()).read_bytes)) == data


async def test_a_conversation_goes_on_until_a_new_one_is_begun(browser: Any, server: Server) -> None:
    async with opened(browser, server.http_url) as page:
        contexts = []
        for text in ("one", "two"):
            await say(page, text)
            contexts.append((await (await ended(page)).locator(".artifact").inner_text()).split()[-1])
        await page.get_by_role("button", name="New conversation").click()
        assert not await page.locator("li.turn").count()
        await say(page, "three")
        contexts.append((await (await ended(page)).locator(".artifact").inner_text()).split()[-1])
        assert contexts[0] == contexts[1] != contexts[2]
        await page.get_by_role("link", name="Tasks").click()
        await page.get_by_label("Context").fill(contexts[0])
        await page.get_by_role("button", name="Show").click()
        await page.get_by_text("1 to 2 of 2 tasks").wait_for()


@pytest.mark.requirement("SEC-05")
async def test_each_call_is_shown_as_it_went_over_the_wire_without_secrets(browser: Any, desk: Desk) -> None:
    keys = auth.ApiKey({auth.hashed(SECRET): "alice"})
    async with (
        Server(desk.agent, options(inspector="on"), authenticators=keys) as server,
        opened(browser, server.http_url, quiet=False) as page,
    ):
        await page.get_by_role("alert").get_by_text("401").or_(page.locator("#message")).first.wait_for()
        await page.get_by_label("Credentials").select_option(label="key in a header")
        await page.get_by_label("Secret").fill(SECRET)
        await page.get_by_role("button", name="Connect").click()
        await say(page, "hello you")
        await ended(page)
        await page.get_by_role("link", name="Calls").click()
        await page.locator("ol.calls summary").first.click()
        request, answer = await page.locator("ol.calls > li").first.locator("pre").all_inner_texts()
        assert request.startswith(f"POST {server.http_url}/") and "A2A-Version: 1.0" in request
        assert '"method": "SendStreamingMessage"' in request and '"text": "hello you"' in request
        assert "X-API-Key: (hidden)" in request and "TASK_STATE_COMPLETED" in answer and answer.startswith("id: ")
        assert SECRET not in await page.content()
        await page.reload()
        await page.locator("#secret").wait_for(state="attached")
        assert await page.locator("#secret").input_value() == ""


@pytest.mark.requirement("SEC-05")
async def test_the_call_of_the_card_is_among_the_calls_also_when_it_fails(browser: Any, desk: Desk) -> None:
    keys = auth.ApiKey({auth.hashed(SECRET): "alice"})
    async with (
        Server(desk.agent, options(inspector="on", public_card=False), authenticators=keys) as server,
        opened(browser, server.http_url, quiet=False, shows="[role=alert]:not(:empty)") as page,
    ):
        await page.get_by_role("link", name="Calls").click()
        refused = page.locator("ol.calls > li")
        await refused.locator("summary").get_by_text("401").wait_for()
        await refused.locator("summary").click()
        request, answer = await refused.locator("pre").all_inner_texts()
        assert request.startswith(f"GET {server.http_url}/.well-known/agent-card.json") and "UNAUTHENTICATED" in answer
        await page.get_by_label("Credentials").select_option(label="key in a header")
        await page.get_by_label("Secret").fill(SECRET)
        await page.get_by_role("button", name="Connect").click()
        given = page.locator("ol.calls > li").first
        await given.locator("summary").get_by_text("200").wait_for()
        await given.locator("summary").click()
        request, answer = await given.locator("pre").all_inner_texts()
        assert "X-API-Key: (hidden)" in request and '"name": "Desk"' in answer
        assert SECRET not in await page.content() and await page.locator("ol.calls > li").count() == 2


@pytest.mark.requirement("SEC-05")
async def test_a_secret_is_for_the_server_that_it_was_typed_for(browser: Any, desk: Desk) -> None:
    keys = auth.ApiKey({auth.hashed(SECRET): "alice", auth.hashed("another"): "bob"})
    heard: list[str | None] = []
    async with (
        Server(desk.agent, options(inspector="on"), authenticators=keys) as server,
        Server(Desk().agent, options(cors_origins=(server.http_url,)), authenticators=keys) as other,
        opened(browser, server.http_url, quiet=False) as page,
    ):

        def note(request: Any) -> None:
            if request.url.startswith(other.http_url) and request.method != "OPTIONS":
                heard.append(request.headers.get("x-api-key"))

        page.on("request", note)
        await page.get_by_label("Credentials").select_option(label="key in a header")
        await page.get_by_label("Secret").fill(SECRET)
        await page.get_by_role("button", name="Connect").click()
        await shows(await say(page, "hello"), "said hello")
        await page.get_by_label("Address").fill(other.http_url)
        await page.get_by_role("button", name="Connect").click()
        await page.get_by_role("button", name="Send").wait_for()
        await say(page, "hello")
        await page.get_by_role("alert").get_by_text("UNAUTHENTICATED").wait_for()
        assert heard and not any(heard) and await page.get_by_label("Secret").input_value() == ""
        await page.get_by_label("Secret").fill("another")
        await page.get_by_role("button", name="Connect").click()
        await shows(await say(page, "hello"), "said hello")
        assert set(heard) == {None, "another"}


@pytest.mark.parametrize(
    ("scheme", "secret", "name", "value"),
    [
        ("bearer token", "abc", "authorization", "Bearer abc"),
        ("user:password", "zoë:pw", "authorization", f"Basic {base64.b64encode('zoë:pw'.encode()).decode()}"),
        ("key in a header", "k", "x-mine", "k"),
    ],
)
async def test_credentials_are_shown_as_they_are_to_be(
    browser: Any, server: Server, scheme: str, secret: str, name: str, value: str
) -> None:
    async with opened(browser, server.http_url) as page:
        await page.get_by_label("Credentials").select_option(label=scheme)
        if name == "x-mine":
            await page.get_by_role("textbox", name="Header").fill(name)
        await page.get_by_label("Secret").fill(secret)
        assert await page.get_by_label("Secret").get_attribute("type") == "password"
        async with page.expect_request("**/agent-card.json") as asked:
            await page.get_by_role("button", name="Connect").click()
        assert (await (await asked.value).all_headers())[name] == value
        await say(page, "hello")
        await ended(page)


async def test_a_time_line_follows_its_task_while_it_goes_on(browser: Any, server: Server, desk: Desk) -> None:
    async with opened(browser, server.http_url) as page:
        turn = await say(page, "talk")
        desk.more.release()
        await shows(turn, "word0")
        await turn.get_by_role("link", name="Details").click()
        line = page.get_by_role("list", name="Time line")
        await shows(line, "word0")
        for number in range(1, 20):
            desk.more.release()
            await shows(line, f"word{number} ")
        await page.locator("h2 .badge.completed").wait_for()
        numbers = [int(text) for text in await line.locator(".number").all_inner_texts()]
        assert numbers == [*range(1, len(numbers) + 1)] and len(numbers) >= 20


async def test_what_is_wrong_with_a_card_is_marked_on_it(browser: Any, server: Server) -> None:
    async with opened(browser, server.http_url) as page:
        await page.get_by_role("link", name="Card").click()
        wrong = page.get_by_role("list", name="Problems")
        await shows(wrong, "is empty: nobody can tell what the agent is for")
        assert await wrong.locator("code").all_inner_texts() == ["skills"]


@pytest.mark.requirement("SEC-05")
async def test_nothing_else_runs_on_the_page_and_nothing_else_is_loaded(browser: Any, server: Server) -> None:
    tries = {
        "script-src-elem": "const made = document.createElement('script'); made.textContent = 'document.title = 1';",
        "img-src": "const made = document.createElement('img'); made.src = 'http://127.0.0.1:9/x.png';",
        "style-src-elem": "const made = document.createElement('style'); made.textContent = 'p { color: red }';",
        "frame-src": "const made = document.createElement('iframe'); made.src = '/inspector/';",
    }
    async with opened(browser, server.http_url, quiet=False) as page:
        for directive, make in tries.items():
            refused = await page.evaluate(
                f"""() => new Promise((told) => {{
                    const heard = ({{ effectiveDirective }}) => told(effectiveDirective);
                    document.addEventListener('securitypolicyviolation', heard, {{ once: true }});
                    {make}
                    document.body.append(made);
                }})"""
            )
            assert refused == directive
        assert await page.title() != "1"
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        await page.reload()
        await page.wait_for_selector("#message")
        assert asked and all(url.startswith(server.http_url) for url in asked)


async def test_a_message_is_sent_once_however_a_page_is_used(browser: Any, server: Server) -> None:
    async with opened(browser, server.http_url) as page:
        await page.keyboard.press("Tab")
        await page.fill("#message", "  ")
        await page.locator("#message").press("Enter")
        await page.locator("#message").press("Shift+Enter")
        assert not await page.locator("li.turn").count()
        await say(page, "once")
        await ended(page)
        async with Client(server.http_url) as client:
            assert [task.status.state async for task in client.tasks()] == [v1.TASK_STATE_COMPLETED]
            await client.send(message("twice"))
        assert PATIENCE and await page.locator("li.turn").count() == 1


async def test_a_copied_call_goes_to_where_the_card_says_that_grpc_is(browser: Any, server: Server) -> None:
    call = {"operation": "SubscribeToTask", "params": {"id": "t"}, "secret": [], "place": {"url": "https://here/rpc"}}
    call["headers"] = {"A2A-Version": "1.0", "Content-Type": "application/json", "Last-Event-ID": "7"}
    urls = {
        "here:50051": "https://here:50051/",  # as safe as the address that the card came from
        "grpc://here:1": "http://here:1/",
        "grpcs://here": "https://here/",
        "http://here:1/": "http://here:1/",
    }
    async with opened(browser, server.http_url) as page:
        for url, wanted in urls.items():
            place = {"url": url, "protocolBinding": "GRPC", "protocolVersion": "1.0", "tenant": "acme"}
            text = await page.evaluate(
                "given => import('./snippets.js').then(({SNIPPETS}) => SNIPPETS['buf curl'](...given))",
                [call, {"supportedInterfaces": [place]}],
            )
            assert f"'{wanted}lf.a2a.v1.A2AService/SubscribeToTask'" in text, text
            assert '{"tenant":"acme","id":"t"}' in text and "'Last-Event-ID: 7'" in text
