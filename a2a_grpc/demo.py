"""The agent of `a2a-grpc serve` without a target: order look-up for a small shop, without a model, key or network.

Laws: this is example code to copy from; it uses the public API alone, as an author would.
"""

import asyncio
import re
from typing import Final

from a2a_grpc.agent import Agent, Skill, TaskHandle

ORDERS: Final = {
    "1001": {"order": "1001", "item": "teapot", "state": "shipped", "arrives": "tomorrow"},
    "1002": {"order": "1002", "item": "desk lamp", "state": "being packed", "arrives": "in three days"},
    "1003": {"order": "1003", "item": "bicycle bell", "state": "delivered", "arrives": "already"},
}
"""What the shop knows, by order number."""

WANTED: Final = {"type": "object", "properties": {"order": {"type": "string"}}, "required": ["order"]}
NUMBER: Final = re.compile(r"\b\d{4,}\b")
ABOUT_ORDERS: Final = re.compile(r"\b(order|it|parcel|package|deliver\w*|ship\w*|arrive\w*)\b", re.IGNORECASE)

agent: Final = Agent(
    name="Order Lookup",
    description="Tells where an order of the demo shop is. Known orders: 1001, 1002 and 1003.",
    version="1.0.0",
    skills=[
        Skill(
            id="lookup",
            name="Look up an order",
            description="Finds an order by its number and tells its state and arrival.",
            tags=["orders", "demo"],
            examples=["Where is order 1001?", "When does it arrive?"],
        )
    ],
)
"""The demo agent."""


@agent.handle
async def lookup(task: TaskHandle) -> None:
    """One turn: find out which order is meant, then tell about it."""
    question = f"{task.text} {task.data or ''}"
    if found := NUMBER.search(question):
        number = found[0]
    elif task.answer is None and not ABOUT_ORDERS.search(question):
        await task.reject("Sorry, I only know about orders. Try: Where is order 1001?")
        return
    elif remembered := await task.context.memory.get("order"):
        number = str(remembered)  # "it" is the order this conversation was about
    else:
        await task.ask("Which order do you mean? Its number has four digits.", schema=WANTED)
        return

    await task.working("Checking the order...")
    order = ORDERS.get(number)
    if order is None:
        await task.fail(f"There is no order {number}. I know {', '.join(ORDERS)}.")
        return

    await task.context.memory.set("order", number)
    async with task.artifact(name="answer") as out:
        await out.write(order)
        for word in f"Order {number}: your {order['item']} is {order['state']}, it arrives {order['arrives']}.".split():
            await out.write(word + " ")
            await asyncio.sleep(0.02)  # a model would take its time, too
    await task.complete()
