"""Makes decoder/<name>/: tiny decoders with random weights, as checkpoints in the published form, and transformers' logits.

A folder has config.json, model.safetensors in f32 (or two shards with an index in bf16), tokenizer.json (one token a byte and
three special ones, fewer than the vocabulary's rows) and logits.json. transformers loads the folder and runs it on the CPU in
f32 with eager attention. Of each position's logits the file keeps the eight highest, sixteen columns and the log of the summed
exponentials, which ties down the rest. Norms and biases are random too, so that a forgotten one shows.

    python3 decoder_random.py [NAME...]
"""

import json
import shutil
import sys

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from golden import HERE, floats, made_with, write

VOCABULARY = 264
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
COLUMNS = list(range(0, VOCABULARY, 17))


def config(architecture, heads, kv_heads, hidden, layers=2, rope_theta=1e6, tied=True, **rest):
    """A config.json as the hub has them: `rope_theta` and `rope_scaling` at the top level."""
    return {
        "architectures": [architecture + "ForCausalLM"],
        "model_type": architecture.lower(),
        "vocab_size": VOCABULARY,
        "hidden_size": hidden,
        "intermediate_size": 64,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "max_position_embeddings": 256,
        "rms_norm_eps": 1e-6,
        "rope_theta": rope_theta,
        "hidden_act": "silu",
        "tie_word_embeddings": tied,
        "bos_token_id": 256,
        "eos_token_id": 258,
        "torch_dtype": "float32",
        **rest,
    }


YARN = {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}
YARN_OPTIONS = {**YARN, "attention_factor": 1.4, "beta_fast": 6.0, "beta_slow": 0.5}
YARN_SCALES = {**YARN, "mscale": 3.0, "mscale_all_dim": 0.5, "truncate": False}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64}
SLIDING, FULL = "sliding_attention", "full_attention"


def gemma3(heads, kv_heads, hidden, layers, head_dim, **rest):
    """As the hub has them: another name for the activation, two bases of frequencies, no word about tied embeddings."""
    published = config("Gemma3", heads, kv_heads, hidden, layers, model_type="gemma3_text", head_dim=head_dim,
                       hidden_activation="gelu_pytorch_tanh", rope_local_base_freq=1e4, attn_logit_softcapping=None,
                       final_logit_softcapping=None, cache_implementation="hybrid", **rest)
    return {key: value for key, value in published.items() if key not in ("hidden_act", "tie_word_embeddings")}


# The heads of Qwen2.5-0.5B (14 / 2) and 14B (40 / 8); a prompt longer than YaRN's 64 original positions; Llama's head of 64.
MODELS = {
    "qwen2_tied": (config("Qwen2", 14, 2, 112), 48),
    "qwen2_sharded_bf16": (config("Qwen2", 40, 8, 320, tied=False, intermediate_size=32, torch_dtype="bfloat16"), 48),
    "qwen2_yarn": (config("Qwen2", 2, 1, 64, rope_theta=1e4, rope_scaling=YARN), 96),
    "qwen3": (config("Qwen3", 4, 2, 32, layers=3, head_dim=32), 48),
    "llama": (config("Llama", 2, 1, 64, rope_theta=1e4, tied=False, head_dim=64, rms_norm_eps=1e-5), 48),
    # The last two layers see 20 tokens.
    "qwen2_window": (config("Qwen2", 4, 2, 64, layers=4, sliding_window=20, max_window_layers=2, use_sliding_window=True), 64),
    # Variants of the blocks, as small as they show: biases, scaled positions, which layers have a window.
    "llama_biases": (config("Llama", 2, 1, 32, rope_theta=1e4, tied=False, attention_bias=True, mlp_bias=True), 40),
    "qwen3_biases": (config("Qwen3", 2, 1, 32, head_dim=32, attention_bias=True), 40),
    "qwen2_yarn_options": (config("Qwen2", 2, 1, 64, rope_theta=1e4, rope_scaling=YARN_OPTIONS), 80),
    "llama_yarn_scales": (config("Llama", 2, 1, 64, rope_theta=1e4, rope_scaling=YARN_SCALES), 80),
    "llama3": (config("Llama", 2, 1, 64, rope_theta=1e4, rope_scaling=LLAMA3), 80),
    "llama_linear": (config("Llama", 2, 1, 32, rope_theta=1e4, rope_scaling={"type": "linear", "factor": 2.5}), 40),
    "mistral_window": (config("Mistral", 2, 1, 32, rope_theta=1e4, tied=False, head_dim=32, sliding_window=20), 40),
    # max_window_layers alone would give no layer a window.
    "qwen2_layer_types": (
        config("Qwen2", 2, 1, 32, layers=4, sliding_window=9, use_sliding_window=True, layer_types=[SLIDING, FULL, SLIDING, FULL]),
        40,
    ),
    "qwen3_moe": (
        config("Qwen3Moe", 4, 2, 32, layers=3, head_dim=32, tied=False, model_type="qwen3_moe", moe_intermediate_size=24,
               num_experts=8, num_experts_per_tok=3, norm_topk_prob=True, decoder_sparse_step=1, mlp_only_layers=[]),
        48,
    ),
    # The last but one of seven layers has no window; the scores of the second are not divided by the root of the heads' width.
    "gemma3": (
        gemma3(4, 2, 32, 7, 32, query_pre_attn_scalar=32, sliding_window=20, sliding_window_pattern=6,
               rope_scaling={"factor": 8.0, "rope_type": "linear"}),
        64,
    ),
    "gemma3_scores": (
        gemma3(2, 1, 32, 2, 32, query_pre_attn_scalar=20, sliding_window=9, layer_types=[SLIDING, FULL], rope_scaling=None),
        40,
    ),
}


