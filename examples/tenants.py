"""Several agents in one server, each below a path and a tenant of its own, and one that asks the others.

`a2a-grpc serve tenants:agents` serves them at `/desk`, `/weather` and `/trains`; gRPC callers name the tenant.
"""

import os

from a2a_grpc import Agent, RemoteAgent

BASE = os.environ.get("BASE", "http://127.0.0.1:8080")
"""Where this server is for itself."""

WEATHER = {"rome": "sunny", "oslo": "snow"}
TRAINS = {"rome": "09:10", "oslo": "07:45"}


def known(table, name):
    """An agent that looks a city up in a table."""
    agent = Agent(name=name, description=f"Knows the {name.lower()} of Rome and Oslo.", version="1.0.0", skills=[])

    @agent.handle
    async def look_up(task):
        return table.get(task.text.lower(), "unknown")

    return agent


desk = Agent(name="Desk", description="Plans a trip by asking two other agents.", version="1.0.0", skills=[])


@desk.handle
async def plan(task):
    async with RemoteAgent(f"{BASE}/weather") as weather, RemoteAgent(f"{BASE}/trains") as trains:
        sky = await task.delegate(weather, task.text)
        await task.working(f"{task.text} will have: {sky.text}")
        leaves = await task.delegate(trains, task.text)
    return f"{task.text}: {sky.text}, the train leaves at {leaves.text}."


agents = {"desk": desk, "weather": known(WEATHER, "Weather"), "trains": known(TRAINS, "Trains")}
