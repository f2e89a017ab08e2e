"""The official MCP client against a memlocal: `http URL` or `pipes COMMAND...`. Exits with an error at the first surprise."""

import asyncio
import json
import os
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

TEXT = "In May 1921 the lamp of the lighthouse was out for two hours."


async def check(session):
    info = await session.initialize()
    name = getattr(info, "serverInfo", None) or info.server_info
    assert name.name == "memlocal", info
    tools = [tool.name for tool in (await session.list_tools()).tools]
    expected = ["list_corpora", "list_documents", "remember", "prepare", "job", "forget", "search", "ask", "read_source"]
    assert tools == expected, tools

    async def call(tool, /, **arguments):
        # The client validates the structured content against the tool's schema.
        result = await session.call_tool(tool, arguments)
        structured = getattr(result, "structuredContent", None) or result.structured_content
        assert structured == json.loads(result.content[0].text), result
        return structured

    corpus = f"mcp-{sys.argv[1]}"
    kept = await call("remember", corpus=corpus, name="lamp", text=TEXT, method="rag")
    assert kept["status"] == "done", kept
    assert corpus in [entry["name"] for entry in (await call("list_corpora"))["corpora"]]
    hits = (await call("search", corpus=corpus, query="When was the lamp out?"))["hits"]
    assert hits[0]["text"] == TEXT, hits
    answer = await call("ask", corpus=corpus, question="When was the lamp out?", method="rag")
    # Words that may not answer the question have a place and no citation.
    place = answer["statements"][0]["citation"]
    assert place["quote"] == TEXT, answer
    assert (await call("prepare", corpus=corpus, method="rag"))["status"] == "done"
    assert (await call("job", job=kept["id"]))["status"] == "done"
    read = await call("read_source", corpus=corpus, document=place["document"], start=3, end=11)
    assert read["text"] == "May 1921", read
    resources = (await session.list_resources()).resources
    mine = [resource for resource in resources if corpus in str(resource.uri)]
    content = await session.read_resource(mine[0].uri)
    assert content.contents[0].text == TEXT, content
    assert [prompt.name for prompt in (await session.list_prompts()).prompts] == ["answer", "keep"]
    prompt = await session.get_prompt("answer", {"corpus": corpus, "question": "When?"})
    assert corpus in prompt.messages[0].content.text, prompt
    [document] = (await call("list_documents", corpus=corpus))["documents"]
    assert (await call("forget", corpus=corpus, document=document["id"]))["forgotten"]
    assert (await call("list_documents", corpus=corpus))["documents"] == []


async def main():
    if sys.argv[1] == "http":
        try:
            from mcp.client.streamable_http import streamable_http_client as connect
        except ImportError:
            from mcp.client.streamable_http import streamablehttp_client as connect
        transport = connect(sys.argv[2])
    else:
        transport = stdio_client(StdioServerParameters(command=sys.argv[2], args=sys.argv[3:], env=dict(os.environ)))
    async with transport as streams, ClientSession(streams[0], streams[1]) as session:
        await check(session)


asyncio.run(main())
