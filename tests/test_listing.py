"""Pages of tasks: the bytes that are kept say what the tasks say, whatever of them was asked for."""

from typing import Any

import pytest
from a2a_stubs import v1
from hypothesis import given
from hypothesis import strategies as st

from a2a_grpc import ready
from a2a_grpc.bindings.wire import ALWAYS, KEPT
from a2a_grpc.protojson import decode, dumps, encode, encoder, loads
from a2a_grpc.ready import Kept, Ready, Stored
from a2a_grpc.tasks.listing import ROW_BYTES, Pages, answer_of, cut, entries_of
from a2a_grpc.tasks.store import Scope, TaskRow
from tests.test_protojson_properties import FEW, members_of

tasks = st.lists(members_of(v1.Task.DESCRIPTOR).map(lambda value: decode(v1.Task, value)), max_size=4)


def row_of(task: v1.Task) -> TaskRow:
    """The row of a task, as a store has it."""
    head, artifacts = v1.Task(), v1.Task(artifacts=task.artifacts)
    head.CopyFrom(task)
    head.ClearField("artifacts")
    row = TaskRow(Scope("", "", ""), task.id, task.context_id, task.status.state, 0, 0)
    row.head, row.artifacts = head.SerializeToString(), artifacts.SerializeToString()
    return row


def shown(task: v1.Task, artifacts: bool, history: int) -> v1.Task:
    """What is to be shown of a task."""
    told = v1.Task()
    told.CopyFrom(task)
    if not artifacts:
        told.ClearField("artifacts")
    return cut(told, history)


@pytest.mark.requirement("LIST-09", "LIST-10", "HIST-01", "HIST-02")
@FEW
@given(tasks=tasks, artifacts=st.booleans(), history=st.integers(0, 3), total=st.integers(0, 9))
def test_a_page_of_bytes_says_what_its_tasks_say(
    tasks: list[v1.Task], artifacts: bool, history: int, total: int
) -> None:
    plain = v1.ListTasksResponse(total_size=total, tasks=[shown(task, artifacts, history) for task in tasks])
    always = ALWAYS["include_artifacts"] if artifacts else frozenset[str]()
    write = encoder(v1.ListTasksResponse, always, KEPT)
    for _ in range(2):  # made, then kept
        entries = entries_of([row_of(task) for task in tasks], artifacts, history)
        page = Ready(v1.ListTasksResponse, "tasks", entries, v1.ListTasksResponse(total_size=total))
        assert page.message() == plain
        assert v1.ListTasksResponse.FromString(page.body()) == plain
        assert loads(dumps(write(page))) == loads(dumps(encode(plain, always)))


@pytest.mark.requirement("HIST-01", "HIST-03")
def test_of_a_history_the_end_is_shown() -> None:
    task = v1.Task(id="t", history=[v1.Message(message_id=str(number)) for number in range(4)])
    for history, expected in ((0, ""), (1, "3"), (3, "123"), (4, "0123"), (9, "0123")):
        [entry] = entries_of([row_of(task)], True, history)
        [found] = v1.ListTasksResponse.FromString(entry).tasks
        assert "".join(message.message_id for message in found.history) == expected


@pytest.mark.requirement("OP-GET-01", "HIST-01", "HIST-02")
@FEW
@given(tasks=tasks, history=st.integers(0, 3))
def test_a_task_that_is_read_again_says_what_it_says(tasks: list[v1.Task], history: int) -> None:
    for task in tasks:
        expected = shown(task, True, history)
        first, again = answer_of(row_of(task), history), answer_of(row_of(task), history)
        assert isinstance(again, Stored) and again.message() == v1.Task.FromString(again.body()) == expected
        assert first == expected or isinstance(first, Stored)
        for write in (encoder(v1.Task, kept=KEPT), encoder(v1.Task)):
            for _ in range(2):
                assert loads(dumps(write(again))) == loads(dumps(encode(expected)))


def test_a_large_task_is_read_anew() -> None:
    row = row_of(v1.Task(id="t", history=[v1.Message(message_id="m" * ready.LARGEST_KEPT)]))
    assert isinstance(answer_of(row, 1), v1.Task) and isinstance(answer_of(row, 1), v1.Task)


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ready, "MOST_KEPT", 100)
    monkeypatch.setattr(ready, "LARGEST_KEPT", 60)
    kept: Kept[Any] = Kept()
    assert kept.keep(b"a" * 61, 1, 0) == 1 and kept.find(b"a" * 61) is None
    assert kept.keep(b"b" * 60, 2, 10) == 2 == kept.find(b"b" * 60)
    assert kept.keep(b"c" * 20, 3, 10) == 3 and kept.find(b"b" * 60) == 2
    assert kept.keep(b"d", 4, 0) == 4 == kept.find(b"d") and kept.find(b"c" * 20) is None


def test_a_page_is_kept_by_its_very_rows_and_by_how_much_of_them_was_asked_for() -> None:
    rows = tuple(row_of(v1.Task(id=str(number), context_id="c")) for number in range(3))
    pages = Pages()
    assert pages.find(rows, True, 1) is None
    assert pages.keep(rows, True, 1, [b"1", b"2", b"3"]) == (b"1", b"2", b"3") == pages.find(rows, True, 1)
    for other in (rows[:2], rows[1:], (rows[0], *rows[1:]), rows[::-1]):
        assert pages.find(other, True, 1) is None
    assert pages.find(rows, False, 1) is None and pages.find(rows, True, 0) is None


def test_pages_that_are_kept_are_bounded_by_all_that_they_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ready, "MOST_KEPT", 3 * ROW_BYTES)
    small, large, state = ((row_of(v1.Task(id="t")),) for _ in range(3))
    pages = Pages()
    pages.keep(small, False, 1, [b"small"])
    large[0].artifacts, state[0].author_state = bytes(3 * ROW_BYTES), bytes(3 * ROW_BYTES)
    for rows in (large, state):  # whether it is shown or not
        pages.keep(rows, False, 1, [b"large"])
        assert pages.find(rows, False, 1) is None
    assert pages.find(small, False, 1) == (b"small",)
    others = [(row_of(v1.Task(id=str(number))),) for number in range(9)]
    for rows in others:
        pages.keep(rows, False, 1, [b"other"])
    assert 1 <= sum(pages.find(rows, False, 1) is not None for rows in others) <= 2


@pytest.mark.requirement("LIST-09", "LIST-10")
def test_pages_as_json_are_kept_by_all_that_they_say_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    write = encoder(v1.ListTasksResponse, frozenset({"lf.a2a.v1.Task.history"}))
    entries = tuple(entries_of([row_of(v1.Task(id=str(number))) for number in range(3)], True, 1))

    def page(entries: tuple[bytes, ...], total: int) -> Any:
        return write(Ready(v1.ListTasksResponse, "tasks", entries, v1.ListTasksResponse(total_size=total)))

    first = page(entries, 3)
    assert page((*entries,), 3) is first
    for other, total, ids in ((entries, 4, "012"), (entries[1:], 3, "12"), ((), 3, ""), (entries, 3, "012")):
        told = loads(dumps(page(other, total)))
        assert (told["totalSize"], "".join(task["id"] for task in told["tasks"])) == (total, ids)
    monkeypatch.setattr(ready, "MOST_KEPT", 10)
    again = entries[::-1]
    assert page(again, 3) is not page(again, 3)
