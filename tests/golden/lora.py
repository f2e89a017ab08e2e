"""Makes lora/: an adapter that PEFT wrote for decoder/llama, with the loss of some tokens and its gradients by PyTorch.

adapter_config.json and adapter_model.safetensors are as PEFT saves them (both matrices random); gradients.safetensors has the
gradients under the same names; loss.json has the tokens, the range of the answer, the mean of -log p over the answer, and the
loss after three steps of torch.optim.AdamW (learning rate 1e-2, weight decay 0.01) without clipping.

    python3 lora.py
"""

import torch
from peft import LoraConfig, get_peft_model
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM

from golden import HERE, made_with, write

ANSWER = (17, 24)


def name(parameter):
    return parameter.replace(".default.", ".")


def loss_of(model, ids):
    logits = model(input_ids=ids).logits[0, ANSWER[0] - 1 : ANSWER[1] - 1]
    return torch.nn.functional.cross_entropy(logits, ids[0, ANSWER[0] : ANSWER[1]])


def main():
    torch.manual_seed(7)
    base = AutoModelForCausalLM.from_pretrained(HERE / "decoder/llama", dtype=torch.float32, attn_implementation="eager")
    targets = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
    model = get_peft_model(base, LoraConfig(r=2, lora_alpha=4, target_modules=targets, task_type="CAUSAL_LM"))
    trained = {key: weight for key, weight in model.named_parameters() if weight.requires_grad}
    with torch.no_grad():
        for weight in trained.values():
            weight.copy_(0.2 * torch.randn(weight.shape))
    folder = HERE / "lora"
    model.peft_config["default"].base_model_name_or_path = "llama"
    model.save_pretrained(folder)
    (folder / "README.md").unlink(missing_ok=True)
    ids = torch.randint(0, 256, (1, 24))
    loss = loss_of(model, ids)
    loss.backward()
    gradients = {name(key): weight.grad.clone() for key, weight in trained.items()}
    save_file(gradients, folder / "gradients.safetensors")
    optimiser = torch.optim.AdamW(trained.values(), lr=1e-2, weight_decay=0.01)
    for _ in range(3):
        optimiser.zero_grad()
        loss_of(model, ids).backward()
        optimiser.step()
    after = loss_of(model, ids).item()
    write("lora/loss.json", {
        "made_with": made_with("torch", "transformers", "peft"),
        "ids": ids[0].tolist(),
        "answer": list(ANSWER),
        "loss": loss.item(),
        "loss_after_three_steps": after,
    })


if __name__ == "__main__":
    main()
