"""The official Anthropic client against a memlocal whose address is given. Exits with an error at the first surprise."""

import sys

import anthropic

client = anthropic.Anthropic(base_url=sys.argv[1], api_key="none", max_retries=0)
MODEL = "smollm2-135m-instruct:q4_1"
QUESTION = [{"role": "user", "content": "Name three colours of the rainbow."}]
GREEDY = {"model": MODEL, "messages": QUESTION, "max_tokens": 24, "extra_body": {"temperature": 0}}

whole = client.messages.create(**GREEDY)
text = whole.content[0].text
assert text and 0 < whole.usage.output_tokens <= 24, whole
assert whole.stop_reason in ("end_turn", "max_tokens"), whole

with client.messages.stream(**GREEDY, system="") as stream:
    pieces = list(stream.text_stream)
    streamed = stream.get_final_message()
assert "".join(pieces) == streamed.content[0].text == text, (pieces, text)
assert len(pieces) > 4, "text comes in pieces"
assert (streamed.usage.output_tokens, streamed.stop_reason) == (whole.usage.output_tokens, whole.stop_reason)

counted = client.messages.count_tokens(model=MODEL, messages=QUESTION)
usage = whole.usage
assert counted.input_tokens == usage.input_tokens + usage.cache_read_input_tokens, (counted, usage)

word = text.split()[2]
stopped = client.messages.create(**GREEDY, stop_sequences=[word])
assert (stopped.stop_reason, stopped.stop_sequence) == ("stop_sequence", word), stopped
assert stopped.content[0].text == text[: text.index(word)], (stopped, text)

schema = {
    "type": "object",
    "properties": {"colours": {"type": "array", "items": {"enum": ["red", "green", "blue"]}, "maxItems": 3}, "sure": {"type": "boolean"}},
    "required": ["colours", "sure"],
    "additionalProperties": False,
}
tool = {"name": "paint", "description": "Paints a wall.", "input_schema": schema}
must = {**GREEDY, "max_tokens": 64, "tools": [tool], "tool_choice": {"type": "any", "disable_parallel_tool_use": True}}
called = client.messages.create(**must)
call = called.content[0]
assert called.stop_reason == "tool_use" and call.type == "tool_use" and call.name == "paint", called
assert set(call.input) == {"colours", "sure"}, call
with client.messages.stream(**must) as stream:
    for event in stream:
        pass
    again = stream.get_final_message()
assert again.content[0].input == call.input and again.stop_reason == "tool_use", again
result = {"type": "tool_result", "tool_use_id": call.id, "content": "Painted."}
history = [*QUESTION, {"role": "assistant", "content": called.content}, {"role": "user", "content": [result]}]
assert client.messages.create(model=MODEL, messages=history, tools=[tool], max_tokens=8).content

thinking = {"type": "enabled", "budget_tokens": 40}
thought = client.messages.create(model=MODEL, messages=QUESTION, max_tokens=80, thinking=thinking)
assert thought.content[0].type == "thinking", thought


def refused(error, kind, says, **request):
    try:
        client.messages.create(**{**GREEDY, **request})
    except error as refusal:
        assert refusal.body["error"]["type"] == kind and says in str(refusal), refusal
        return
    raise AssertionError(f"{kind} was expected")


refused(anthropic.NotFoundError, "not_found_error", "claude-9", model="claude-9")
long = [{"role": "user", "content": "word " * 9000}]
refused(anthropic.BadRequestError, "invalid_request_error", "8192", messages=long)
image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
refused(anthropic.BadRequestError, "invalid_request_error", "images are not supported", messages=[{"role": "user", "content": [image]}])

# A corpus as the model.
import corpus  # noqa: E402

corpus.prepared(sys.argv[1])
assert corpus.MODEL in [model.id for model in client.models.list(limit=1000)]
asked = {"model": corpus.MODEL, "messages": [{"role": "user", "content": corpus.QUESTION}], "max_tokens": 200}
[block] = client.messages.create(**asked).content
assert corpus.has_sources(block.text), block
assert block.citations[0].type == "char_location" and block.citations[0].cited_text == corpus.TEXT, block
with client.messages.stream(**asked, thinking={"type": "enabled", "budget_tokens": 50}) as stream:
    told = stream.get_final_message()
assert told.content[0].type == "thinking" and told.content[1].text == block.text, told
assert told.content[1].citations[0].document_title == corpus.NAME, told
