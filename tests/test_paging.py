"""Page tokens: what a caller may do to one."""

from base64 import urlsafe_b64decode, urlsafe_b64encode

import pytest
from a2a_stubs import v1

from a2a_grpc.errors import InvalidParamsError
from a2a_grpc.paging import read_name, read_place, write_name, write_place
from a2a_grpc.tasks.store import Scope

ANN, FILTERS = Scope("orders", "", "ann"), ("c", v1.TASK_STATE_WORKING, 0)


def forged(place: bytes) -> str:
    """A token with a true mark and any place: the mark is no secret."""
    mark = urlsafe_b64decode(write_name("", ANN, FILTERS))
    return urlsafe_b64encode(mark + place).decode().rstrip("=")


@pytest.mark.requirement("LIST-04")
def test_a_token_leads_back_to_its_place() -> None:
    assert read_place(write_place((2**63 - 1, "t-ü"), ANN, FILTERS), ANN, FILTERS) == (2**63 - 1, "t-ü")
    assert read_name(write_name("c-ü", ANN, FILTERS), ANN, FILTERS) == "c-ü"
    assert read_place("", ANN, FILTERS) is None and read_name("", ANN, FILTERS) == ""
    assert read_place(forged(bytes(8) + b"t"), ANN, FILTERS) == (0, "t")


@pytest.mark.requirement("LIST-15")
@pytest.mark.parametrize("place", [b"\x80" + bytes(7) + b"t", b"\xff" * 8 + b"t", bytes(8), b"1", bytes(8) + b"\xff"])
def test_a_place_that_no_list_has_is_refused_whatever_its_mark(place: bytes) -> None:
    for read in (read_place, read_name) if place[-1:] == b"\xff" else (read_place,):
        with pytest.raises(InvalidParamsError) as told:
            read(forged(place), ANN, FILTERS)
        assert [violation.field for violation in told.value.violations] == ["pageToken"]
