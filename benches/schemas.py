"""Sends the JSON schemas of a folder to a server: which does it accept, and are its replies valid?

usage: schemas.py FOLDER URL MODEL [EVERY]

FOLDER is JSONSchemaBench's maskbench/data, or any folder of files that are schemas or hold one as `schema`. The first request for
a schema allows one token: it is refused with the length of the shortest reply, with the reason why the schema cannot be enforced,
or answered. Every EVERY-th accepted schema (default 20) gets a reply of its shortest length and one of up to 64 tokens more, at
temperature 1, which are parsed and validated (jsonschema with formats, if it is installed).
"""

import collections
import json
import os
import re
import sys
import urllib.error
import urllib.request

try:
    import jsonschema
except ImportError:
    jsonschema = None

SHORTEST = re.compile(r"its shortest answer has (\d+) tokens, but 1 are allowed")
LONGEST = 200


def ask(url, model, schema, tokens):
    """Status and body of one chat completion in this schema."""
    body = {
        "model": model,
        "messages": [{"role": "user", "content": "Fill in the form."}],
        "max_tokens": tokens,
        "temperature": 1,
        "seed": 7,
        "response_format": {"type": "json_schema", "json_schema": {"name": "form", "schema": schema}},
    }
    request = urllib.request.Request(
        f"{url}/v1/chat/completions", json.dumps(body).encode(), {"content-type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=600) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read() or b"null")


def problem(schema, body):
    """Why a reply is not valid; none if it is."""
    try:
        value = json.loads(body["choices"][0]["message"]["content"])
    except ValueError as error:
        return f"no JSON: {error}"
    if jsonschema is None:
        return None
    kind = jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)
    try:
        kind.check_schema(schema)
        error = next(kind(schema, format_checker=kind.FORMAT_CHECKER).iter_errors(value), None)
    except Exception:  # a schema that this validator cannot read
        return None
    return error and error.message[:200]


def main(folder, url, model, every="20"):
    """Prints a table by group, and what was refused or invalid."""
    names = sorted(name for name in os.listdir(folder) if name.endswith(".json"))
    groups = collections.defaultdict(collections.Counter)
    for name in names:
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            content = json.load(file)
        schema = content["schema"] if "tests" in content else content
        group = groups[name.split("---")[0] if "---" in name else name.split("_")[0]]
        group["schemas"] += 1
        status, body = ask(url, model, schema, 1)
        message = body["error"]["message"] if status != 200 else ""
        shortest = SHORTEST.search(message)
        if status != 200 and not shortest:
            group["refused"] += 1
            print(f"refused {status} {name}: {message[:300]}", flush=True)
            continue
        group["accepted"] += 1
        least = int(shortest[1]) if shortest else 1
        if group["accepted"] % int(every) or least > LONGEST:
            continue
        for tokens in (least, least + 64):
            group["replies"] += 1
            status, body = ask(url, model, schema, tokens)
            wrong = problem(schema, body) if status == 200 else f"status {status}: {body}"
            if wrong:
                group["invalid"] += 1
                print(f"invalid {name} within {tokens}: {wrong}", flush=True)
    columns = ["schemas", "accepted", "refused", "replies", "invalid"]
    groups = {**groups, "all": sum(groups.values(), collections.Counter())}
    print("| group | " + " | ".join(columns) + " |\n|" + "---|" * (len(columns) + 1))
    for name, counts in groups.items():
        print(f"| {name} | " + " | ".join(str(counts[column]) for column in columns) + " |")


if __name__ == "__main__":
    main(*sys.argv[1:])
