"""Messages for turns at work: every store keeps them until the turn takes them, refuses them, or is over.

Laws: as in test_store.py.
"""

import pytest

from a2a_grpc.tasks.store import Change, LeaseLost, LeaseTaken, Post, Retention, Scope, Store
from tests import stores
from tests.stores import ANN, NOW, STRANGERS, create, events

every_store = stores.every_store


@pytest.mark.requirement("OP-SEND-17")
async def test_a_message_for_a_turn_at_work_is_taken_or_refused_or_outlives_the_turn(store: Store) -> None:
    async def post(text: bytes, token: int = 1, scope: Scope = ANN) -> int:
        return await store.post(scope, "t", token, text, b"d", NOW + 1000)

    await create(store)
    assert not await post(b"early")  # no turn is at work
    assert not await store.posts("me")
    token, at = await store.commit(Change(ANN, "t", 1, NOW, take=LeaseTaken("me", NOW + 1000))), 1
    assert not await post(b"foreign", token, STRANGERS[0]) and not await post(b"old", token + 1)
    numbers = [await post(text, token) for text in (b"one", b"two", b"three", b"four")]
    assert await store.posts("me") == [
        Post(number, "t", token, text, b"d")
        for number, text in zip(numbers, (b"one", b"two", b"three", b"four"), strict=True)
    ]
    assert not await store.posts("you") and await store.posted(numbers[0]) == 0
    taken = {numbers[0]: at + 1, numbers[1]: at + 2}
    with pytest.raises(LeaseLost):
        await store.commit(Change(ANN, "t", at, NOW, token=token + 1, events=events(at, "1", "2"), posts=taken))
    assert await store.posted(numbers[0]) == 0
    await store.commit(Change(ANN, "t", at, NOW, token=token, events=events(at, "1", "2"), posts=taken))
    await store.refuse("you", numbers[2])
    assert await store.posted(numbers[2]) == 0
    await store.refuse("me", numbers[2])
    assert [post.number for post in await store.posts("me")] == numbers[3:]
    assert [await store.posted(number) for number in numbers] == [at + 1, at + 2, -1, 0]
    await store.commit(Change(ANN, "t", at + 2, NOW, token=token, release=True))
    assert [await store.posted(number) for number in numbers] == [None] * 4
    assert not await store.posts("me")


async def test_a_message_whose_sender_is_gone_is_forgotten_in_time(store: Store) -> None:
    await create(store, take=LeaseTaken("me", NOW + 1000))
    waiting, taken = [await store.post(ANN, "t", 1, text, b"", NOW + 1000) for text in (b"hi", b"there")]
    await store.commit(Change(ANN, "t", 1, NOW, token=1, events=events(1, "there"), posts={taken: 2}))
    later = await store.post(ANN, "t", 1, b"later", b"", NOW + 5000)
    for now, left in ((NOW + 999, {waiting, later}), (NOW + 1001, {later})):
        await store.renew("me", now + 1000, {"t": 1})
        await store.trim(Retention(now, 1 << 40, 1 << 40, 10))
        assert {post.number for post in await store.posts("me")} == left
    assert [await store.posted(number) for number in (waiting, taken, later)] == [None, None, 0]
