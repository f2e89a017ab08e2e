"""The official Ollama client against a memlocal whose address is given. Exits with an error at the first surprise."""

import json
import sys

import ollama

client = ollama.Client(host=sys.argv[1])
MODEL, EMBEDDER = "smollm2-135m-instruct:q4_1", "all-minilm-l6-v2:f32"
GREEDY = {"temperature": 0, "num_predict": 16}
QUESTION = [{"role": "user", "content": "Name three colours of the rainbow."}]

models = client.list().models
assert [model.model for model in models] == [MODEL, EMBEDDER]
details = models[0].details
assert (details.format, details.family, details.parameter_size) == ("gguf", "llama", "134.48M"), details
assert details.quantization_level == "Q4_1" and models[0].size > 50_000_000 and len(models[0].digest) == 64, models[0]
assert models[1].details.family == "bert" and models[1].details.quantization_level == "F32", models[1]
running = client.ps().models
assert [model.model for model in running] == [MODEL, EMBEDDER] and running[0].expires_at.year == 9999, running
shown = client.show(MODEL)
assert shown.capabilities == ["completion", "tools"] and shown.modelinfo["llama.context_length"] > 0, shown
assert "<|im_start|>" in shown.template, shown
assert client.show(EMBEDDER).capabilities == ["embedding"]
assert [part.status for part in client.pull(MODEL, stream=True)][-1] == "success"
assert client.generate(model=MODEL, keep_alive=0).done_reason == "unload"
assert [model.model for model in client.ps().models] == [EMBEDDER], "a model of the start leaves"
assert client.chat(model=MODEL, messages=[]).done_reason == "load"
assert client.ps().models[0].expires_at.year == 9999, "and comes back to stay"
client.generate(model=MODEL, keep_alive=0)
whole = client.chat(model=MODEL, messages=QUESTION, options=GREEDY)
streamed = "".join(part.message.content for part in client.chat(model=MODEL, messages=QUESTION, options=GREEDY, stream=True))
assert whole.message.content == streamed and whole.done and 0 < whole.eval_count <= 16, whole
assert client.generate(model=MODEL, prompt="Name a colour.", options=GREEDY).response
formed = client.generate(model=MODEL, prompt="Name a colour.", options={"temperature": 0, "num_predict": 64}, format="json")
assert isinstance(json.loads(formed.response), dict), formed
vectors = client.embed(model=EMBEDDER, input=["a red wall", "a blue sea"]).embeddings
assert [len(vector) for vector in vectors] == [384, 384]
[short] = client.embed(model=EMBEDDER, input="a red wall " * 1000, dimensions=64).embeddings
assert len(short) == 64 and abs(sum(x * x for x in short) - 1) < 1e-3, short
assert len(client.embeddings(model=EMBEDDER, prompt="a red wall").embedding) == 384
tokens = client.generate(model=MODEL, prompt="Name a colour.", options=GREEDY, logprobs=True, top_logprobs=2).logprobs
assert tokens and len(tokens[0].top_logprobs) == 2 and tokens[0].logprob <= 0, tokens
for refused in [
    lambda: client.generate(model=MODEL, prompt="a", suffix="b"),
    lambda: client.chat(model=MODEL, messages=QUESTION, think=True),
    lambda: client.chat(model=MODEL, messages=[{"role": "user", "content": "?", "images": [b"iVBORw0K"]}]),
    lambda: client.embed(model=EMBEDDER, input="a red wall " * 1000, truncate=False),
    lambda: client.create(model="mine", from_=MODEL, template="{{ .Prompt }}"),
    lambda: client.create(model="mine", from_=MODEL, parameters={"temperature": -1}),
    lambda: client.create(model="mine", from_="/none.gguf"),
]:
    try:
        refused()
    except ollama.ResponseError as error:
        assert error.status_code == 400 and not error.error.startswith("{"), error
    else:
        raise AssertionError("a refusal was expected")
try:
    client.chat(model="gpt-9", messages=QUESTION)
except ollama.ResponseError as error:
    assert error.status_code == 404 and error.error == "model 'gpt-9' not found", error
else:
    raise AssertionError("an unknown model was expected to be refused")
