// The official OpenAI client for Node.js against a memlocal whose address is given. Exits with an error at the first surprise.

const assert = require("node:assert/strict");
const OpenAI = require("openai").default;

const client = new OpenAI({ baseURL: process.argv[2], apiKey: "none", maxRetries: 0 });
const MODEL = "smollm2-135m-instruct:q4_1";
const EMBEDDER = "all-minilm-l6-v2:f32";
const messages = [{ role: "user", content: "Name three colours of the rainbow." }];
const greedy = { model: MODEL, messages, temperature: 0, max_tokens: 24 };
const schema = {
  type: "object",
  properties: { colours: { type: "array", items: { enum: ["red", "green", "blue"] }, maxItems: 3 } },
  required: ["colours"],
  additionalProperties: false,
};

async function main() {
  const models = [];
  for await (const model of client.models.list()) models.push(model.id);
  assert.deepEqual(models, [MODEL, EMBEDDER]);

  const whole = await client.chat.completions.create(greedy);
  const text = whole.choices[0].message.content;
  assert.ok(text && whole.usage.completion_tokens <= 24, JSON.stringify(whole));

  let streamed = "";
  let usage;
  const options = { stream: true, stream_options: { include_usage: true } };
  for await (const chunk of await client.chat.completions.create({ ...greedy, ...options })) {
    streamed += chunk.choices[0]?.delta?.content ?? "";
    usage = chunk.usage ?? usage;
  }
  assert.equal(streamed, text);
  assert.equal(usage.completion_tokens, whole.usage.completion_tokens);

  const helper = client.chat.completions.stream(greedy);
  assert.equal(await helper.finalContent(), text, "the helper that gathers a stream");

  const stopped = await client.chat.completions.create({ ...greedy, stream: true });
  for await (const chunk of stopped) {
    if (chunk.choices[0]?.delta?.content) break; // which closes the connection
  }

  const format = { type: "json_schema", json_schema: { name: "colours", strict: true, schema } };
  const formed = await client.chat.completions.create({ ...greedy, response_format: format });
  assert.ok(Array.isArray(JSON.parse(formed.choices[0].message.content).colours));

  const tools = [{ type: "function", function: { name: "paint", description: "Paints a wall.", parameters: schema } }];
  const called = await client.chat.completions.create({ ...greedy, max_tokens: 64, tools, tool_choice: "required" });
  const call = called.choices[0].message.tool_calls[0];
  assert.equal(call.function.name, "paint");
  const history = [...messages, called.choices[0].message, { role: "tool", tool_call_id: call.id, content: "Painted." }];
  await client.chat.completions.create({ model: MODEL, messages: history, max_tokens: 8 });

  const vectors = await client.embeddings.create({ model: EMBEDDER, input: ["a red wall", "a blue sea"] });
  assert.deepEqual(vectors.data.map((one) => one.embedding.length), [384, 384]);
  assert.ok(Math.abs(Math.hypot(...vectors.data[0].embedding) - 1) < 1e-3);

  const response = await client.responses.create({ model: MODEL, input: "Name a colour.", max_output_tokens: 8 });
  assert.equal((await client.responses.retrieve(response.id)).output_text, response.output_text);
  const next = { model: MODEL, input: "Another?", previous_response_id: response.id, max_output_tokens: 8, stream: true };
  const kinds = [];
  for await (const event of await client.responses.create(next)) kinds.push(event.type);
  assert.equal(kinds[0], "response.created");
  await client.responses.delete(response.id);
  await assert.rejects(client.responses.retrieve(response.id), OpenAI.NotFoundError);

  await assert.rejects(client.chat.completions.create({ model: "gpt-9", messages }), OpenAI.NotFoundError);
  const long = [{ role: "user", content: "word ".repeat(9000) }];
  await assert.rejects(client.chat.completions.create({ model: MODEL, messages: long, max_tokens: 5 }), (error) => {
    assert.ok(error instanceof OpenAI.BadRequestError && error.code === "context_length_exceeded", String(error));
    return true;
  });
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
