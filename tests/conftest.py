"""What holds for every test: known requirement IDs, no silent skip in CI, an end in bounded time.

Laws: no fixture of one module's tests lives here. A test may skip itself when its line is in golden/skips.txt (law 6:
the list may only shrink), or with a reason that begins with "needs ", for a tool that a machine may lack. With A2A_CI
set the latter is a failure: a machine without PostgreSQL, Node or another SDK cannot pass for one that has it.
"""

import asyncio
import contextlib
import faulthandler
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import FrameType

import pytest

from a2a_grpc import python310_asyncio

if sys.version_info < (3, 11):  # tests may have it from there; that the package does not, is seen by mypy
    asyncio.timeout = python310_asyncio.timeout

LEDGER = Path(__file__).parent / "golden" / "requirements.txt"
SKIPS = Path(__file__).parent / "golden" / "skips.txt"
LIMIT = 180.0
"""Seconds that a test may take before it fails with the stacks of all threads; mark `limit` states another number."""


def pytest_configure(config: pytest.Config) -> None:
    if sys.version_info < (3, 11):  # where TLS says so of each connection that the other end has closed
        config.addinivalue_line("filterwarnings", "ignore:unclosed transport <asyncio.sslproto:ResourceWarning")
    config.addinivalue_line("markers", "limit(seconds): the test fails when it takes longer; default 180")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    known = {line.split(maxsplit=1)[0] for line in LEDGER.read_text().splitlines() if line and line[0] != "#"}
    for item in items:
        for mark in item.iter_markers("requirement"):
            if unknown := [name for name in mark.args if name not in known]:
                raise pytest.UsageError(f"{item.nodeid}: no such requirement: {', '.join(map(str, unknown))}")


def _judge(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Fail a skip that nobody allowed, and a success where the list allows a skip."""
    listed = report.nodeid in _allowed_skips()
    verdict = ""
    if report.skipped and not hasattr(report, "wasxfail"):
        text = str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)
        reason = text.removeprefix("Skipped: ")
        if not listed and (os.environ.get("A2A_CI") or not reason.startswith("needs ")):
            verdict = f"skipped without a line in {SKIPS.name}: {reason}"
    elif report.passed and report.when == "call" and listed:
        verdict = f"no longer skipped: take it off {SKIPS.name}"
    if verdict:
        report.outcome = "failed"
        report.longrepr = verdict


@cache
def _allowed_skips() -> frozenset[str]:
    lines = SKIPS.read_text().splitlines()
    return frozenset(line.split("  ")[0] for line in lines if line and line[0] != "#")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Iterator[None]:
    report: pytest.TestReport = yield  # type: ignore[misc]
    _judge(report)
    return report  # type: ignore[return-value]


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Iterator[None]:
    report: pytest.CollectReport = yield  # type: ignore[misc]
    _judge(report)
    return report  # type: ignore[return-value]


@pytest.fixture(autouse=True)
def log_as_before() -> Iterator[None]:
    """Commands that are run within the tests write their log to a stream that the next test has not."""
    root = logging.getLogger()
    level = root.level
    yield
    root.setLevel(level)
    for handler in [handler for handler in root.handlers if type(handler) is logging.StreamHandler]:
        root.removeHandler(handler)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    mark = item.get_closest_marker("limit")
    limit = float(mark.args[0]) if mark else LIMIT

    def late(_: int, __: FrameType | None) -> None:
        faulthandler.dump_traceback(file=sys.__stderr__)
        with contextlib.suppress(RuntimeError):  # no loop runs: not an asynchronous test
            for task in asyncio.all_tasks():
                with contextlib.suppress(TypeError):  # coroutines that are not written in Python have no lines
                    task.print_stack()
        pytest.fail(f"no end after {limit:g} s")

    if threading.current_thread() is not threading.main_thread():
        return (yield)  # type: ignore[misc]
    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, limit)
    # A test that holds the interpreter in C code never sees the signal: the process ends, and says where.
    faulthandler.dump_traceback_later(limit + 60, exit=True, file=sys.__stderr__)
    try:
        return (yield)  # type: ignore[misc]
    finally:
        faulthandler.cancel_dump_traceback_later()
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
