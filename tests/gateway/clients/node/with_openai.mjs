// The openai package for Node as an app uses it: base URL and key from the environment.
import assert from "node:assert/strict";
import OpenAI, { AuthenticationError, NotFoundError, toFile } from "openai";
import { zodFunction, zodResponseFormat } from "openai/helpers/zod";
import { z } from "zod";

const Weather = z.object({ city: z.string(), degrees: z.number() });
const Place = z.object({ city: z.string() });
const ask = { model: "gpt-4o", messages: [{ role: "user", content: "How is the weather?" }] };
const app = new OpenAI({ maxRetries: 0 });
const got = {};

const plain = await app.chat.completions.create(ask);
got.plain = plain.choices[0].message.content;
got.usage = plain.usage.total_tokens;

got.streamed = "";
for await (const chunk of await app.chat.completions.create({ ...ask, stream: true })) {
  assert.equal(chunk.choices.length, 1);
  got.streamed += chunk.choices[0].delta.content ?? "";
}
const stream = app.chat.completions.stream({ ...ask, stream_options: { include_usage: true } });
const final = await stream.finalChatCompletion();
assert.equal(final.choices[0].message.content, got.streamed);
got.streamed_usage = final.usage.total_tokens;

const parsed = await app.chat.completions.parse({ ...ask, response_format: zodResponseFormat(Weather, "weather") });
got.structured = parsed.choices[0].message.parsed;

const asked = [];
const lookUp = (place) => (asked.push(place), `21 degrees in ${place.city}`);
const tools = [zodFunction({ name: "look_up", parameters: Place, function: lookUp })];
got.after_tool = await app.chat.completions.runTools({ ...ask, tools }).finalContent();
got.tool = asked[0];
const byStream = await app.chat.completions.runTools({ ...ask, tools, stream: true }).finalContent();
assert.equal(byStream, got.after_tool);

got.responses = (await app.responses.create({ model: "gpt-4o", input: "How is the weather?" })).output_text;
const events = app.responses.stream({ model: "gpt-4o", input: "How is the weather?" });
assert.equal((await events.finalResponse()).output_text, got.responses);

got.embedding = (await app.embeddings.create({ model: "gpt-4o", input: "hi", encoding_format: "float" })).data[0].embedding;
const file = await toFile(Buffer.alloc(300_000, 7), "speech.wav");
got.transcription = (await app.audio.transcriptions.create({ model: "gpt-4o", file })).text;
got.models = [];
for await (const model of app.models.list()) got.models.push(model.id);

await assert.rejects(new OpenAI({ apiKey: "sd-wrong" }).models.list(), AuthenticationError);
got.error = await app.chat.completions.create({ ...ask, model: "gpt-9" }).catch((error) => {
  assert(error instanceof NotFoundError);
  return error.message;
});
const { response } = await app.chat.completions.create(ask).withResponse();
assert.equal(response.headers.get("x-request-id"), "req_7");

console.log(JSON.stringify(got));
