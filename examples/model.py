"""An agent backed by a language model, on any endpoint that speaks OpenAI's chat API, a local one too.

BASE_URL, MODEL and KEY come from the environment; words are streamed as the model writes them.
"""

import os

from a2a_grpc import Agent
from a2a_grpc.adapters.openai_chat import openai_chat

agent = Agent(name="Assistant", description="Answers questions.", version="1.0.0", skills=[])
agent.handle(
    openai_chat(
        os.environ.get("BASE_URL", "http://127.0.0.1:11434/v1"),
        os.environ.get("MODEL", "llama3.2"),
        key=os.environ.get("KEY", ""),
        system="You are a friendly assistant. Answer in one sentence.",
    )
)
