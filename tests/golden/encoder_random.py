"""Makes encoder/<name>/: a tiny BERT and a tiny XLM-R with random weights, and transformers' outputs for three ragged inputs.

A folder has config.json, model.safetensors and outputs.json: the last hidden state, and the CLS and the mean embedding, both
L2-normalised. Inputs run one at a time, f32, eager attention, on the CPU; the script checks that a padded batch says the same.
xlm_roberta/ also has BGE-M3's files (pytorch_model.bin, and its two heads in f16 as .pt and as .safetensors) and its three
outputs, by the formulae of FlagEmbedding's BGEM3 inference:
  dense    L2(hidden of <s>)
  sparse   per token id the greatest relu(sparse_linear(hidden)); <s>, <pad>, </s>, <unk> and zeros dropped
  colbert  L2(colbert_linear(hidden)) of every token but the first, so </s> is kept
xlm_roberta_long/ has the positions of BGE-M3, kept in f16, and what the three heads say of one text of 8,192 tokens: all of
dense and sparse, and some rows of colbert.

    python3 encoder_random.py
"""

import shutil

import torch
from safetensors.torch import save_file
from torch.nn.functional import normalize
from transformers import BertConfig, BertModel, XLMRobertaConfig, XLMRobertaModel

from golden import HERE, floats, made_with, write

HIDDEN = 64
LENGTHS = [5, 17, 64]
SHAPE = dict(
    vocab_size=300, hidden_size=HIDDEN, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128, hidden_act="gelu",
    attn_implementation="eager",
)
# XLM-R counts positions from its padding id + 1 = 2.
BERT = BertConfig(**SHAPE, max_position_embeddings=80, type_vocab_size=2, layer_norm_eps=1e-12, pad_token_id=0)
XLM_R = XLMRobertaConfig(
    **SHAPE, max_position_embeddings=82, type_vocab_size=1, layer_norm_eps=1e-5, bos_token_id=0, pad_token_id=1, eos_token_id=2,
)
XLM_R_SPECIAL = {0, 1, 2, 3}
LONG = XLMRobertaConfig(
    vocab_size=150, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32, hidden_act="gelu",
    attn_implementation="eager", max_position_embeddings=8194, type_vocab_size=1, layer_norm_eps=1e-5,
    bos_token_id=0, pad_token_id=1, eos_token_id=2,
)
LONG_IDS = [0, *((i * i + 3 * i) % 40 + 104 for i in range(8190)), 2]
LONG_ROWS = [0, 1, 31, 32, 4095, 8189, 8190]


@torch.no_grad()
def randomised(model):
    for name, weight in model.named_parameters():
        noise = torch.randn(weight.shape)
        if "LayerNorm.weight" in name:
            weight.copy_(1 + 0.3 * noise)
        elif name.endswith(".bias") or "embeddings" in name:
            weight.copy_(0.5 * noise)
        else:
            weight.copy_(1.5 * noise / weight.shape[1] ** 0.5)
    return model.eval()


def inputs_between(first, last, unknown):
    """Token ids in ascending lengths; few distinct ones, so that ids repeat, and one unknown in the longer inputs."""
    inputs = []
    for length in LENGTHS:
        middle = torch.randint(104, 144, [length - 2]).tolist()
        if length > 5:
            middle[3] = unknown
        inputs.append([first, *middle, last])
    return inputs


@torch.no_grad()
def hidden_states(model, inputs, pad):
    """[T, H] of each input alone, after checking them against one padded batch."""
    alone = [model(torch.tensor([ids])).last_hidden_state[0] for ids in inputs]
    width = max(LENGTHS)
    ids = torch.tensor([ids + [pad] * (width - len(ids)) for ids in inputs])
    mask = torch.tensor([[1] * len(ids) + [0] * (width - len(ids)) for ids in inputs])
    batch = model(ids, attention_mask=mask).last_hidden_state
    for row, hidden in zip(batch, alone):
        torch.testing.assert_close(row[: len(hidden)], hidden, atol=1e-4, rtol=1e-4)
    return alone


def embeddings(ids, hidden):
    return {
        "ids": ids,
        "cls": floats(normalize(hidden[0], dim=0).tolist()),
        "mean": floats(normalize(hidden.mean(0), dim=0).tolist()),
        "last_hidden_state": floats(hidden.tolist()),
    }


@torch.no_grad()
def bge_m3(ids, hidden, sparse_linear, colbert_linear):
    sparse = {}
    for id, weight in zip(ids, sparse_linear(hidden).relu()[:, 0].tolist()):
        if id not in XLM_R_SPECIAL and weight > 0:
            sparse[id] = max(sparse.get(id, 0.0), weight)
    return {
        "dense": floats(normalize(hidden[0], dim=0).tolist()),
        "sparse": {str(id): floats(weight) for id, weight in sorted(sparse.items())},
        "colbert": floats(normalize(colbert_linear(hidden[1:]), dim=1).tolist()),
    }


def save_head(folder, name, rows, width=HIDDEN):
    """A random linear layer written in f16 both ways, and given back as f32 with the written values."""
    head = torch.nn.Linear(width, rows).half()
    torch.save(head.state_dict(), folder / f"{name}.pt")
    save_file(head.state_dict(), folder / f"{name}.safetensors")
    return head.float()


def save_model(name, model):
    folder = HERE / "encoder" / name
    shutil.rmtree(folder, ignore_errors=True)
    model.save_pretrained(folder)
    return folder


if __name__ == "__main__":
    torch.manual_seed(1)
    bert = randomised(BertModel(BERT))
    save_model("bert", bert)
    inputs = inputs_between(101, 102, unknown=100)
    write("encoder/bert/outputs.json", {
        "made_with": made_with("transformers", "torch"),
        "cases": [embeddings(*case) for case in zip(inputs, hidden_states(bert, inputs, pad=0))],
    })

    torch.manual_seed(6)
    xlm_r = randomised(XLMRobertaModel(XLM_R))
    folder = save_model("xlm_roberta", xlm_r)
    torch.save(xlm_r.state_dict(), folder / "pytorch_model.bin")
    heads = save_head(folder, "sparse_linear", 1), save_head(folder, "colbert_linear", HIDDEN)
    inputs = inputs_between(0, 2, unknown=3)
    write("encoder/xlm_roberta/outputs.json", {
        "made_with": made_with("transformers", "torch"),
        "cases": [
            {**embeddings(ids, hidden), **bge_m3(ids, hidden, *heads)}
            for ids, hidden in zip(inputs, hidden_states(xlm_r, inputs, pad=1))
        ],
    })

    torch.manual_seed(7)
    long = randomised(XLMRobertaModel(LONG)).half()
    folder = save_model("xlm_roberta_long", long)
    heads = save_head(folder, "sparse_linear", 1, width=16), save_head(folder, "colbert_linear", 16, width=16)
    with torch.no_grad():
        hidden = long.float()(torch.tensor([LONG_IDS])).last_hidden_state[0]
    said = bge_m3(LONG_IDS, hidden, *heads)
    said["colbert"] = {str(row): said["colbert"][row] for row in LONG_ROWS}
    write("encoder/xlm_roberta_long/outputs.json", {"made_with": made_with("transformers", "torch"), **said})
