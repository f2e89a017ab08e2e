"""An embedding server on PyTorch and transformers: what `memlocal bench engine --suite embed --embed-against` measures beside.

    pip install torch transformers        (any recent version; the run's README names the one that was used)
    python benches/peers/embeddings.py MODEL_FOLDER --dtype bf16 --threads 2 --port 8098

It answers POST /v1/embeddings with one vector per text, all texts of a request in one padded batch, as a plain
transformers program would; vectors are those of the first token or the mean, normalised.
"""

import argparse
import json
from http.server import BaseHTTPRequestHandler, HTTPServer

import torch
from tokenizers import Tokenizer
from transformers import AutoModel


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--dtype", choices=["f32", "bf16"], default="bf16")
    parser.add_argument("--pooling", choices=["cls", "mean"], default="cls")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--port", type=int, default=8098)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    dtype = {"f32": torch.float32, "bf16": torch.bfloat16}[options.dtype]
    model = AutoModel.from_pretrained(options.model, dtype=dtype, add_pooling_layer=False).eval()
    tokenizer = Tokenizer.from_file(f"{options.model}/tokenizer.json")
    tokenizer.no_truncation()
    tokenizer.enable_padding(pad_id=model.config.pad_token_id)

    @torch.inference_mode()
    def embed(texts):
        batch = tokenizer.encode_batch(texts)
        ids = torch.tensor([encoding.ids for encoding in batch])
        mask = torch.tensor([encoding.attention_mask for encoding in batch])
        hidden = model(input_ids=ids, attention_mask=mask).last_hidden_state.float()
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
