"""Splits JSON-Schema-Test-Suite (tests/draft2020-12) or JSONSchemaBench (maskbench/data) into one schema per file.

usage: llama_schemas.py FOLDER OUT; then: ls OUT/*.json | llama_schemas
Keys of instances are in the order of `properties`, as both grammars require.
"""

import glob
import json
import os
import sys


def ordered(schema, value):
    fields = schema if isinstance(schema, dict) else {}
    if isinstance(value, dict):
        known = fields.get("properties")
        known = known if isinstance(known, dict) else {}
        keys = [key for key in known if key in value] + [key for key in value if key not in known]
        return {key: ordered(known.get(key, fields.get("additionalProperties")), value[key]) for key in keys}
    if isinstance(value, list):
        return [ordered(fields.get("items"), item) for item in value]
    return value


def put(path, schema, tests):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(schema, file)
    with open(path + ".tests", "w", encoding="utf-8") as file:
        for test in tests or []:
            if isinstance(test.get("valid"), bool):
                text = json.dumps(ordered(schema, test["data"]), separators=(",", ":"), ensure_ascii=False)
                file.write(f"{int(test['valid'])}\t{text}\n")


folder, out = sys.argv[1:]
os.makedirs(out, exist_ok=True)
for path in sorted(glob.glob(f"{folder}/**/*.json", recursive=True)):
    name = os.path.relpath(path, folder).removesuffix(".json").replace("/", "+")
    with open(path, encoding="utf-8") as file:
        content = json.load(file)
    cases = content if isinstance(content, list) else [content]
    for number, case in enumerate(cases):
        put(f"{out}/{name}+{number}.json", case["schema"], case.get("tests"))
