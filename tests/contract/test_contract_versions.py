"""Which version is spoken, and what happens when it is another one, in every cell."""

import pytest
from a2a_stubs import v1

from a2a_grpc.errors import InvalidParamsError, VersionNotSupportedError
from tests.contract.cells import Cell, fresh, said

HTTP = pytest.mark.wires("jsonrpc", "rest")
GET = "GetTask", v1.GetTaskRequest(id="x")


@pytest.mark.parametrize("version", ["99.0", "1.1", "abc", "1", "0.2", "1.0.0.0x y"])
@pytest.mark.requirement("VER-04", "VER-05", "VER-09", "GRPC-06", "BL-19", "ERR-18")
async def test_a_version_that_is_not_spoken_is_refused(cell: Cell, version: str) -> None:
    for operation, request in (("SendMessage", said()), GET):
        found = await cell.refuses(VersionNotSupportedError, operation, request, a2a_version=version)
        assert "1.0" in found.text or "0.3" in found.text


@pytest.mark.parametrize("patch", [".0", ".1", ".17"])
@pytest.mark.requirement("VER-05")
async def test_the_patch_of_a_version_does_not_matter(cell: Cell, patch: str) -> None:
    assert "COMPLETED" in (await cell.sent_as(cell.version + patch)).upper()


@pytest.mark.requirement("VER-02", "VER-12", "I-09")
async def test_without_a_version_the_surface_tells_it(cell: Cell) -> None:
    assert "COMPLETED" in (await cell.sent_as("")).upper()


@pytest.mark.site(strict_version=True)
@pytest.mark.versions("1.0")
@pytest.mark.requirement("VER-02", "VER-12", "I-09")
async def test_a_strict_server_reads_no_version_as_the_old_one(cell: Cell) -> None:
    assert "COMPLETED" in (await cell.sent_as("1.0")).upper()
    if cell.binding == "grpc":
        await cell.refuses(VersionNotSupportedError, *GET, a2a_version="")
    else:  # as 0.3 there is no such method, and the answer has the old form
        assert {"jsonrpc": "METHOD_NOT_FOUND", "rest": "'kind': 'task'"}[cell.binding] in await cell.sent_as("")


@pytest.mark.site(versions=("1.0",))
@pytest.mark.versions("1.0")
@pytest.mark.wires("jsonrpc", "rest")
@pytest.mark.requirement("VER-04", "VER-06", "V03-34", "BL-46")
async def test_a_server_of_one_version_refuses_the_other(cell: Cell) -> None:
    assert (await cell.task()).id
    await cell.refuses(VersionNotSupportedError, *GET, a2a_version="0.3")
    assert [entry.protocol_version for entry in (cell.client.card or v1.AgentCard()).supported_interfaces] == [
        "1.0"
    ] * 3


@pytest.mark.site(versions=("0.3",))
@pytest.mark.versions("0.3")
@pytest.mark.requirement("VER-04", "V03-02")
async def test_a_server_of_the_old_version_alone_works(cell: Cell) -> None:
    assert (await cell.task()).status.state == v1.TASK_STATE_COMPLETED
    await cell.refuses(VersionNotSupportedError, *GET, a2a_version="2.0")


@HTTP
@pytest.mark.requirement("VER-03", "VER-10", "REST-21", "RPC-16")
async def test_the_version_may_be_in_the_query(cell: Cell) -> None:
    task = await cell.task()
    verb, url, headers, body = cell.http_request("GetTask", v1.GetTaskRequest(id=task.id))
    headers.pop("a2a-version")
    for name in ("A2A-Version", "a2a-version"):
        status, value, _ = await cell.fetch(verb, f"{url}?{name}={cell.version}", headers, body)
        assert status == 200 and task.id in str(value)
    _, value, _ = await cell.fetch(verb, f"{url}?A2A-Version=99.0", headers, body)
    assert "VERSION_NOT_SUPPORTED" in str(value)
    both = {**headers, "a2a-version": cell.version}
    _, value, _ = await cell.fetch(verb, f"{url}?A2A-Version=99.0", both, body)
    assert InvalidParamsError.reason in str(value)
    status, value, _ = await cell.fetch(verb, f"{url}?A2A-Version={cell.version}", both, body)
    assert status == 200 and task.id in str(value)


@pytest.mark.wires("grpc")
@pytest.mark.requirement("GRPC-06", "VER-04", "V03-27")
async def test_a_grpc_package_speaks_its_own_version_only(cell: Cell) -> None:
    other = {"1.0": "0.3", "0.3": "1.0"}[cell.version]
    await cell.refuses(VersionNotSupportedError, "GetTask", v1.GetTaskRequest(id=fresh()), a2a_version=other)


@pytest.mark.wires("jsonrpc")
@pytest.mark.requirement("VER-06", "RPC-03", "RPC-18", "V03-01")
async def test_a_method_of_the_other_version_is_unknown(cell: Cell) -> None:
    other = {"1.0": "0.3", "0.3": "1.0"}[cell.version]
    found = await cell.refusal("GetTask", v1.GetTaskRequest(id=fresh()), {"a2a-version": other})
    assert (found.status, found.code) == (200, -32601)
