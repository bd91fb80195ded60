"""An agent that makes files: a table as CSV, and a picture of it, from numbers in the message."""

import csv
import io
import re

from a2a_stubs import v1

from a2a_grpc import Agent

BAR = '<rect x="{x}" y="{y}" width="18" height="{height}" fill="#2457c5"/>'

agent = Agent(
    name="Chart",
    description="Turns the numbers of a message into a table and a bar chart.",
    version="1.0.0",
    skills=[],
    default_output_modes=["text/csv", "image/svg+xml", "text/plain"],
)


@agent.handle
async def draw(task):
    numbers = [int(word) for word in re.findall(r"\d+", task.text)]
    if not numbers:
        await task.reject("There are no numbers in your message")
        return
    table = io.StringIO()
    csv.writer(table).writerows([("place", "number"), *enumerate(numbers, 1)])
    await task.add_artifact(
        v1.Part(raw=table.getvalue().encode(), media_type="text/csv", filename="numbers.csv"), name="table"
    )
    await task.working("drawing")
    scale = 100 / max(*numbers, 1)
    bars = [BAR.format(x=20 * at, y=100 - n * scale, height=n * scale) for at, n in enumerate(numbers)]
    picture = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {20 * len(numbers)} 100">{"".join(bars)}</svg>'
    await task.add_artifact(
        v1.Part(raw=picture.encode(), media_type="image/svg+xml", filename="numbers.svg"), name="chart"
    )
