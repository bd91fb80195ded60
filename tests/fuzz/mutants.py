"""Calls that are nearly right: valid bodies with something changed, as bytes or as JSON, from a seed.

Laws: pure; the same seed makes the same mutants, on every machine.
"""

import json
from random import Random
from typing import Any

ODD: tuple[Any, ...] = (
    *(None, True, -1, 0, 2**31, 2**63, 10**400, 1.5, "", " ", "\0", "x" * 5000, "\ud800", "\u202e", "../..", "%2e%2e"),
    *([], {}, [[]], [None], {"": {}}, "TASK_STATE_WORKING", "ROLE_AGENT", "1.0", "9999-99-99T99:99:99Z", "AAA", "é"),
)
NAMES = ("id", "taskId", "task_id", "message", "parts", "kind", "tenant", "metadata", "__class__", "@type", "")


def mutated(random: Random, body: bytes) -> bytes:
    """A body with one to three changes, half of them to its JSON value if it has one."""
    for _ in range(random.randint(1, 3)):
        if random.random() < 0.5:
            try:
                body = _as_bytes(_in_value(random, json.loads(body)))
                continue
            except (ValueError, RecursionError):
                pass
        body = _in_bytes(random, body)
    return body


def _as_bytes(value: Any) -> bytes:
    return json.dumps(value).encode("utf-8", "surrogatepass")


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every container of a value with each of its keys."""
    found: list[tuple[Any, Any]] = []
    waiting = [value]
    while waiting:
        one = waiting.pop()
        keys = list(one) if isinstance(one, dict) else range(len(one)) if isinstance(one, list) else ()
        found += [(one, key) for key in keys]
        waiting += [one[key] for key in keys]
    return found


def _in_value(random: Random, value: Any) -> Any:
    places = _places(value)
    if not places:
        return random.choice(ODD)
    holder, key = random.choice(places)
    match random.randrange(6):
        case 0:
            del holder[key]
        case 1:
            for _ in range(random.choice((1, 40, 400))):
                holder[key] = random.choice(([holder[key]], {"a": holder[key]}))
        case 2 if isinstance(holder, dict):
            holder[random.choice(NAMES)] = holder[key]
        case 3 if isinstance(holder, list):
            holder.extend([holder[key]] * random.choice((1, 2000)))
        case _:
            holder[key] = random.choice(ODD)
    return value


def _in_bytes(random: Random, body: bytes) -> bytes:
    start, stop = sorted(random.randint(0, len(body)) for _ in range(2))
    match random.randrange(5):
        case 0:
            return body[:start] + body[stop:]
        case 1:
            return body[:stop] + body[start:]
        case 2:
            return body[:start] + random.randbytes(random.randint(1, 8)) + body[start:]
        case 3:
            return body[:start]
        case _:
            return random.randbytes(random.randint(0, 300))
