"""The official OpenAI client against a memlocal whose address is given. Exits with an error at the first surprise."""

import json
import math
import sys

import openai

client = openai.OpenAI(base_url=sys.argv[1], api_key="none", max_retries=0)
MODEL, EMBEDDER = "smollm2-135m-instruct:q4_1", "all-minilm-l6-v2:f32"
QUESTION = [{"role": "user", "content": "Name three colours of the rainbow."}]
GREEDY = {"model": MODEL, "messages": QUESTION, "temperature": 0, "max_tokens": 24}

assert [model.id for model in client.models.list()] == [MODEL, EMBEDDER]

whole = client.chat.completions.create(**GREEDY)
text = whole.choices[0].message.content
assert text and whole.usage.completion_tokens <= 24, whole
again = client.chat.completions.create(**GREEDY)
assert again.choices[0].message.content == text, "greedy answers are the same"
assert again.usage.prompt_tokens_details.cached_tokens > 0, again.usage

chunks = list(client.chat.completions.create(**GREEDY, stream=True, stream_options={"include_usage": True}))
streamed = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
assert streamed == text, (streamed, text)
assert chunks[-1].usage.completion_tokens == whole.usage.completion_tokens
assert len(chunks) > 4, "text comes in pieces"

word = text.split()[2]
stopped = client.chat.completions.create(**GREEDY, stop=[word])
assert stopped.choices[0].message.content == text[: text.index(word)], (stopped, text)
assert stopped.choices[0].finish_reason == "stop"
held = client.chat.completions.create(**GREEDY, stop=[word], stream=True)
assert "".join(chunk.choices[0].delta.content or "" for chunk in held) == text[: text.index(word)]

probable = client.chat.completions.create(**GREEDY, logprobs=True, top_logprobs=3)
tokens = probable.choices[0].logprobs.content
assert len(tokens) == probable.usage.completion_tokens
assert b"".join(bytes(token.bytes) for token in tokens).decode() == text
for token in tokens:
    assert len(token.top_logprobs) == 3 and token.top_logprobs[0].logprob >= token.logprob
    assert math.isclose(token.logprob, token.top_logprobs[0].logprob), "greedy decoding takes the most likely token"
    assert sum(math.exp(top.logprob) for top in token.top_logprobs) <= 1.0001

drawn = client.chat.completions.create(model=MODEL, messages=QUESTION, max_tokens=12, n=2, seed=7, temperature=1.5)
same = client.chat.completions.create(model=MODEL, messages=QUESTION, max_tokens=12, n=2, seed=7, temperature=1.5)
texts = [choice.message.content for choice in drawn.choices]
assert texts == [choice.message.content for choice in same.choices], "the same seed draws the same"
assert texts[0] != texts[1], "each choice draws for itself"

schema = {
    "type": "object",
    "properties": {"colours": {"type": "array", "items": {"enum": ["red", "green", "blue"]}, "maxItems": 3}, "sure": {"type": "boolean"}},
    "required": ["colours", "sure"],
    "additionalProperties": False,
}
form = {"type": "json_schema", "json_schema": {"name": "colours", "strict": True, "schema": schema}}
formed = json.loads(client.chat.completions.create(**GREEDY, response_format=form).choices[0].message.content)
assert set(formed) == {"colours", "sure"} and set(formed["colours"]) <= {"red", "green", "blue"}, formed
anything = client.chat.completions.create(**{**GREEDY, "max_tokens": 64}, response_format={"type": "json_object"})
assert isinstance(json.loads(anything.choices[0].message.content), dict)

tool = {"type": "function", "function": {"name": "paint", "description": "Paints a wall.", "parameters": schema}}
called = client.chat.completions.create(**{**GREEDY, "max_tokens": 64}, tools=[tool], tool_choice="required")
call = called.choices[0].message.tool_calls[0]
assert called.choices[0].finish_reason == "tool_calls" and call.function.name == "paint"
assert set(json.loads(call.function.arguments)) == {"colours", "sure"}
history = QUESTION + [called.choices[0].message.model_dump(), {"role": "tool", "tool_call_id": call.id, "content": "Painted."}]
assert client.chat.completions.create(model=MODEL, messages=history, max_tokens=8).choices[0].message.content is not None

