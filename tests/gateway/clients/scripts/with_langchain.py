"""langchain-openai as an app uses it: base URL and key from the environment."""

import asyncio
import json

import openai
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from pydantic import BaseModel

ASK = [HumanMessage("How is the weather?")]


class Weather(BaseModel):
    """The weather of a city."""

    city: str
    degrees: int


@tool
def look_up(city: str) -> str:
    """Looks up the weather of a city."""
    return f"21 degrees in {city}"


model = ChatOpenAI(model="gpt-4o", max_retries=0)
plain = model.invoke(ASK)
pieces = list(ChatOpenAI(model="gpt-4o", stream_usage=True).stream(ASK))
whole = sum(pieces[1:], pieces[0])


async def streamed() -> str:
    return "".join([piece.text async for piece in model.astream(ASK)])


with_tools = model.bind_tools([look_up])
called = with_tools.invoke(ASK)
assert isinstance(called, AIMessage)
result = look_up.invoke(called.tool_calls[0])
assert isinstance(result, ToolMessage)
try:
    ChatOpenAI(model="gpt-9", max_retries=0).invoke(ASK)
    error = None
except openai.NotFoundError as refused:
    error = str(refused)
print(json.dumps({
    "plain": plain.text,
    "usage": plain.usage_metadata["total_tokens"],
    "streamed": whole.text,
    "streamed_usage": whole.usage_metadata["total_tokens"],
    "asynchronous": asyncio.run(streamed()),
    "structured": model.with_structured_output(Weather).invoke(ASK).model_dump(),
    "structured_by_tool": model.with_structured_output(Weather, method="function_calling").invoke(ASK).model_dump(),
    "tool": called.tool_calls[0]["args"],
    "after_tool": with_tools.invoke([*ASK, called, result]).text,
    "responses": ChatOpenAI(model="gpt-4o", use_responses_api=True).invoke(ASK).text,
    "embedding": OpenAIEmbeddings(model="gpt-4o", check_embedding_ctx_length=False).embed_query("hi"),
    "error": error,
}))  # fmt: skip
