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
    assert tools == ["list_corpora", "remember", "search", "ask", "read_source"], tools

    async def call(tool, /, **arguments):
        result = await session.call_tool(tool, arguments)
        return json.loads(result.content[0].text)

    corpus = f"mcp-{sys.argv[1]}"
    kept = await call("remember", corpus=corpus, name="lamp", text=TEXT, method="rag")
    assert kept["status"] == "done", kept
    assert corpus in [entry["name"] for entry in await call("list_corpora")]
    hits = await call("search", corpus=corpus, query="When was the lamp out?")
    assert hits[0]["text"] == TEXT, hits
    answer = await call("ask", corpus=corpus, question="When was the lamp out?", method="rag")
    assert answer["citations"][0]["quote"] == TEXT, answer
    read = await call("read_source", corpus=corpus, document=hits[0]["document"], start=3, end=11)
    assert read["text"] == "May 1921", read
    resources = (await session.list_resources()).resources
    mine = [resource for resource in resources if corpus in str(resource.uri)]
    content = await session.read_resource(mine[0].uri)
    assert content.contents[0].text == TEXT, content


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