gone_on = client.completions.create(model=MODEL, prompt="One, two, three,", max_tokens=6, temperature=0, logprobs=2)
assert gone_on.choices[0].text and len(gone_on.choices[0].logprobs.tokens) == gone_on.usage.completion_tokens

asked = {"model": MODEL, "input": "Name three colours of the rainbow.", "temperature": 0, "max_output_tokens": 24}
response = client.responses.create(**asked)
assert response.output_text == text and response.usage.output_tokens == whole.usage.completion_tokens, response
told = [event for event in client.responses.create(**asked, stream=True)]
assert "".join(event.delta for event in told if event.type == "response.output_text.delta") == text
assert told[-1].type in ("response.completed", "response.incomplete") and told[-1].response.output_text == text
handed_back = [{"role": "user", "content": asked["input"]}, *response.output, {"role": "user", "content": "And three more?"}]
assert client.responses.create(**{**asked, "input": handed_back}).output_text

packed = client.embeddings.create(model=EMBEDDER, input=["a red wall", "a blue sea"])
plain = client.embeddings.create(model=EMBEDDER, input=["a red wall", "a blue sea"], encoding_format="float")
for one, other in zip(packed.data, plain.data):
    assert len(one.embedding) == 384 and math.isclose(math.dist(one.embedding, other.embedding), 0, abs_tol=1e-6)
    assert math.isclose(math.hypot(*one.embedding), 1, rel_tol=1e-3)


def refused(error, code, ask):
    try:
        ask()
    except error as refusal:
        assert refusal.code == code, refusal
        return str(refusal)
    raise AssertionError(f"{code} was expected")


long = [{"role": "user", "content": "word " * 9000}]
for stream in [False, True]:
    said = refused(openai.BadRequestError, "context_length_exceeded", lambda: client.chat.completions.create(model=MODEL, messages=long, max_tokens=5, stream=stream))
    assert "8192" in said and "5 more" in said, said
