"""LlamaIndex against a memlocal whose address is given: asked directly, and over an index of its own. Exits with an error at the
first surprise."""

import sys

from llama_index.core import Document, VectorStoreIndex
from llama_index.core.llms import ChatMessage
from llama_index.embeddings.openai_like import OpenAILikeEmbedding
from llama_index.llms.openai_like import OpenAILike

URL = sys.argv[1]
MODEL, EMBEDDER = "smollm2-135m-instruct:q4_1", "all-minilm-l6-v2:f32"
QUESTION = [ChatMessage(role="user", content="Name three colours of the rainbow.")]

model = OpenAILike(api_base=URL, api_key="none", model=MODEL, temperature=0, max_tokens=24, is_chat_model=True, max_retries=0, context_window=8192)
whole = model.chat(QUESTION).message.content
assert whole
pieces = list(model.stream_chat(QUESTION))
assert "".join(piece.delta for piece in pieces) == whole and len(pieces) > 4, pieces

bare = OpenAILike(api_base=URL, api_key="none", model=MODEL, temperature=0, max_tokens=6, is_chat_model=False, max_retries=0)
assert bare.complete("One, two, three,").text

embedder = OpenAILikeEmbedding(api_base=URL, api_key="none", model_name=EMBEDDER, max_retries=0)
assert [len(vector) for vector in embedder.get_text_embedding_batch(["a red wall", "a blue sea"])] == [384, 384]

documents = [Document(text="The lamp of the lighthouse was out for two hours."), Document(text="The baker sold bread in the morning.")]
index = VectorStoreIndex.from_documents(documents, embed_model=embedder)
answer = index.as_query_engine(llm=model, similarity_top_k=1).query("How long was the lamp out?")
assert "lamp" in answer.source_nodes[0].text and str(answer), answer

# A corpus as the model.
import corpus  # noqa: E402

corpus.prepared(URL.removesuffix("/v1"))
memory = OpenAILike(api_base=URL, api_key="none", model=corpus.MODEL, is_chat_model=True, max_retries=0, context_window=8192)
assert corpus.has_sources(memory.chat([ChatMessage(role="user", content=corpus.QUESTION)]).message.content)
