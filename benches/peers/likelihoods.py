#!/usr/bin/env python3
"""Scores the candidates of `grounding dump` lines with a Llama-shaped GGUF checkpoint: what `grounding fit-model` reads.

    likelihoods.py MODEL.gguf < dump.jsonl > scored.jsonl

Adds to each line, for the first 16 candidates and last for "not in the text", `lm`: [log-probability, tokens, log-probability
of the end of the turn] after the chat of crates/memory/src/grounding/prompt.rs, and `prior`: the same without evidence.
Needs numpy, gguf and tokenizers. Continuations share the prompt and their common beginnings (a trie in one batch).
"""

import json
import sys

import gguf
import numpy as np
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers

CANDIDATES = 16
NOT_THERE = "not in the text"
END = "<|im_end|>"
TEXT = "In 1931 Tom Hill opened a small bakery in Leeds with his sister Ann."
QUESTION = "Who helped Tom Hill to open the bakery?"
ANSWER = "his sister Ann"


def turn(role, content):
    return f"<|im_start|>{role}\n{content}{END}\n"


def chat(question, evidence):
    rules = "Answer the question with a few words" + (" copied from the text." if evidence else ".")
    ask = lambda text, asked: (f"Text: {text}\n\n" if evidence else "") + f"Question: {asked}"
    turns = turn("system", rules) + turn("user", ask(TEXT, QUESTION)) + turn("assistant", ANSWER)
    return turns + turn("user", ask(evidence, question)) + "<|im_start|>assistant\n"


class Model:
    def __init__(self, path):
        reader = gguf.GGUFReader(path)
        field = lambda name: reader.fields[name].contents()
        self.layers = field("llama.block_count")
        self.heads, self.kv_heads = field("llama.attention.head_count"), field("llama.attention.head_count_kv")
        self.eps, self.theta = field("llama.attention.layer_norm_rms_epsilon"), field("llama.rope.freq_base")
        self.w = {t.name: gguf.dequantize(t.data, t.tensor_type).astype(np.float32) for t in reader.tensors}
        self.embedding = self.w["token_embd.weight"]
        self.output = self.w.get("output.weight", self.embedding)
        self.head_dims = self.embedding.shape[1] // self.heads
        tokens, kinds = field("tokenizer.ggml.tokens"), field("tokenizer.ggml.token_type")
        merges = [tuple(merge.split(" ")) for merge in field("tokenizer.ggml.merges")]
        self.tokenizer = Tokenizer(models.BPE(vocab={token: at for at, token in enumerate(tokens)}, merges=merges))
        digits, byte_level = pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)
        self.tokenizer.pre_tokenizer = pre_tokenizers.Sequence([digits, byte_level])
        control = [AddedToken(token, special=True) for token, kind in zip(tokens, kinds) if kind == 3]
        self.tokenizer.add_special_tokens(control)

    def ids(self, text):
        return self.tokenizer.encode(text, add_special_tokens=False).ids

    def norm(self, x, name):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + self.eps) * self.w[name]

    def rotate(self, x, positions):
        frequencies = self.theta ** (-np.arange(0, self.head_dims, 2) / self.head_dims)
        angles = (positions[:, None] * frequencies)[:, None, :]
        cos, sin = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
        even, odd, turned = x[..., 0::2], x[..., 1::2], np.empty_like(x)
        turned[..., 0::2], turned[..., 1::2] = even * cos - odd * sin, even * sin + odd * cos
        return turned

    def hidden(self, ids, positions, mask):
        x, n, group, d = self.embedding[ids], len(ids), self.heads // self.kv_heads, self.head_dims
        for layer in range(self.layers):
            name = lambda part: f"blk.{layer}.{part}.weight"
            project = lambda h, part, heads: (h @ self.w[name(part)].T).reshape(n, heads, d)
            h = self.norm(x, name("attn_norm"))
            q = self.rotate(project(h, "attn_q", self.heads), positions)
            k = self.rotate(project(h, "attn_k", self.kv_heads), positions)
            v = project(h, "attn_v", self.kv_heads)
            q = q.reshape(n, self.kv_heads, group, d).transpose(1, 2, 0, 3).reshape(self.kv_heads, group * n, d)
            scores = (q @ k.transpose(1, 2, 0)).reshape(self.kv_heads, group, n, n) / np.sqrt(np.float32(d)) + mask
            scores = np.exp(scores - scores.max(-1, keepdims=True))
            scores /= scores.sum(-1, keepdims=True)
            mixed = scores.reshape(self.kv_heads, group * n, n) @ v.transpose(1, 0, 2)
            mixed = mixed.reshape(self.kv_heads, group, n, d).transpose(2, 0, 1, 3).reshape(n, self.heads * d)
            x = x + mixed @ self.w[name("attn_output")].T
            h = self.norm(x, name("ffn_norm"))
            gate = h @ self.w[name("ffn_gate")].T
            x = x + (gate / (1 + np.exp(-gate)) * (h @ self.w[name("ffn_up")].T)) @ self.w[name("ffn_down")].T
        return self.norm(x, "output_norm.weight")

    def score(self, prompt, continuations):
        head, end = self.ids(prompt), self.ids(END)[0]
        nodes, order, paths = {}, [], []
        for text in continuations:
            parent, path, ids = -1, [], self.ids(text)
            for token in ids:
                if (parent, token) not in nodes:
                    nodes[parent, token] = len(order)
                    order.append((parent, token))
                parent = nodes[parent, token]
                path.append(parent)
            paths.append((ids, path))
        p, n = len(head), len(head) + len(order)
        mask, positions = np.full((n, n), -1e9, np.float32), np.arange(n, dtype=np.float64)
        mask[:p, :p] = np.triu(mask[:p, :p], 1)
        for at, (parent, _) in enumerate(order):
            row = p + at
            mask[row] = mask[p - 1] if parent < 0 else mask[p + parent]
            mask[row, row] = 0
            positions[row] = p if parent < 0 else positions[p + parent] + 1
        ids = np.array(head + [token for _, token in order])
        logits = self.hidden(ids, positions, mask)[p - 1 :] @ self.output.T
        top = logits.max(1, keepdims=True)
        logits = logits - top - np.log(np.exp(logits - top).sum(1, keepdims=True))
        scores = []
        for ids, path in paths:
            rows = [0] + [node + 1 for node in path]
            said = sum(float(logits[row, token]) for row, token in zip(rows, ids))
            scores.append((said, len(ids), float(logits[rows[-1], end])))
        return scores


def main():
    model = Model(sys.argv[1])
    for line in sys.stdin:
        item = json.loads(line)
        item["candidates"] = item["candidates"][:CANDIDATES]
        texts = [" ".join(candidate["text"].split()) for candidate in item["candidates"]] + [NOT_THERE]
        evidence = " ".join(" ".join(item["sentences"]).split())
        item["lm"] = model.score(chat(item["question"], evidence), texts)
        item["prior"] = model.score(chat(item["question"], ""), texts)
        print(json.dumps(item), flush=True)


main()
