"""Makes chat.json: chats, most of them with tools, as transformers renders them with short templates of four families.

The templates write tools, calls and results as those of Qwen2.5, Qwen3 and Llama 3.1 do, and turns as Gemma 3's does; the rest of them is left out.

    python3 chat.py
"""

from transformers.utils.chat_template_utils import render_jinja_template

from golden import made_with, write

TOOLS = """{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- if messages[0].role == 'system' %}
        {{- messages[0].content + '\\n\\n' }}
    {%- endif %}
    {{- "# Tools\\n<tools>" }}
    {%- for tool in tools %}
        {{- "\\n" }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- "\\n</tools><|im_end|>\\n" }}
{%- endif %}
"""
CALLS = """        {%- for tool_call in message.tool_calls %}
            {%- if (loop.first and message.content) or not loop.first %}
                {{- '\\n' }}
            {%- endif %}
            {%- if tool_call.function %}
                {%- set tool_call = tool_call.function %}
            {%- endif %}
            {{- '<tool_call>\\n{"name": "' + tool_call.name + '", "arguments": ' }}
            {%- if tool_call.arguments is string %}
                {{- tool_call.arguments }}
            {%- else %}
                {{- tool_call.arguments | tojson }}
            {%- endif %}
            {{- '}\\n</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\\n' }}
"""
RESULTS = """    {%- elif message.role == "tool" %}
        {%- if loop.first or (messages[loop.index0 - 1].role != "tool") %}
            {{- '<|im_start|>user' }}
        {%- endif %}
        {{- '\\n<tool_response>\\n' + message.content + '\\n</tool_response>' }}
        {%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}
            {{- '<|im_end|>\\n' }}
        {%- endif %}
    {%- endif %}
{%- endfor %}
"""
QWEN2 = (
    TOOLS
    + """{%- for message in messages %}
    {%- if message.role == "user" or (message.role == "assistant" and not message.tool_calls) %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "assistant" %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content }}
"""
    + CALLS
    + RESULTS
    + """{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""
)
QWEN3 = (
    TOOLS
    + """{%- set ns = namespace(searching=true, last_query_index=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.searching and message.role == "user" and message.content is string and not(message.content.startswith('<tool_response>') and message.content.endswith('</tool_response>')) %}
        {%- set ns.searching = false %}
        {%- set ns.last_query_index = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.role == "user" %}
        {{- '<|im_start|>user\\n' + message.content + '<|im_end|>\\n' }}
    {%- elif message.role == "assistant" %}
        {%- set content = message.content %}
        {%- set thought = '' %}
        {%- if message.reasoning_content is string %}
            {%- set thought = message.reasoning_content %}
        {%- elif '</think>' in content %}
            {%- set thought = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
            {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
        {%- endif %}
        {%- if loop.index0 > ns.last_query_index and (loop.last or thought) %}
            {{- '<|im_start|>assistant\\n<think>\\n' + thought.strip('\\n') + '\\n</think>\\n\\n' + content.lstrip('\\n') }}
        {%- else %}
            {{- '<|im_start|>assistant\\n' + content }}
        {%- endif %}
"""
    + CALLS
    + RESULTS
    + """{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}
"""
)
LLAMA3 = """{{- bos_token }}
{%- if not tools is defined %}
    {%- set tools = none %}
{%- endif %}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\\n\\n" }}
{{- "Today Date: " + date_string + "\\n\\n" + system_message + "<|eot_id|>" }}
{%- if tools is not none %}
    {%- set first_user_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
    {{- '<|start_header_id|>user<|end_header_id|>\\n\\n' -}}
    {{- 'Respond in the format {"name": function name, "parameters": dictionary of argument name and its value}.\\n\\n' }}
    {%- for t in tools %}
        {{- t | tojson(indent=4) }}
        {{- "\\n\\n" }}
    {%- endfor %}
    {{- first_user_message + "<|eot_id|>"}}
{%- endif %}
{%- for message in messages %}
    {%- if not (message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n'+ message['content'] | trim + '<|eot_id|>' }}
    {%- elif 'tool_calls' in message %}
        {%- if not message.tool_calls|length == 1 %}
            {{- raise_exception("one call at a time") }}
        {%- endif %}
        {%- set tool_call = message.tool_calls[0].function %}
        {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' -}}
        {{- '{"name": "' + tool_call.name + '", ' }}
        {{- '"parameters": ' }}
        {{- tool_call.arguments | tojson }}
        {{- "}" }}
        {{- "<|eot_id|>" }}
    {%- elif message.role == "tool" %}
        {{- "<|start_header_id|>ipython<|end_header_id|>\\n\\n" }}
        {%- if message.content is mapping or message.content is iterable %}
            {{- message.content | tojson }}
        {%- else %}
            {{- message.content }}
        {%- endif %}
        {{- "<|eot_id|>" }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}
"""

# No turn for the system: its text precedes the user's first.
GEMMA3 = """{{ bos_token }}
{%- if messages[0]['role'] == 'system' -%}
    {%- if messages[0]['content'] is string -%}
        {%- set prefix = messages[0]['content'] + '\n\n' -%}
    {%- else -%}
        {%- set prefix = messages[0]['content'][0]['text'] + '\n\n' -%}
    {%- endif -%}
    {%- set turns = messages[1:] -%}
{%- else -%}
    {%- set prefix = "" -%}
    {%- set turns = messages -%}
{%- endif -%}
{%- for message in turns -%}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) -%}
        {{ raise_exception("turns do not alternate") }}
    {%- endif -%}
    {{ '<start_of_turn>' + ("model" if message['role'] == 'assistant' else message['role']) + '\n' + (prefix if loop.first else "") }}
    {%- if message['content'] is string -%}
        {{ message['content'] | trim }}
    {%- elif message['content'] is iterable -%}
        {%- for item in message['content'] -%}
            {%- if item['type'] == 'text' -%}
                {{ item['text'] | trim }}
            {%- endif -%}
        {%- endfor -%}
    {%- endif -%}
    {{ '<end_of_turn>\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{ '<start_of_turn>model\n' }}
{%- endif -%}
"""


def tool(name, description, **properties):
    parameters = {"type": "object", "properties": properties, "required": list(properties)}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


def call(number, name, arguments):
    return {"type": "function", "function": {"name": name, "arguments": arguments}, "id": f"call{number:05}"}


FIND = tool("find", "Finds “notes” & more.", query={"type": "string", "enum": ["café", "sea <b>"]}, limit={"type": "integer"})
CLOCK = tool("clock", "Tells the time.")
ASK = {"role": "user", "content": "Find the café."}
ONE = {"role": "assistant", "content": "", "tool_calls": [call(1, "find", {"query": "café", "limit": 3, "near": [1.5, None, True], "in": {}})]}
RESULT = {"role": "tool", "content": "It is in Pell.", "tool_call_id": "call00001", "name": "find"}
MORE = {"role": "assistant", "content": "It is in Pell.\n"}
THANKS = {"role": "user", "content": "  And the time? "}
TWO = {
    "role": "assistant",
    "content": "I look.",
    "tool_calls": [call(2, "clock", {}), call(3, "find", {"query": "sea <b>", "limit": 1})],
    "reasoning_content": "Two things.",
}
LATE = {"role": "tool", "content": "Late.", "tool_call_id": "call00002", "name": "clock"}
SEA = {"role": "tool", "content": "{\"sea\": 1}", "tool_call_id": "call00003", "name": "find"}

CHATS = {
    "tools": ([ASK], [FIND, CLOCK]),
    "system": ([{"role": "system", "content": "Be brief."}, ASK], [CLOCK]),
    "result": ([ASK, ONE, RESULT], [FIND, CLOCK]),
    "history": ([ASK, ONE, RESULT, MORE, THANKS], [FIND]),
    "two": ([ASK, ONE, RESULT, MORE, THANKS, TWO, LATE, SEA], [FIND, CLOCK]),
    "none": ([ASK, MORE, THANKS], None),
}
BRIEF = {"role": "system", "content": "Be brief.\n"}
PARTS = {"role": "user", "content": [{"type": "text", "text": " Find "}, {"type": "image"}, {"type": "text", "text": "the café. "}]}
PLAIN = {
    "none": [ASK, MORE, THANKS],
    "system": [BRIEF, ASK],
    "history": [BRIEF, ASK, MORE, THANKS],
    "parts": [PARTS, MORE, THANKS],
    "parts of the system": [{"role": "system", "content": [{"type": "text", "text": "Be brief."}]}, PARTS],
}


def golden(family, template, name, thinks):
    messages, tools = (PLAIN[name], None) if family == "gemma3" else CHATS[name]
    variables = {"bos_token": "<|begin|>", "date_string": "26 Jul 2024", **({} if thinks is None else {"enable_thinking": thinks})}
    rendered, _ = render_jinja_template([messages], tools=tools, chat_template=template, add_generation_prompt=True, **variables)
    case = {"family": family, "name": name, "messages": messages, "tools": tools, "thinks": thinks}
    return {**case, "rendered": rendered[0]}


cases = [golden("qwen2", QWEN2, name, None) for name in CHATS]
cases += [golden("qwen3", QWEN3, name, thinks) for name in CHATS for thinks in [False, True]]
cases += [golden("llama3", LLAMA3, name, None) for name in CHATS if name != "two"]
cases += [golden("gemma3", GEMMA3, name, None) for name in PLAIN]
families = {"qwen2": QWEN2, "qwen3": QWEN3, "llama3": LLAMA3, "gemma3": GEMMA3}
templates = [{"family": family, "source": source} for family, source in families.items()]
write("chat.json", {"made_with": made_with("transformers", "jinja2"), "templates": templates, "cases": cases})
