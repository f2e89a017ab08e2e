"""The official Ollama client against a memlocal whose address is given. Exits with an error at the first surprise."""

import json
import sys

import ollama

client = ollama.Client(host=sys.argv[1])
MODEL, EMBEDDER = "smollm2-135m-instruct:q4_1", "all-minilm-l6-v2:f32"
GREEDY = {"temperature": 0, "num_predict": 16}
QUESTION = [{"role": "user", "content": "Name three colours of the rainbow."}]

assert [model.model for model in client.list().models] == [MODEL, EMBEDDER]
whole = client.chat(model=MODEL, messages=QUESTION, options=GREEDY)
streamed = "".join(part.message.content for part in client.chat(model=MODEL, messages=QUESTION, options=GREEDY, stream=True))
assert whole.message.content == streamed and whole.done and 0 < whole.eval_count <= 16, whole
assert client.generate(model=MODEL, prompt="Name a colour.", options=GREEDY).response
formed = client.generate(model=MODEL, prompt="Name a colour.", options={"temperature": 0, "num_predict": 64}, format="json")
assert isinstance(json.loads(formed.response), dict), formed
vectors = client.embed(model=EMBEDDER, input=["a red wall", "a blue sea"]).embeddings
assert [len(vector) for vector in vectors] == [384, 384]
try:
    client.chat(model="gpt-9", messages=QUESTION)
except ollama.ResponseError as error:
    assert error.status_code == 404, error
else:
    raise AssertionError("an unknown model was expected to be refused")
