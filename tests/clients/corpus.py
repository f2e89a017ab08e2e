"""A corpus for the clients that ask one as a chat model: `prepared(ADDRESS)` makes it."""

import json
import urllib.error
import urllib.request

MODEL = "lamp:quick"
NAME = "lighthouse.txt"
TEXT = "In May 1921 the lamp of the lighthouse was out for two hours."
QUESTION = "When was the lamp of the lighthouse out?"


def prepared(address):
    """Makes the corpus on the server at http://HOST:PORT and waits until it can be asked."""

    def post(path, body):
        """Sends JSON and returns the JSON of the answer."""
        request = urllib.request.Request(address + path, json.dumps(body).encode(), {"content-type": "application/json"})
        with urllib.request.urlopen(request) as response:
            return json.load(response)

    try:
        urllib.request.urlopen(urllib.request.Request(f"{address}/v1/corpora/lamp", method="DELETE")).close()
    except urllib.error.HTTPError as error:
        assert error.code == 404, error
    post("/v1/corpora", {"name": "lamp"})
    job = post("/v1/corpora/lamp/documents", {"name": NAME, "text": TEXT, "method": "rag"})
    with urllib.request.urlopen(f"{address}/v1/jobs/{job['id']}/events") as events:
        assert b'"status":"done"' in events.read()


def has_sources(text):
    """True if an answer has a mark, and a footnote with the document and its words."""
    body, _, foot = text.partition("\n\n---\n")
    return "[1]" in body and f"[{NAME}](http://" in foot and TEXT in foot
