// The AI SDK as an app uses it, through both of its providers for this wire: base URL and key, nothing else.
import assert from "node:assert/strict";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { APICallError, embed, generateText, isStepCount, Output, streamText, tool } from "ai";
import { z } from "zod";

const baseURL = process.env.OPENAI_BASE_URL;
const apiKey = process.env.OPENAI_API_KEY;
const prompt = "How is the weather?";
const Weather = z.object({ city: z.string(), degrees: z.number() });
const got = {};

async function text(result) {
  let all = "";
  for await (const piece of result.textStream) all += piece;
  return all;
}

async function everyWay(model) {
  const plain = await generateText({ model, prompt });
  const streamed = streamText({ model, prompt });
  const asked = [];
  const look_up = tool({
    description: "Looks up the weather of a city.",
    inputSchema: z.object({ city: z.string() }),
    execute: (place) => (asked.push(place), `21 degrees in ${place.city}`),
  });
  const stopWhen = isStepCount(3);
  const shaped = await generateText({ model, prompt, output: Output.object({ schema: Weather }) });
  return {
    plain: plain.text,
    usage: plain.usage.totalTokens,
    streamed: await text(streamed),
    streamed_usage: (await streamed.usage).totalTokens,
    structured: shaped.output,
    after_tool: (await generateText({ model, prompt, tools: { look_up }, stopWhen })).text,
    after_tool_streamed: await text(streamText({ model, prompt, tools: { look_up }, stopWhen })),
    tool: asked[0],
  };
}

const compatible = createOpenAICompatible({
  name: "stepdown", baseURL, apiKey, includeUsage: true, supportsStructuredOutputs: true,
});
Object.assign(got, await everyWay(compatible("gpt-4o")));
const openai = createOpenAI({ baseURL, apiKey });
assert.deepEqual(await everyWay(openai.chat("gpt-4o")), got);
got.responses = (await everyWay(openai("gpt-4o"))).streamed;
got.embedding = (await embed({ model: openai.embedding("gpt-4o"), value: "hi" })).embedding;
got.error = await generateText({ model: compatible("gpt-9"), prompt, maxRetries: 0 }).catch((error) => {
  assert(APICallError.isInstance(error));
  assert.equal(error.statusCode, 404);
  return error.message;
});

console.log(JSON.stringify(got));
