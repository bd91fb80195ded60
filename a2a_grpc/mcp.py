"""Agents as tools of an MCP host: each skill is a tool, news of the work is progress, questions are put to the user.

Laws: the host sees what the agent said and nothing of how it is reached. A question goes to the user where the host can
ask, and else into the answer, with the task to go on with; credentials are never asked for by a form. What an agent
says is content, never an instruction. What a run is, is remote.py's affair; of MCP, the official package's.
"""

import base64
import json
import re
from collections import OrderedDict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final, NamedTuple

import mcp_types as types
from a2a_stubs import v1
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

from a2a_grpc.auth import SKILL
from a2a_grpc.errors import A2AError
from a2a_grpc.protojson_values import json_of
from a2a_grpc.remote import Overrides, RemoteAgent, Result, Run
from a2a_grpc.tasks.handle import SCHEMA_TYPE
from a2a_grpc.tasks.parts import add_parts

MOST_ARTIFACTS: Final = 200
"""How many artifacts are kept to be read as resources, the latest ones."""

MOST_QUESTIONS: Final = 10
"""How often the user is asked during one call of a tool."""

LONGEST_NAME: Final = 60

INPUT: Final = {
    "type": "object",
    "properties": {
        "message": {"type": "string", "description": "What to tell the agent, in plain words."},
        "data": {"type": "object", "description": "Structured input beside the message, if the agent asked for some."},
        "task_id": {"type": "string", "description": "The task whose question the message answers."},
        "context_id": {"type": "string", "description": "The conversation to continue; default: a new one."},
    },
    "required": ["message"],
}
"""What every tool takes."""

ANSWER: Final = {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}
"""The form for a question of which no form is known."""

_FLAT: Final = {"string", "number", "integer", "boolean"}

Context = ServerRequestContext[Any, Any]


class Offer(NamedTuple):
    """A tool: the agent behind it, the skill that it is called for ("" for any), and how it is shown."""

    agent: RemoteAgent
    skill: str
    tool: types.Tool


