"""Log lines: for eyes or as JSON, with the ids of what they are about, and their level changed while the server runs.

Laws: ids come from what watches the code that wrote the line (telemetry.HERE), and that of a task from a line that
begins with it. A line says what the code said and nothing of a request (SEC-05, SEC-07).
"""

import asyncio
import json
import logging
import signal
import sys
import threading
import traceback
from datetime import datetime, timezone
from types import FrameType
from typing import Any, Final

from a2a_grpc.config import Options
from a2a_grpc.telemetry import HERE

SWITCH: Final = signal.SIGUSR2
"""What switches between debug level and the one of the options."""

OF_TASK: Final = "task %s"
"""What every line begins with that is about one task."""

_LOG: Final = logging.getLogger(__name__)

CONSOLE: Final = "%(asctime)s %(levelname)s %(message)s"


def _fields(record: logging.LogRecord) -> dict[str, str]:
    """What a line is about: what watches its code knows, or the line begins with its task."""
    here = HERE.get()
    fields = dict(here.fields) if here is not None else {}
    if isinstance(record.args, tuple) and record.args and str(record.msg).startswith(OF_TASK):
        fields["task"] = str(record.args[0])
    return fields


def _word(value: str) -> str:
    """A value that a caller may have made up, as one word on one line."""
    return value if value.isprintable() and " " not in value else ascii(value)


class Console(logging.Formatter):
    """Lines for eyes; what a line is about stands behind it in brackets, where that is known."""

    def __init__(self) -> None:
        super().__init__(CONSOLE)

    def formatMessage(self, record: logging.LogRecord) -> str:
        """The line without a traceback."""
        fields = " ".join(f"{name}={_word(value)}" for name, value in _fields(record).items())
        return super().formatMessage(record) + (f" [{fields}]" if fields else "")


class Json(logging.Formatter):
    """One JSON object a line: `time`, `level`, `logger`, `message`; `task`, `context`, `caller`, `trace_id`, `span_id`
    where they are known; `fault` and `traceback` for an exception."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, timezone.utc).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_fields(record),
        }
        if record.exc_info and record.exc_info[1] is not None:
            line["fault"] = type(record.exc_info[1]).__name__
            line["traceback"] = "".join(traceback.format_exception(record.exc_info[1]))
        return json.dumps(line, default=str)  # which knows a way for text that is not UTF-8


def begin(options: Options) -> None:
    """Write the lines of this process to stderr as the options say. The signal is heard only in a main thread."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Json() if options.log_format == "json" else Console())
    logging.basicConfig(level=_usual(options), handlers=[handler], force=True)

    def told(_: int, __: FrameType | None) -> None:
        try:  # a line must not be begun in the midst of another, where a signal may come
            asyncio.get_running_loop().call_soon_threadsafe(switch, options)
        except RuntimeError:
            switch(options)

    if threading.current_thread() is threading.main_thread():
        signal.signal(SWITCH, told)


def switch(options: Options) -> None:
    """Write lines at debug level, and if that is so already, at the level of the options. A line tells of it, whichever
    level that is."""
    root, usual = logging.getLogger(), _usual(options)
    if root.level == logging.DEBUG != usual:
        _LOG.info("lines of level %s and above again", options.log_level)
        root.setLevel(usual)
    else:
        root.setLevel(logging.DEBUG)
        _LOG.info("lines of level debug and above")


def _usual(options: Options) -> int:
    return int(getattr(logging, options.log_level.upper()))