for status, refused in [
    (404, lambda: client.pull("gpt-9")),
    (404, lambda: client.copy("gpt-9", "mine")),
    (404, lambda: client.delete("gpt-9")),
    # The server was started with it, whatever it is called.
    (409, lambda: client.delete(MODEL)),
    (409, lambda: client.delete("smollm2-135m")),
]:
    try:
        refused()
    except ollama.ResponseError as error:
        assert error.status_code == status, error
    else:
        raise AssertionError("a refusal was expected")

# A GGUF file becomes a model, which is loaded on demand and leaves again.
GGUF = sys.argv[2]
names = lambda listed: [model.model for model in listed.models]  # noqa: E731
assert client.create(model="mine", from_=GGUF).status == "success"
assert "mine:latest" in names(client.list()) and "mine:latest" not in names(client.ps())
assert client.show("mine").modelinfo["general.architecture"] == "llama"
other = client.chat(model="mine", messages=QUESTION, options=GREEDY, keep_alive="1h")
assert other.model == "mine" and other.message.content == whole.message.content and other.load_duration > 0, other
mine = next(model for model in client.ps().models if model.model == "mine:latest")
assert mine.expires_at.year < 9999 and mine.size > 50_000_000, mine
assert client.generate(model="mine", keep_alive=0).done_reason == "unload"
assert "mine:latest" not in names(client.ps())
assert client.generate(model="mine").done_reason == "load" and "mine:latest" in names(client.ps())
client.copy("mine", "yours")
client.delete("mine")
assert "mine:latest" not in names(client.list()) and "mine:latest" not in names(client.ps())
client.create(model="uploaded", files={"a.gguf": client.create_blob(GGUF)})
assert client.generate(model="uploaded", prompt="Name a colour.", options=GREEDY).response
client.delete("uploaded")
client.copy(MODEL, "same")
same = client.chat(model="same", messages=QUESTION, options=GREEDY)
assert same.model == "same" and same.message.content == whole.message.content, same
assert "same:latest" not in names(client.ps()), "it is the model of the start"
# A name with a system message and options, which apply where a request gives none.
client.create(model="brief", from_=MODEL, system="Be brief.", parameters=GREEDY)
system = [{"role": "system", "content": "Be brief."}]
brief, spelt = client.chat(model="brief", messages=QUESTION), client.chat(model=MODEL, messages=system + QUESTION, options=GREEDY)
assert brief.message.content == spelt.message.content and brief.eval_count == spelt.eval_count, (brief, spelt)
assert brief.prompt_eval_count != whole.prompt_eval_count, "the system message is in the prompt"
assert "num_predict 16" in client.show("brief").parameters, client.show("brief")
for name in ["brief", "same", "yours"]:
    client.delete(name)
assert names(client.list()) == [MODEL, EMBEDDER]


def paint(wall: str) -> str:
    """Paints a wall."""
    return f"{wall} is painted"


tools = {"model": MODEL, "tools": [paint], "options": {"temperature": 0, "num_predict": 64}}
called = client.chat(messages=[{"role": "user", "content": "Paint the north wall with the tool."}], **tools)
history = [{"role": "user", "content": "Paint."}, {"role": "assistant", "tool_calls": [{"function": {"name": "paint", "arguments": {"wall": "a"}}}]}, {"role": "tool", "tool_name": "paint", "content": "Painted."}]
assert called.message.role == "assistant" and client.chat(messages=history, **tools).done

# A corpus as the model.
import corpus  # noqa: E402

corpus.prepared(sys.argv[1])
assert corpus.MODEL in [model.model for model in client.list().models]
assert client.show(corpus.MODEL).modelinfo["memlocal.context_length"] > 0
asked = {"model": corpus.MODEL, "messages": [{"role": "user", "content": corpus.QUESTION}]}
whole = client.chat(**asked)
assert corpus.has_sources(whole.message.content) and "Searched" in whole.message.thinking, whole
parts = list(client.chat(**asked, stream=True))
assert "".join(part.message.content or "" for part in parts) == whole.message.content and parts[-1].done, parts
assert corpus.has_sources(client.generate(model="lamp:quick", prompt=corpus.QUESTION).response)
