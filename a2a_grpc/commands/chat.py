"""`a2a-grpc chat`: a conversation with an agent, line by line.

Laws: a run is followed to its end or its question before the next line is read; a question is answered by the next
line, on the same task. Lines that begin with `/` are for this command alone. Ctrl-C cancels the run that is under way,
and ends the conversation when none is.
"""

import argparse
import asyncio
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from typing import Any, Final

from a2a_stubs import v1

from a2a_grpc.commands.reaching import interface_flags, settings
from a2a_grpc.commands.telling import Teller, plain
from a2a_grpc.commands.words import Parser, file_word, json_word, url_word
from a2a_grpc.errors import A2AError
from a2a_grpc.protojson_values import value_of
from a2a_grpc.python310_asyncio import Runner
from a2a_grpc.remote import Overrides, RemoteAgent
from a2a_grpc.tasks.parts import add_parts

PROMPTS: Final = {False: "> ", True: "answer> "}
"""What is shown before a line is typed, and before one that answers a question."""

BREATH: Final = 0.01
"""Seconds in which a connection that ended while nobody typed is noticed."""


class Ended(Exception):
    """The conversation is over."""


class Chat:
    """One conversation. context_id: what it is known as; run_id: the run that waits for an answer, "" if none does."""

    def __init__(self, agent: RemoteAgent, teller: Teller) -> None:
        self._agent, self._teller = agent, teller
        self._files: list[v1.Part] = []
        self.context_id = self.run_id = ""

    async def line(self, text: str) -> None:
        """One line that was typed. Raises what the agent answers, Ended, and argparse.ArgumentTypeError."""
        word, _, rest = text.partition(" ")
        if not text.isprintable() and any("\ud800" <= letter <= "\udfff" for letter in text):
            raise argparse.ArgumentTypeError("the line is not text in UTF-8")
        if word in ORDERS:
            await ORDERS[word][0](self, rest.strip())
        elif text.startswith("/"):
            raise argparse.ArgumentTypeError(f"{word} is nothing that can be done: /help says what is")
        elif text:
            await self.say(text)

    async def say(self, content: Any) -> None:
        """Send something with the attached files, and tell what comes of it."""
        message = v1.Message()
        add_parts(message.parts, content)
        message.parts.extend(self._files)
        self._files.clear()
        await asyncio.sleep(BREATH)
        told: Overrides = {"context_id": self.context_id} if self.context_id else {}
        run_id, self.run_id = self.run_id, ""
        start = self._agent.resume_stream(message, run_id=run_id, **told) if run_id else None
        run = start or self._agent.stream(message, **told)
        held: v1.StreamResponse | None = None
        try:
            async with aclosing(run):
                async for update in run:
                    whole = update.event.HasField("task")
                    if whole and run_id:
                        held = update.event  # which may be how the task stood when it was answered
                    elif not whole or update.kind == "status":  # of all that a whole task tells, the last
                        held = None
                        self._teller.event(update.event)
                if held is not None:
                    self._teller.event(held)
                result = await run.result()
        finally:
            self._teller.end()
            self.context_id = run.context_id or self.context_id
        self.run_id = result.run_id if result.suspended is not None else ""

    async def new(self, _: str) -> None:
        """Begin another conversation."""
        self.context_id = self.run_id = ""
        self._files.clear()

    async def cancel(self, _: str) -> None:
        """Cancel the run that waits for an answer."""
        if not self.run_id:
            raise argparse.ArgumentTypeError("nothing waits for an answer")
        run_id, self.run_id = self.run_id, ""
        await self._agent.abort(run_id)
        self._teller.line("canceled")

    async def attach(self, path: str) -> None:
        """Send a file with the next message."""
        self._files.append(file_word(path))

    async def data(self, text: str) -> None:
        """Send a JSON value."""
        await self.say([v1.Part(data=value_of(json_word(text)))])

    async def ids(self, _: str) -> None:
        """Show the ids of the conversation and of what waits."""
        self._teller.line(f"context {self.context_id or 'none'}  task {self.run_id or 'none'}")

    async def help(self, _: str) -> None:
        """Show what can be done."""
        for word, (_action, meaning) in ORDERS.items():
            self._teller.line(f"{word:8} {meaning}")

    async def quit(self, _: str) -> None:
        """End the conversation."""
        raise Ended


ORDERS: Final[Mapping[str, tuple[Callable[[Chat, str], Any], str]]] = {
    "/new": (Chat.new, "begin another conversation"),
    "/cancel": (Chat.cancel, "cancel what waits for an answer"),
    "/file": (Chat.attach, "PATH: send a file with the next message"),
    "/data": (Chat.data, "JSON: send a JSON value"),
    "/ids": (Chat.ids, "show the ids of the conversation and of what waits"),
    "/help": (Chat.help, "show this"),
    "/quit": (Chat.quit, "end, as does the end of the input"),
}
"""What lines with a slash do."""


def parser() -> argparse.ArgumentParser:
    """What follows `a2a-grpc chat`."""
    made = Parser(
        prog="a2a-grpc chat",
        description="Talks with an agent; lines come from the terminal or a pipe.",
        epilog="In the conversation: " + "; ".join(f"{word} {meaning}" for word, (_, meaning) in ORDERS.items()),
    )
    made.add_argument("url", type=url_word, metavar="URL", help="base URL, card URL, or grpc://host:port")
    made.add_argument("--context", default="", metavar="ID", help="the conversation to go on with")
    interface_flags(made)
    return made


def run(words: Sequence[str]) -> int:
    """Talk until the input ends; code 1 if the agent cannot be reached, or a line from a pipe ended with an error."""
    arguments = parser().parse_args(words)
    live = sys.stdin.isatty() and sys.stdout.isatty()
    if live:
        with suppress(ImportError):  # which gives `input` its history
            __import__("readline")
    teller = Teller(sys.stdout, sys.stderr, live=live, ids=False)
    with Runner() as runner:
        agent = RemoteAgent(arguments.url, cancel_on_abort=True, **settings(arguments))
        chat = Chat(agent, teller)
        chat.context_id = arguments.context
        try:
            client = runner.run(agent.client())
            if live and client.card is not None:
                teller.card(client.card)
            code = _turns(runner, chat, live)
            if chat.run_id:
                teller.lasting(f"task {chat.run_id} waits for an answer")
            return code
        except (A2AError, TimeoutError) as fault:
            return _told(fault)
        finally:
            runner.run(agent.close())


def _turns(runner: Runner, chat: Chat, live: bool) -> int:
    failed = 0
    while True:
        try:
            text = input(PROMPTS[bool(chat.run_id)] if live else "").strip()
        except EOFError:
            return failed
        try:
            runner.run(chat.line(text))
        except Ended:
            return failed
        except (A2AError, TimeoutError, argparse.ArgumentTypeError) as fault:
            failed = _told(fault) if not live else _told(fault) and 0
        except KeyboardInterrupt:
            if not live:
                raise
            print("canceled", file=sys.stderr)


def _told(fault: Exception) -> int:
    said = f"{fault.reason}: {fault.message}" if isinstance(fault, A2AError) else str(fault) or "no answer in time"
    print(plain(said), file=sys.stderr)
    return 1
