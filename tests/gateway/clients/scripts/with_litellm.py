"""litellm as an app uses it: a prefix on the model, a base URL and a key from the environment."""

import asyncio
import json

import litellm
from pydantic import BaseModel

ASK = [{"role": "user", "content": "How is the weather?"}]


class Weather(BaseModel):
    city: str
    degrees: int


PLACE = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOL = {"type": "function", "function": {"name": "look_up", "description": "Looks it up.", "parameters": PLACE}}


def ask(**options):
    return litellm.completion(model="openai/gpt-4o", **{"messages": ASK} | options)


async def streamed():
    pieces = await litellm.acompletion(model="openai/gpt-4o", messages=ASK, stream=True)
    return "".join([piece.choices[0].delta.content or "" async for piece in pieces])


plain = ask()
call = ask(tools=[TOOL]).choices[0].message.tool_calls[0]
chunks = list(ask(stream=True, stream_options={"include_usage": True}))
try:
    litellm.completion(model="openai/gpt-9", messages=ASK)
    error = None
except litellm.NotFoundError as refused:
    error = str(refused)
print(json.dumps({
    "plain": plain.choices[0].message.content,
    "usage": plain.usage.total_tokens,
    "streamed": litellm.stream_chunk_builder(chunks, messages=ASK).choices[0].message.content,
    "streamed_usage": [chunk.usage.total_tokens for chunk in chunks if getattr(chunk, "usage", None)][-1],
    "asynchronous": asyncio.run(streamed()),
    "structured": json.loads(ask(response_format=Weather).choices[0].message.content),
    "tool": json.loads(call.function.arguments),
    "embedding": litellm.embedding(model="openai/gpt-4o", input=["hi"]).data[0]["embedding"],
    "error": error,
}))  # fmt: skip
