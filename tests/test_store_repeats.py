"""What every store must do about messages that are sent again: the same tests for each."""

import asyncio

import pytest

from a2a_grpc.tasks.store import CLAIM, Dedupe, Duplicate, Scope, Store, TaskQuery
from tests import stores
from tests.stores import ANN, NOW, create

every_store = stores.every_store


@pytest.mark.requirement("BL-51", "OP-SEND-14")
async def test_of_two_equal_sends_at_once_one_makes_the_task(store: Store) -> None:
    sends = [create(store, name, dedupe=Dedupe("m", b"digest", NOW + 1000, name)) for name in ("one", "two")]
    results = await asyncio.gather(*sends, return_exceptions=True)
    [refused] = [result for result in results if isinstance(result, Duplicate)]
    page = await store.tasks(ANN, TaskQuery())
    assert [row.task_id for row in page.rows] == [refused.dedupe.task_id]
    assert refused.dedupe == await store.seen(ANN, "m", NOW)


@pytest.mark.requirement("BL-51")
async def test_a_message_id_is_free_again_when_its_time_is_over(store: Store) -> None:
    first = Dedupe("m", b"digest", NOW + 1000, "t", b"")
    await create(store, dedupe=first)
    assert await store.seen(ANN, "m", NOW + 999) == first
    assert await store.seen(ANN, "m", NOW + 1000) is None
    second = Dedupe("m", b"other", NOW + 3000, "", b"reply")
    with pytest.raises(Duplicate) as refusal:
        await store.remember_reply(ANN, "c", [b"hello"], {"k": b"1"}, second, NOW + 999)
    assert refusal.value.dedupe == first
    assert await store.messages(ANN, "c", 10) == [] and await store.memory(ANN, "c") == {}
    await store.remember_reply(ANN, "c", [b"hello"], {"k": b"1"}, second, NOW + 1000)
    assert await store.seen(ANN, "m", NOW + 1001) == second


@pytest.mark.requirement("BL-51", "OP-SEND-14")
async def test_who_claims_a_message_keeps_others_from_it_until_the_outcome_is_stored(store: Store) -> None:
    def claim(of: str, until: int, message: str = "m") -> tuple[Scope, Dedupe]:
        own = CLAIM + of.encode()
        return ANN, Dedupe(message, b"digest", until, "", own, own)

    async def claimed(*claims: tuple[Scope, Dedupe], now: int = NOW) -> dict[str, bytes]:
        return {key[1]: known.reply for key, known in (await store.claim_messages(claims, now)).items()}

    one, two = claim("one", NOW + 100), claim("two", NOW + 100)
    assert await claimed(one) == {} and await claimed(two) == {"m": CLAIM + b"one"}
    known = await store.seen(ANN, "m", NOW)
    assert known is not None and known.claims
    assert await claimed(claim("one", NOW + 300), now=NOW + 99) == {}  # longer
    assert await claimed(two, claim("two", NOW + 100, "n"), now=NOW + 299) == {"m": CLAIM + b"one"}
    assert await claimed(claim("one", NOW + 200), now=NOW + 200) == {}  # given up
    assert await claimed(claim("two", NOW + 300), now=NOW + 200) == {}
    late = Dedupe("m", b"digest", NOW + 1000, reply=b"late", claim=CLAIM + b"one")
    with pytest.raises(Duplicate) as refusal:
        await store.remember_reply(ANN, "c", [b"late"], {}, late, NOW + 200)
    assert refusal.value.dedupe.claims and await store.messages(ANN, "c", 10) == []
    with pytest.raises(Duplicate):
        await create(store, "one", dedupe=late._replace(task_id="one", reply=b""), now_ms=NOW + 200)
    reply = late._replace(reply=b"hello", claim=CLAIM + b"two")
    await store.remember_reply(ANN, "c", [b"hello"], {}, reply, NOW + 200)
    assert await claimed(claim("two", NOW + 900), claim("one", NOW + 900), now=NOW + 200) == {"m": b"hello"}
    assert await store.seen(ANN, "m", NOW + 200) == reply._replace(claim=CLAIM)
    assert await claimed(claim("n", NOW + 900, "n"), now=NOW + 200) == {}
    await create(store, "n", dedupe=Dedupe("n", b"digest", NOW + 1000, "n", claim=CLAIM + b"n"), now_ms=NOW + 200)
    assert await claimed(claim("n", NOW + 900, "n"), now=NOW + 200) == {"n": b""}