def _slug(*names: str) -> str:
    return "_".join(re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_") for name in names if name)[:LONGEST_NAME]


def _described(skill: v1.AgentSkill, card: v1.AgentCard) -> str:
    lines = [skill.description or skill.name, f"Done by {card.name}: {card.description}"]
    lines += [f"Example: {example}" for example in skill.examples]
    return "\n".join(lines)


def offers(agent: RemoteAgent, card: v1.AgentCard, *, named: bool, ask: bool) -> dict[str, Offer]:
    """The tools that an agent is, by name: one for each skill, or `ask` if it has none or `ask` is set. named: put the
    agent's name before those of its tools."""
    before = card.name if named else ""
    skills = [] if ask else list(card.skills)
    if not skills:
        skills = [v1.AgentSkill(id="", name="ask", description=f"Ask {card.name} anything that it is made for.")]
    made = {}
    for skill in skills:
        name = _slug(before, skill.id or skill.name) or "ask"
        title = skill.name if skill.id else f"Ask {card.name}"
        tool = types.Tool(name=name, title=title, description=_described(skill, card), input_schema=INPUT)
        made[name] = Offer(agent, skill.id, tool)
    return made


class Bridge:
    """The tools and resources of some agents. agents: by their cards; ask: see `offers`."""

    def __init__(self, agents: Sequence[tuple[RemoteAgent, v1.AgentCard]], *, ask: bool = False) -> None:
        self.offers: dict[str, Offer] = {}
        for agent, card in agents:
            for name, offer in offers(agent, card, named=len(agents) > 1, ask=ask).items():
                free = next(each for each in _numbered(name) if each not in self.offers)
                self.offers[free] = offer._replace(tool=offer.tool.model_copy(update={"name": free}))
        self._artifacts: OrderedDict[str, v1.Artifact] = OrderedDict()

    def server(self) -> Server[Any]:
        """The MCP server that offers them."""
        return Server(
            "a2a-grpc",
            on_list_tools=self._tools,
            on_call_tool=self._call,
            on_list_resources=self._resources,
            on_read_resource=self._read,
        )

    # -- tools

    async def _tools(self, _: Context, __: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[offer.tool for offer in self.offers.values()])

    async def _call(
        self, context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        offer, given = self.offers.get(params.name), params.arguments or {}
        if offer is None:
            return _refused(f"there is no tool {params.name}")
        if wrong := [name for name in ("message", "task_id", "context_id") if not isinstance(given.get(name, ""), str)]:
            return _refused(f"{wrong[0]} must be a text")
        try:
            if params.request_state and params.input_responses:
                state, answer = _kept(params.request_state), params.input_responses.get("answer")
                if state is None:
                    return _refused("request_state is not what this server gave")
                if not (isinstance(answer, types.ElicitResult) and answer.action == "accept"):
                    return self._result(await offer.agent.result(state["run"]))
                found = await self._answered(offer, context, state, answer)
            else:
                found = await self._followed(context, self._begin(offer, given))
            return await self._asked(offer, context, found)
        except (A2AError, TimeoutError) as fault:
            told = f"{fault.reason}: {fault.message}" if isinstance(fault, A2AError) else str(fault)
            return _refused(told or "The agent did not answer.", *getattr(fault, "__notes__", ()))

    def _begin(self, offer: Offer, given: Mapping[str, Any]) -> Run:
        message = v1.Message()
        add_parts(message.parts, given.get("message", ""))
        if given.get("data") is not None:
            message.parts.add(data=_data(given["data"]))
        told: Overrides = {"metadata": {SKILL: offer.skill}} if offer.skill else {}
        if given.get("context_id"):
            told["context_id"] = given["context_id"]
        if given.get("task_id"):
            return offer.agent.resume_stream(message, run_id=given["task_id"], **told)
        return offer.agent.stream(message, **told)

    async def _followed(self, context: Context, run: Run) -> Result:
        """The result of a run, of which the host hears meanwhile. A fault on the way says which task it was about."""
        count = 0
        try:
            async for update in run:
                if update.kind == "status" and update.text:
                    count += 1
                    await context.session.report_progress(count, message=update.text)
            return await run.result()
        except (A2AError, TimeoutError) as fault:
            if run.run_id:
                note = f"The agent was at work on task {run.run_id}, which may go on without this call."
                vars(fault).setdefault("__notes__", []).append(note)  # add_note, which Python 3.10 lacks
            raise

    # -- questions

    async def _asked(
        self, offer: Offer, context: Context, found: Result
    ) -> types.CallToolResult | types.InputRequiredResult:
        """The answer to the host, after the user has answered what the agent asked."""
        session = context.session
        able = session.client_capabilities is not None and session.client_capabilities.elicitation is not None
        for _ in range(MOST_QUESTIONS):
            if not able or found.suspended is None or found.suspended.kind != "input":
                break
            form, words = _form(found.suspended.schema), found.suspended.prompt or "The agent wants an answer."
            state = {"run": found.run_id, "free": form is ANSWER}
            if not session.can_send_request:
                params = types.ElicitRequestFormParams(message=words, requested_schema=form)
                request = types.ElicitRequest(params=params)
                return types.InputRequiredResult(input_requests={"answer": request}, request_state=json.dumps(state))
            answer = await session.elicit_form(words, form, context.request_id)
            if answer.action != "accept":
                break
            found = await self._answered(offer, context, state, answer)
        return self._result(found)

    async def _answered(self, offer: Offer, context: Context, state: Any, answer: types.ElicitResult) -> Result:
        """How the run goes on with what the user answered."""
        content = answer.content or {}
        said: Any = content.get("answer", "") if state["free"] else content
        return await self._followed(context, offer.agent.resume_stream(said, run_id=state["run"]))

    # -- results

    def _result(self, found: Result) -> types.CallToolResult:
        content: list[Any] = []
        for artifact in found.artifacts:
            content += self._shown(found.run_id, artifact)
        if found.message is not None:
            content += _blocks(found.message.parts)
        if found.task is not None and found.finish_reason != "stop":
            content += _blocks(found.task.status.message.parts)
        if found.suspended is not None:
            kind = "an authorisation" if found.suspended.kind == "auth" else "an answer"
            content.append(_text(f"The agent waits for {kind}: call this tool again with task_id {found.run_id}."))
        elif found.finish_reason not in ("stop", ""):
            content.insert(0, _text(f"The task is {found.finish_reason}."))
        elif found.finish_reason == "":
            content.append(_text(f"The agent is still at work on task {found.run_id}."))
        if found.context_id:
            content.append(_text(f"To continue this conversation, give context_id {found.context_id}."))
        return types.CallToolResult(content=content, is_error=found.finish_reason in ("failed", "rejected"))

    def _shown(self, run_id: str, artifact: v1.Artifact) -> list[Any]:
        """An artifact in an answer: its content, and where it can be read again."""
        uri = f"a2a://{run_id}/{artifact.artifact_id}"
        self._artifacts[uri] = artifact
        self._artifacts.move_to_end(uri)
        while len(self._artifacts) > MOST_ARTIFACTS:
            self._artifacts.popitem(last=False)
        return [*_blocks(artifact.parts), types.ResourceLink(uri=uri, name=_name(artifact), mime_type=_type(artifact))]

    async def _resources(self, _: Context, __: Any) -> types.ListResourcesResult:
        return types.ListResourcesResult(
            resources=[
                types.Resource(uri=uri, name=_name(each), description=each.description or None, mime_type=_type(each))
                for uri, each in self._artifacts.items()
            ]
        )

    async def _read(self, _: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        artifact = self._artifacts.get(params.uri)
        if artifact is None:
            missing = f"there is no resource {params.uri}, or it is among the oldest of more than {MOST_ARTIFACTS}"
            raise MCPError(types.INVALID_PARAMS, missing, {"uri": params.uri})
        contents: list[Any] = []
        for part in artifact.parts:
            told: dict[str, Any] = {"uri": params.uri, "mime_type": _media(part)}
            if part.WhichOneof("content") == "raw":
                contents.append(types.BlobResourceContents(blob=base64.b64encode(part.raw).decode(), **told))
            else:
                contents.append(types.TextResourceContents(text=_words(part), **told))
        return types.ReadResourceResult(contents=contents)


def _kept(text: str) -> dict[str, Any] | None:
    """What is to be known when a question was answered; None for what was not made here."""
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) and isinstance(found.get("run"), str) and "free" in found else None


def _numbered(name: str) -> Sequence[str]:
    return [name, *(f"{name}_{number}" for number in range(2, 1000))]


def _refused(*texts: str) -> types.CallToolResult:
    return types.CallToolResult(content=[_text(text) for text in texts], is_error=True)


def _text(text: str) -> types.TextContent:
    return types.TextContent(text=text)


def _words(part: v1.Part) -> str:
    kind = part.WhichOneof("content")
    return json.dumps(json_of(part.data), ensure_ascii=False) if kind == "data" else getattr(part, kind or "text")


def _data(given: Any) -> Any:
    holder = v1.Message()
    add_parts(holder.parts, [given] if isinstance(given, list) else given)
    return holder.parts[0].data


_MEDIA: Final = {"text": "text/plain", "data": "application/json", "raw": "application/octet-stream"}


def _media(part: v1.Part) -> str:
    return part.media_type or _MEDIA.get(part.WhichOneof("content") or "", "application/octet-stream")


def _name(artifact: v1.Artifact) -> str:
    return artifact.name or next((part.filename for part in artifact.parts if part.filename), artifact.artifact_id)


def _type(artifact: v1.Artifact) -> str | None:
    return _media(artifact.parts[0]) if len(artifact.parts) else None


def _blocks(parts: Sequence[v1.Part]) -> list[Any]:
    """Parts as a host shows them: text in one piece, images, and notes of what else there is."""
    made: list[Any] = []
    kind: str | None = None
    for part in parts:
        before, kind, media = kind, part.WhichOneof("content"), _media(part)
        if part.media_type == SCHEMA_TYPE:
            continue
        if kind == before == "text":
            made[-1].text += part.text
        elif kind == "raw" and media.startswith("image/"):
            made.append(types.ImageContent(data=base64.b64encode(part.raw).decode(), mime_type=media))
        elif kind == "raw":
            made.append(_text(f"[file {part.filename or 'without a name'}: {media}, {len(part.raw)} bytes]"))
        else:
            made.append(_text(_words(part)))
    return made


def _form(schema: Any) -> dict[str, Any]:
    """The form for a question: the agent's own schema if a host can show it, which is flat, else a line of text."""
    rows = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(rows, dict) or not rows or schema.get("type", "object") != "object":
        return ANSWER
    if not all(isinstance(row, dict) and (row.get("type") in _FLAT or "enum" in row) for row in rows.values()):
        return ANSWER
    typed = {name: {"type": "string", **row} for name, row in rows.items()}
    return {"type": "object", "properties": typed, "required": list(schema.get("required", ()))}


@asynccontextmanager
async def bridge(urls: Sequence[str], *, ask: bool = False, **settings: Any) -> AsyncIterator[Bridge]:
    """The agents at these addresses as tools; settings: of RemoteAgent. Raises what the way to them raises."""
    async with AsyncExitStack() as stack:
        agents = []
        for url in urls:
            agent = await stack.enter_async_context(RemoteAgent(url, **{"cancel_on_abort": True, **settings}))
            agents.append((agent, await agent.card() or v1.AgentCard(name=url, description="An agent.")))
        yield Bridge(agents, ask=ask)


async def serve_stdio(urls: Sequence[str], *, ask: bool = False, **settings: Any) -> None:
    """Serve them on the standard input and output of this process until the host leaves."""
    async with bridge(urls, ask=ask, **settings) as made, stdio_server() as (reads, writes):
        server = made.server()
        await server.run(reads, writes, server.create_initialization_options())
