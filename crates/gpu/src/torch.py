# The sizes of speed.rs with random bf16 weights in transformers: prefill, generate, embeddings. One line a result.
import time

import torch
from transformers import Qwen2Config, Qwen2ForCausalLM, XLMRobertaConfig, XLMRobertaModel

torch.set_grad_enabled(False)
torch.set_default_dtype(torch.bfloat16)


def seconds(work, runs=3):
    work()
    torch.cuda.synchronize()
    best = float("inf")
    for _ in range(runs):
        started = time.perf_counter()
        work()
        torch.cuda.synchronize()
        best = min(best, time.perf_counter() - started)
    return best


def say(name, value, unit="tokens/s"):
    print(name, value, unit, sep="\t")


a, b = (torch.randn(8192, 8192, device="cuda") for _ in range(2))
say("bf16 product 8192x8192x8192", 2 * 8192**3 / seconds(lambda: a @ b, 5) / 1e12, "TFLOP/s")
del a, b

with torch.device("cuda"):
    encoder = XLMRobertaModel(
        XLMRobertaConfig(
            vocab_size=250002, hidden_size=1024, num_hidden_layers=24, num_attention_heads=16,
            intermediate_size=4096, max_position_embeddings=8194, type_vocab_size=1,
        )
    ).eval()
for length, count in [(128, 1), (128, 64), (512, 16), (8192, 1)]:
    ids = torch.randint(10, 250000, (count, length), device="cuda")
    rate = length * count / seconds(lambda: encoder(input_ids=ids).last_hidden_state[:, 0].float().norm(dim=1).cpu())
    say(f"BGE-M3 embedding of {count} x {length}", rate)
del encoder
torch.cuda.empty_cache()

with torch.device("cuda"):
    decoder = Qwen2ForCausalLM(
        Qwen2Config(
            vocab_size=152064, hidden_size=3584, num_hidden_layers=28, num_attention_heads=28,
            num_key_value_heads=4, intermediate_size=18944, max_position_embeddings=32768,
        )
    ).eval()
for length in [512, 2048, 8192]:
    ids = torch.randint(10, 150000, (1, length), device="cuda")
    say(f"7B prefill of {length}", length / seconds(lambda: decoder(ids, logits_to_keep=1).logits.argmax().cpu()))
for batch in [1, 8, 32]:
    ids = torch.randint(10, 150000, (batch, 2048), device="cuda")
    options = dict(do_sample=False, use_cache=True, pad_token_id=0, eos_token_id=None)

    def generate(count):
        return seconds(lambda: decoder.generate(ids, min_new_tokens=count, max_new_tokens=count, **options), 1)

    # The difference leaves out the prompt.
    rate = batch * 32 / max(generate(36) - generate(4), 1e-9)
    say(f"7B decoding of {batch} with 2048 before", rate)