refused(openai.BadRequestError, "context_length_exceeded", lambda: client.embeddings.create(model=EMBEDDER, input="word " * 600))
refused(openai.NotFoundError, "model_not_found", lambda: client.chat.completions.create(model="gpt-9", messages=QUESTION))
refused(openai.BadRequestError, "invalid_schema", lambda: client.chat.completions.create(
    **GREEDY, response_format={"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "no such type"}}}))

schema = {"type": "object", "properties": {"wall": {"type": "string", "maxLength": 20}}, "required": ["wall"], "additionalProperties": False}
function = {"type": "function", "name": "paint", "description": "Paints a wall.", "parameters": schema, "strict": True}
called = client.responses.create(model=MODEL, input="Paint it.", tools=[function], tool_choice="required", max_output_tokens=64)
[call] = [item for item in called.output if item.type == "function_call"][:1]
assert call.name == "paint" and "wall" in json.loads(call.arguments), called
result = [{"type": "function_call_output", "call_id": call.call_id, "output": "Painted."}]
after = client.responses.create(model=MODEL, input=result, tools=[function], tool_choice="none", previous_response_id=called.id, max_output_tokens=8)
assert after.previous_response_id == called.id and after.output_text, after
assert client.responses.retrieve(after.id) == after
assert [item.type for item in client.responses.input_items.list(after.id)] == ["function_call_output"]
client.responses.delete(after.id)
refused(openai.NotFoundError, "not_found", lambda: client.responses.retrieve(after.id))
begun = client.responses.create(**asked, background=True)
while begun.status == "in_progress":
    begun = client.responses.retrieve(begun.id)
assert begun.output_text == text, begun
thought = client.responses.create(model=MODEL, input="Why?", reasoning={"effort": "minimal"}, max_output_tokens=48)
assert thought.output[0].type == "reasoning", thought

# A corpus as the model.
import corpus  # noqa: E402

corpus.prepared(sys.argv[1].removesuffix("/v1"))
assert corpus.MODEL in [model.id for model in client.models.list()]
chat = {"model": corpus.MODEL, "messages": [{"role": "user", "content": corpus.QUESTION}]}
message = client.chat.completions.create(**chat).choices[0].message
assert corpus.has_sources(message.content), message
cited = message.annotations[0].url_citation
assert cited.title == corpus.NAME and message.content[cited.start_index : cited.end_index] == "[1]", message
assert "Searched" in message.reasoning_content, message
deltas = [chunk.choices[0].delta for chunk in client.chat.completions.create(**chat, stream=True) if chunk.choices]
assert "".join(delta.content or "" for delta in deltas) == message.content, deltas
follow_up = [*chat["messages"], message.model_dump(), {"role": "user", "content": "And for how long?"}]
assert client.chat.completions.create(model=corpus.MODEL, messages=follow_up).choices[0].message.content
response = client.responses.create(model=corpus.MODEL, input=corpus.QUESTION)
assert response.output_text == message.content, response
kinds = [annotation.type for annotation in response.output[-1].content[0].annotations]
assert kinds[:2] == ["url_citation", "file_citation"], response
events = list(client.responses.create(model=corpus.MODEL, input=corpus.QUESTION, stream=True))
assert events[-1].response.output_text == message.content, events
assert any(event.type == "response.output_text.annotation.added" for event in events), events

# Files, vector stores and file_search.
words = b"The old lamp stood in the hall. The lamp was made of green glass. Tom bought it in Lisbon."
file = client.files.create(file=("lamp.txt", words), purpose="assistants")
assert client.files.content(file.id).read() == words and file.id in [known.id for known in client.files.list()]
store = client.vector_stores.create(name="lamp notes")
attached = client.vector_stores.files.create_and_poll(vector_store_id=store.id, file_id=file.id)
assert attached.status == "completed", attached
assert client.vector_stores.retrieve(store.id).file_counts.completed == 1
found = list(client.vector_stores.search(store.id, query="What was the lamp made of?"))
assert found[0].filename == "lamp.txt" and "green glass" in found[0].content[0].text, found
search = {"type": "file_search", "vector_store_ids": [store.id]}
searched = client.responses.create(model=MODEL, input="What was the lamp made of?", tools=[search], include=["file_search_call.results"])
assert searched.output[0].type == "file_search_call" and searched.output[0].results[0].file_id == file.id, searched
assert "green glass" in searched.output_text, searched
cited = searched.output[-1].content[0].annotations[0]
assert (cited.type, cited.file_id) == ("file_citation", file.id), searched
with client.responses.stream(model=MODEL, input="What was the lamp made of?", tools=[search]) as stream:
    assert any(event.type == "response.file_search_call.completed" for event in stream)
client.vector_stores.files.delete(file.id, vector_store_id=store.id)
batch = client.vector_stores.file_batches.create_and_poll(store.id, file_ids=[file.id])
assert batch.status == "completed" and batch.file_counts.completed == 1, batch
client.vector_stores.delete(store.id)
client.files.delete(file.id)
refused(openai.NotFoundError, "not_found", lambda: client.files.retrieve(file.id))

# Conversations.
conversation = client.conversations.create(metadata={"a": "b"}, items=[{"type": "message", "role": "user", "content": "Good morning."}])
client.responses.create(model=MODEL, input="Say hello.", conversation=conversation.id, max_output_tokens=8)
roles = [item.role for item in client.conversations.items.list(conversation.id, order="asc")]
assert roles == ["user", "user", "assistant"], roles
assert client.conversations.update(conversation.id, metadata={"c": "d"}).metadata == {"c": "d"}
assert client.conversations.delete(conversation.id).deleted

# Batches: one bad line does not end the others.
bodies = [{"model": MODEL, "max_tokens": 4, "messages": QUESTION} for _ in range(2)]
calls = [{"custom_id": str(n), "method": "POST", "url": "/v1/chat/completions", "body": body} for n, body in enumerate(bodies)]
lines = "\n".join([*map(json.dumps, calls), "no json"]).encode()
file = client.files.create(file=("calls.jsonl", lines), purpose="batch")
batch = client.batches.create(input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h")
while batch.status not in ("completed", "failed", "cancelled"):
    batch = client.batches.retrieve(batch.id)
assert (batch.status, batch.request_counts.completed, batch.request_counts.failed) == ("completed", 2, 1), batch
replies = [json.loads(line) for line in client.files.content(batch.output_file_id).text.splitlines()]
assert {reply["custom_id"] for reply in replies} == {"0", "1"}, replies
assert all(reply["response"]["body"]["choices"][0]["message"]["content"] for reply in replies), replies
assert "line 3" in client.files.content(batch.error_file_id).text
