# call.py
"""Asks an agent on whatever wire it prefers, and prints the answer as it comes. Usage: call.py URL WORDS"""

import asyncio
import sys

from a2a_grpc import RemoteAgent


async def main(url: str, words: str) -> None:
    """Print the pieces of the answer, then how the task ended."""
    async with RemoteAgent(url, timeout=60) as agent:
        async for update in agent.stream(words):
            if update.kind == "text":
                print(update.text, end="")
        print()


asyncio.run(main(*sys.argv[1:]))
