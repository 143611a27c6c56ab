"""instructor as an app uses it: base URL and key from the environment."""

import asyncio
import json
from collections.abc import Iterable

import instructor
from instructor.core.exceptions import InstructorRetryException
from openai import AsyncOpenAI, OpenAI
from pydantic import BaseModel

ASK = [{"role": "user", "content": "How is the weather?"}]


class Weather(BaseModel):
    city: str
    degrees: int


client = instructor.from_openai(OpenAI(max_retries=0))
weather, completion = client.chat.completions.create_with_completion(
    model="gpt-4o", messages=ASK, response_model=Weather
)
by_schema = instructor.from_openai(OpenAI(), mode=instructor.Mode.JSON_SCHEMA)


async def asynchronous() -> dict[str, object]:
    app = instructor.from_openai(AsyncOpenAI())
    return (await app.chat.completions.create(model="gpt-4o", messages=ASK, response_model=Weather)).model_dump()


def ask(app, kind):
    return app.chat.completions.create(model="gpt-4o", messages=ASK, response_model=kind)


partials = list(client.chat.completions.create_partial(model="gpt-4o", messages=ASK, response_model=Weather))
try:
    client.chat.completions.create(model="gpt-9", messages=ASK, response_model=Weather, max_retries=1)
    error = None
except InstructorRetryException as refused:
    error = str(refused)
print(json.dumps({
    "structured_by_tool": weather.model_dump(),
    "usage": completion.usage.total_tokens,
    "structured": ask(by_schema, Weather).model_dump(),
    "several": [found.model_dump() for found in ask(client, Iterable[Weather])],
    "partial": partials[-1].model_dump(),
    "asynchronous_object": asyncio.run(asynchronous()),
    "error": error,
}))  # fmt: skip
