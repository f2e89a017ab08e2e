"""LoRA training with PyTorch and PEFT, beside `memlocal-train run` on the same texts.

    python benches/peers/train_peft.py data MODEL.gguf TEXT.txt FOLDER   writes data.jsonl (for memlocal-train) and ids.jsonl
    python benches/peers/train_peft.py run MODEL.gguf FOLDER f32|bf16    prints tokens/s through forward, backward and AdamW

48 passages of 385 words with the next 12 as the answer. The sequences of PyTorch are cut at the front to the shortest one, so that a batch needs no
padding: four sequences a pass, two passes a step, the first step left out of the time. memlocal-train: `--batch 8 --rank 8 --alpha 16 --steps 6`.
Needs torch, transformers, peft and gguf.
"""

import json
import os
import random
import sys
import time


def data(gguf, text, folder):
    from transformers import AutoTokenizer

    where, name = os.path.split(gguf)
    tokenizer = AutoTokenizer.from_pretrained(where, gguf_file=name)
    words, draw = open(text).read().split(), random.Random(1)
    pairs = []
    for number in range(48):
        at = draw.randrange(0, len(words) - 500)
        pairs.append((f"{number} " + " ".join(words[at : at + 385]), " ".join(words[at + 385 : at + 397])))
    with open(os.path.join(folder, "data.jsonl"), "w") as out:
        for prompt, completion in pairs:
            out.write(json.dumps({"prompt": prompt, "completion": completion}) + "\n")
    encode = lambda text: tokenizer(text, add_special_tokens=False)["input_ids"]
    coded = [(encode(prompt), encode(completion)) for prompt, completion in pairs]
    length = min(len(prompt) + len(answer) for prompt, answer in coded)
    with open(os.path.join(folder, "ids.jsonl"), "w") as out:
        for prompt, answer in coded:
            ids = (prompt + answer)[-length:]
            out.write(json.dumps({"ids": ids, "answer": [length - len(answer), length]}) + "\n")


def run(gguf, folder, precision):
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    data = os.path.join(folder, "ids.jsonl")
    torch.manual_seed(1)
    dtype = {"f32": torch.float32, "bf16": torch.bfloat16}[precision]
    where, name = os.path.split(gguf)
    model = AutoModelForCausalLM.from_pretrained(where, gguf_file=name, torch_dtype=dtype)
    targets = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
    model = get_peft_model(model, LoraConfig(r=8, lora_alpha=16, target_modules=targets, task_type="CAUSAL_LM"))
    optimiser = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=4e-4)
    lines = [json.loads(line) for line in open(data)]
    times = []
    for step in range(6):
        begun = time.perf_counter()
        tokens = 0
        for half in (0, 4):
            batch = lines[step * 8 + half : step * 8 + half + 4]
            ids = torch.tensor([line["ids"] for line in batch])
            labels = torch.full_like(ids, -100)
            for row, line in enumerate(batch):
                labels[row, line["answer"][0] : line["answer"][1]] = ids[row, line["answer"][0] : line["answer"][1]]
            (model(input_ids=ids, labels=labels).loss / 2).backward()
            tokens += ids.numel()
        optimiser.step()
        optimiser.zero_grad()
        times.append((tokens, time.perf_counter() - begun))
        print("step", step + 1, "tokens", tokens, "seconds", round(times[-1][1], 2), flush=True)
    total, seconds = (sum(part) for part in zip(*times[1:]))
    print(f"torch {torch.__version__}, {precision}, {torch.get_num_threads()} threads: {total / seconds:.0f} tokens/s")


if __name__ == "__main__":
    {"data": data, "run": run}[sys.argv[1]](*sys.argv[2:])
