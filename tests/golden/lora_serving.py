"""Makes lora_serving/: adapters that PEFT wrote for decoder/NAME with random matrices, and the logits of the model with each.

NAME/adapter_config.json and adapter_model.safetensors are as PEFT saves them; NAME/logits.json has the form of
decoder/NAME/logits.json. llama.gguf is the adapter of llama as llama.cpp's convert_lora_to_gguf.py lays it out: query and key
rows of B are permuted, alpha is in the metadata.

    python3 lora_serving.py
"""

import shutil

import torch
from gguf import GGUFWriter
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM

from decoder_random import COLUMNS, position
from golden import HERE, made_with, write

ALL = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
ADAPTERS = {
    "llama": (dict(r=3, lora_alpha=6, target_modules=ALL), torch.float32),
    "qwen2_tied": (
        dict(
            r=4, lora_alpha=8, target_modules=["q_proj", "v_proj", "down_proj"], use_rslora=True,
            rank_pattern={"down_proj": 18}, alpha_pattern={"v_proj": 3},
        ),
        torch.bfloat16,
    ),
    "qwen3": (dict(r=2, lora_alpha=2, target_modules=["k_proj", "o_proj", "up_proj"]), torch.float16),
}
GGUF_NAMES = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def permute(weight, heads):
    """The rows of query and key as llama.cpp's converter orders them."""
    rows, cols = weight.shape
    return weight.reshape(heads, 2, rows // heads // 2, cols).swapaxes(1, 2).reshape(rows, cols)


def save_gguf(path, model, config, alpha):
    writer = GGUFWriter(path, "llama")
    writer.add_type("adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", alpha)
    for name, weight in sorted(model.state_dict().items()):
        if ".lora_" not in name:
            continue
        layer, rest = name.split(".layers.")[1].split(".", 1)
        module, factor = rest.split(".lora_")
        weight = weight.float()
        if factor.startswith("B") and module.endswith(("q_proj", "k_proj")):
            heads = config.num_attention_heads if module.endswith("q_proj") else config.num_key_value_heads
            weight = permute(weight, heads)
        tensor = f"blk.{layer}.{GGUF_NAMES[module]}.weight.lora_{factor[0].lower()}"
        writer.add_tensor(tensor, weight.contiguous().numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@torch.no_grad()
def main():
    for seed, (name, (settings, dtype)) in enumerate(ADAPTERS.items()):
        torch.manual_seed(40 + seed)
        folder = HERE / "lora_serving" / name
        shutil.rmtree(folder, ignore_errors=True)
        base = AutoModelForCausalLM.from_pretrained(
            HERE / "decoder" / name, dtype=torch.float32, attn_implementation="eager"
        )
        model = get_peft_model(base, LoraConfig(task_type="CAUSAL_LM", **settings)).eval()
        for key, weight in model.named_parameters():
            if ".lora_" in key:
                scale = 1 if ".lora_A" in key else 0.3
                weight.copy_((scale * torch.randn(weight.shape) / weight.shape[1] ** 0.5).to(dtype).float())
        model.peft_config["default"].base_model_name_or_path = name
        ids = torch.randint(0, 256, (1, 40))
        logits = model(input_ids=ids).logits[0]
        if name == "llama":
            save_gguf(HERE / "lora_serving" / "llama.gguf", model, base.config, settings["lora_alpha"])
        for key, weight in model.named_parameters():
            if ".lora_" in key:
                weight.data = weight.data.to(dtype)
        model.save_pretrained(folder)
        (folder / "README.md").unlink(missing_ok=True)
        write(f"lora_serving/{name}/logits.json", {
            "made_with": made_with("torch", "transformers", "peft", "gguf"),
            "ids": ids[0].tolist(),
            "columns": COLUMNS,
            "positions": [position(row) for row in logits],
        })


if __name__ == "__main__":
    main()
