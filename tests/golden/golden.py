"""How a golden is written: which libraries made it, floats cut to their significant digits, one item a line."""

import json
import platform
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).parent


def made_with(*packages):
    """The versions of everything that took part, for the golden's `made_with` field."""
    return {"python": platform.python_version(), **{name: version(name) for name in packages}}


def floats(values, digits=7):
    """Nested lists of floats cut to `digits` significant digits (9 keep an f32 exactly)."""
    if isinstance(values, list):
        return [floats(value, digits) for value in values]
    return float(f"{values:.{digits}g}")


def line(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def write(path, body):
    """Writes `body` beside the scripts as JSON with one line for each case of a list of cases, so that a diff says what changed."""
    fields = []
    for name, value in body.items():
        if isinstance(value, list) and isinstance(value[0], dict):
            value = "[\n " + ",\n ".join(map(line, value)) + "\n]"
        else:
            value = line(value)
        fields.append(f"{line(name)}: {value}")
    text = "{\n" + ",\n".join(fields) + "\n}\n"
    (HERE / path).write_text(text, encoding="utf-8")
    print(f"{path}: {len(text.encode())} bytes")
