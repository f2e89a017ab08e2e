"""LangChain's and LlamaIndex' adapters for Ollama, and LangChain's for Anthropic, against a memlocal whose address is given. Exits
with an error at the first surprise."""

import sys

import corpus
from langchain_anthropic import ChatAnthropic
from langchain_ollama import ChatOllama, OllamaEmbeddings
from llama_index.core.llms import ChatMessage
from llama_index.llms.ollama import Ollama

URL = sys.argv[1]
MODEL, EMBEDDER = "smollm2-135m-instruct:q4_1", "all-minilm-l6-v2:f32"


def paint(wall: str) -> str:
    """Paints a wall."""
    return f"{wall} is painted"


plain = ChatOllama(base_url=URL, model=MODEL, temperature=0, num_predict=24, validate_model_on_init=True)
assert plain.invoke("Name three colours.").content
assert plain.bind_tools([paint]).invoke("Paint the north wall.").response_metadata["done"]
assert len(OllamaEmbeddings(base_url=URL, model=EMBEDDER).embed_query("a red wall")) == 384

corpus.prepared(URL)
reader = ChatOllama(base_url=URL, model=corpus.MODEL, reasoning=True, validate_model_on_init=True)
whole = reader.invoke(corpus.QUESTION)
assert corpus.has_sources(whole.content) and "Searched" in whole.additional_kwargs["reasoning_content"], whole
assert "".join(piece.content for piece in reader.stream(corpus.QUESTION)) == whole.content

claude = ChatAnthropic(base_url=URL, api_key="none", model=corpus.MODEL, max_tokens=200, max_retries=0)
[block] = claude.invoke(corpus.QUESTION).content
assert corpus.has_sources(block["text"]) and block["citations"][0]["document_title"] == corpus.NAME, block

index = Ollama(base_url=URL, model=corpus.MODEL, request_timeout=120)
asked = [ChatMessage(role="user", content=corpus.QUESTION)]
assert corpus.has_sources(index.chat(asked).message.content)
assert corpus.has_sources("".join(piece.delta or "" for piece in index.stream_chat(asked)))
