"""Ids and times that turns begin with."""

import uuid

import pytest

from a2a_grpc.tasks.start import new_id


@pytest.mark.requirement("CTX-01", "CTX-06")
def test_ids_are_random_uuids_of_version_4_in_their_usual_spelling() -> None:
    made = [new_id() for _ in range(2000)]
    assert len(set(made)) == len(made)
    for text in made:
        read = uuid.UUID(text)
        assert (str(read), read.version, read.variant) == (text, 4, uuid.RFC_4122)
    assert {text[19] for text in made} == set("89ab")
