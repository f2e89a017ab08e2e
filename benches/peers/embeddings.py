"""An embedding server on PyTorch or ONNX Runtime: what `memlocal-bench engine --suite embed --embed-against` measures beside.

    pip install torch transformers        (any recent version; the run's README names the one that was used)
    pip install onnx onnxscript onnxruntime        for --dtype int8
    python benches/peers/embeddings.py MODEL_FOLDER --dtype bf16 --threads 2 --port 8098

It answers POST /v1/embeddings with one vector per text, all texts of a request in one padded batch, as a plain
transformers program would; vectors are those of the first token or the mean, normalised. `int8` is ONNX Runtime with weights
quantised to 8 bits and activations quantised as they come (`quantize_dynamic`).
"""

import argparse
import json
import tempfile
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import torch
from tokenizers import Tokenizer
from transformers import AutoModel


class Hidden(torch.nn.Module):
    """A model from ids and mask to hidden states alone, as it is exported."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask):
        return self.model(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state


def on_torch(folder, dtype):
    model = Hidden(AutoModel.from_pretrained(folder, dtype=dtype, add_pooling_layer=False).eval())
    return lambda ids, mask: model(ids, mask).float()


def on_onnx_int8(folder, threads):
    import onnxruntime
    from onnxruntime.quantization import QuantType, quantize_dynamic

    model = Hidden(AutoModel.from_pretrained(folder, dtype=torch.float32, add_pooling_layer=False).eval())
    scratch = Path(tempfile.mkdtemp())
    example = torch.ones(2, 8, dtype=torch.long)
    axes = {0: "batch", 1: "tokens"}
    names = ["input_ids", "attention_mask", "hidden"]
    torch.onnx.export(
        model, (example, example), str(scratch / "f32.onnx"), dynamo=False, opset_version=17,
        input_names=names[:2], output_names=names[2:], dynamic_axes={name: axes for name in names},
    )
    del model
    quantize_dynamic(
        scratch / "f32.onnx", scratch / "int8.onnx", weight_type=QuantType.QInt8, use_external_data_format=True
    )
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(scratch / "int8.onnx", options, providers=["CPUExecutionProvider"])
    def hidden(ids, mask):
        [values] = session.run(None, {"input_ids": ids.numpy(), "attention_mask": mask.numpy()})
        return torch.from_numpy(values)

    return hidden


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--dtype", choices=["f32", "bf16", "int8"], default="bf16")
    parser.add_argument("--pooling", choices=["cls", "mean"], default="cls")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--port", type=int, default=8098)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    config = json.loads((Path(options.model) / "config.json").read_text())
    if options.dtype == "int8":
        hidden_states = on_onnx_int8(options.model, options.threads)
    else:
        hidden_states = on_torch(options.model, {"f32": torch.float32, "bf16": torch.bfloat16}[options.dtype])
    tokenizer = Tokenizer.from_file(f"{options.model}/tokenizer.json")
    tokenizer.no_truncation()
    tokenizer.enable_padding(pad_id=config.get("pad_token_id", 0))

    @torch.inference_mode()
    def embed(texts):
        batch = tokenizer.encode_batch(texts)
        ids = torch.tensor([encoding.ids for encoding in batch])
        mask = torch.tensor([encoding.attention_mask for encoding in batch])
        hidden = hidden_states(ids, mask)
        if options.pooling == "cls":
            pooled = hidden[:, 0]
        else:
            pooled = (hidden * mask[:, :, None]).sum(1) / mask.sum(1, keepdim=True)
        return torch.nn.functional.normalize(pooled, dim=1).tolist()

    class Handler(BaseHTTPRequestHandler):
        def answer(self, content):
            body = json.dumps(content).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self):
            self.answer({"data": [{"id": options.model}]})

        def do_POST(self):
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            vectors = embed(request["input"])
            self.answer({"data": [{"index": i, "embedding": vector} for i, vector in enumerate(vectors)]})

        def log_message(self, *_):
            pass

    print(f"torch {torch.__version__}, {options.dtype}, {torch.get_num_threads()} threads", flush=True)
    HTTPServer(("127.0.0.1", options.port), Handler).serve_forever()


if __name__ == "__main__":
    main()
