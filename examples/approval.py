"""A purchase that somebody has to approve: a pause with a form, and a decision that may come a week later.

Serve it with `a2a-grpc serve approval:agent`, and answer the form in the inspector or with `a2a-grpc chat`.
"""

from a2a_grpc import Agent, Skill

LIMIT = 100
DECISION = {
    "type": "object",
    "required": ["approved"],
    "properties": {
        "approved": {"type": "boolean", "title": "Approved"},
        "note": {"type": "string", "title": "Note to the buyer"},
    },
}

agent = Agent(
    name="Purchases",
    description="Buys what is cheap at once, and what is not after somebody has approved it.",
    version="1.0.0",
    skills=[
        Skill(
            id="buy",
            name="Buy",
            description="Buys an item for an amount.",
            tags=["shopping"],
            examples=["a desk for 250"],
        )
    ],
)


@agent.handle
async def buy(task):
    if task.answer is None:
        item, _, amount = task.text.rpartition(" for ")
        if not (item and amount.isdigit()):
            await task.reject("Say what to buy and for how much, such as: a desk for 250")
        elif int(amount) <= LIMIT:
            await task.complete(f"Bought {item}.")
        else:
            task.state["item"] = item  # kept with the task, in the store
            await task.ask(f"May I buy {item} for {amount}?", schema=DECISION)
    elif task.answer["approved"]:
        await task.complete(f"Bought {task.state['item']}.")
    else:
        await task.fail(f"Not bought: {task.answer.get('note') or 'it was not approved'}.")