@torch.no_grad()
def randomise(model):
    """Sharp attention, uneven norms and biases that matter: what the default initialisation lacks."""
    # Gemma's norms multiply by 1 plus their weights.
    centre = 0 if model.config.model_type.startswith("gemma") else 1
    for name, weight in model.named_parameters():
        noise = torch.randn(weight.shape)
        if name.endswith("norm.weight"):
            weight.copy_(centre + 0.3 * noise)
        elif name.endswith(".bias") or "embed_tokens" in name:
            weight.copy_(0.5 * noise)
        else:
            weight.copy_(1.5 * noise / weight.shape[1] ** 0.5)


def save_tokenizer(path):
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({symbol: id for id, symbol in enumerate(alphabet)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in SPECIAL])
    tokenizer.save(str(path), pretty=False)


def save_checkpoint(folder, config):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    published = json.dumps(config, indent=2) + "\n"
    (folder / "config.json").write_text(published)
    model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(folder), dtype=torch.float32)
    randomise(model)
    model.to(getattr(torch, config["torch_dtype"])).save_pretrained(folder, max_shard_size="800KB")
    (folder / "config.json").write_text(published)
    (folder / "generation_config.json").unlink()
    save_tokenizer(folder / "tokenizer.json")


@torch.no_grad()
def logits_of(folder, ids):
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    return model(torch.tensor([ids])).logits[0]


def rope_freqs(folder):
    """What a GGUF file of this model has as rope_freqs.weight: plain frequencies by those of Llama 3.1."""
    config = AutoConfig.from_pretrained(folder)
    scaled, _ = ROPE_INIT_FUNCTIONS["llama3"](config, "cpu")
    dim = 2 * len(scaled)
    plain = config.rope_parameters["rope_theta"] ** -(torch.arange(0, dim, 2).float() / dim)
    return floats((plain / scaled).tolist(), 9)


def position(logits):
    values, ids = logits.topk(8)
    return {
        "top_ids": ids.tolist(),
        "top_logits": floats(values.tolist()),
        "columns": floats(logits[COLUMNS].tolist()),
        "logsumexp": floats(logits.logsumexp(0).item()),
    }


if __name__ == "__main__":
    for seed, (name, (config, tokens)) in enumerate(MODELS.items()):
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        torch.manual_seed(seed)
        save_checkpoint(HERE / "decoder" / name, config)
        ids = torch.randint(0, 256, [tokens]).tolist()
        write(f"decoder/{name}/logits.json", {
            "made_with": made_with("transformers", "torch"),
            "ids": ids,
            "columns": COLUMNS,
            **({"rope_freqs": rope_freqs(HERE / "decoder" / name)} if name == "llama3" else {}),
            "positions": [position(logits) for logits in logits_of(HERE / "decoder" / name, ids)],
        })
