"""OpenAI's Agents SDK against a memlocal whose address is given: it speaks the Responses API. Exits with an error at the first
surprise."""

import asyncio
import sys

import corpus
from agents import Agent, ModelSettings, Runner, function_tool, set_default_openai_client, set_tracing_disabled
from openai import AsyncOpenAI

URL = sys.argv[1]
MODEL = "smollm2-135m-instruct:q4_1"

# Its traces go to OpenAI otherwise.
set_tracing_disabled(True)
painted = []


@function_tool
def paint(wall: str) -> str:
    """Paints a wall."""
    painted.append(wall)
    return "Painted."


async def main():
    set_default_openai_client(AsyncOpenAI(base_url=f"{URL}/v1", api_key="none", max_retries=0))
    settings = ModelSettings(tool_choice="required", max_tokens=64, temperature=0)
    painter = Agent(name="painter", model=MODEL, tools=[paint], model_settings=settings)
    done = await Runner.run(painter, "Paint the north wall.", max_turns=3)
    assert painted and done.final_output, done

    corpus.prepared(URL)
    reader = Agent(name="reader", instructions="Be brief.", model=corpus.MODEL)
    first = await Runner.run(reader, corpus.QUESTION)
    assert corpus.has_sources(first.final_output), first
    next_one = await Runner.run(reader, "For how long?", previous_response_id=first.last_response_id)
    assert next_one.final_output, next_one
    streamed = Runner.run_streamed(reader, corpus.QUESTION)
    kinds = {event.type async for event in streamed.stream_events()}
    assert "raw_response_event" in kinds and streamed.final_output == first.final_output, (kinds, streamed)


asyncio.run(main())
