"""LangChain against a memlocal whose address is given. Exits with an error at the first surprise."""

import math
import sys

from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from pydantic import BaseModel, Field

URL = sys.argv[1]
MODEL, EMBEDDER = "smollm2-135m-instruct:q4_1", "all-minilm-l6-v2:f32"
QUESTION = "Name three colours of the rainbow."


class Colour(BaseModel):
    """A colour of the rainbow."""

    name: str = Field(max_length=20)
    warm: bool


def paint(wall: str) -> str:
    """Paints a wall."""
    return f"{wall} is painted"


model = ChatOpenAI(base_url=URL, api_key="none", model=MODEL, temperature=0, max_tokens=24, max_retries=0)

whole = model.invoke(QUESTION)
assert whole.content and 0 < whole.usage_metadata["output_tokens"] <= 24, whole
pieces = list(model.stream(QUESTION))
assert "".join(piece.content for piece in pieces) == whole.content and len(pieces) > 4, pieces
both = model.batch([QUESTION, [("system", "Be short."), ("human", QUESTION)]])
assert both[0].content == whole.content and both[1].content

formed = model.with_structured_output(Colour, method="json_schema").invoke(QUESTION)
assert isinstance(formed, Colour), formed

called = model.bind_tools([paint], tool_choice="required").invoke("Paint the north wall.")
assert called.tool_calls[0]["name"] == "paint" and isinstance(called.tool_calls[0]["args"]["wall"], str), called

# Otherwise it would send the tokens of one of OpenAI's models.
embedder = OpenAIEmbeddings(base_url=URL, api_key="none", model=EMBEDDER, check_embedding_ctx_length=False)
vectors = embedder.embed_documents(["a red wall", "a blue sea"])
assert [len(vector) for vector in vectors] == [384, 384]
query = embedder.embed_query("a red wall")
assert math.isclose(math.dist(query, vectors[0]), 0, abs_tol=1e-6)

# A corpus as the model.
import corpus  # noqa: E402

corpus.prepared(URL.removesuffix("/v1"))
memory = ChatOpenAI(base_url=URL, api_key="none", model=corpus.MODEL, max_retries=0)
assert corpus.has_sources(memory.invoke(corpus.QUESTION).content)
assert corpus.has_sources("".join(piece.content for piece in memory.stream(corpus.QUESTION)))
responding = ChatOpenAI(base_url=URL, api_key="none", model=corpus.MODEL, max_retries=0, use_responses_api=True)
[part] = [part for part in responding.invoke(corpus.QUESTION).content if part["type"] == "text"]
assert corpus.has_sources(part["text"]) and part["annotations"], part
