"""pydantic-ai as an app uses it: base URL and key from the environment."""

import asyncio
import json

from pydantic import BaseModel
from pydantic_ai import Agent, ModelHTTPError, NativeOutput

ASK = "How is the weather?"


class Weather(BaseModel):
    city: str
    degrees: int


def look_up(city: str) -> str:
    """Looks up the weather of a city."""
    asked.append(city)
    return f"21 degrees in {city}"


async def streamed(agent):
    async with agent.run_stream(ASK) as answer:
        return "".join([piece async for piece in answer.stream_text(delta=True)])


asked: list[str] = []
plain = Agent("openai-chat:gpt-4o", instructions="Be short.").run_sync(ASK)
usage = plain.usage() if callable(plain.usage) else plain.usage
after_tool = Agent("openai-chat:gpt-4o", tools=[look_up]).run_sync(ASK)
try:
    Agent("openai-chat:gpt-9").run_sync(ASK)
    error = None
except ModelHTTPError as refused:
    error = f"{refused.status_code} {refused.body}"
print(json.dumps({
    "plain": plain.output,
    "usage": usage.total_tokens,
    "streamed": asyncio.run(streamed(Agent("openai-chat:gpt-4o"))),
    "structured_by_tool": Agent("openai-chat:gpt-4o", output_type=Weather).run_sync(ASK).output.model_dump(),
    "structured": Agent("openai-chat:gpt-4o", output_type=NativeOutput(Weather)).run_sync(ASK).output.model_dump(),
    "after_tool": after_tool.output,
    "tool": {"city": asked[0]},
    "responses": Agent("openai-responses:gpt-4o").run_sync(ASK).output,
    "error": error,
}))  # fmt: skip
