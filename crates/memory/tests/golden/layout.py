"""Makes layout.json: real sentence vectors, and how well umap-learn keeps their neighbours in few dimensions.

The texts are the sentences of samples/the-gift-of-the-magi.txt, the vectors all-MiniLM-L6-v2's, in thousandths. UMAP is
set as RAPTOR sets it, with ten seeds.

Run with umap-learn 0.5, scikit-learn 1.x and sentence-transformers: python layout.py MODEL_FOLDER > layout.json
"""

import json
import re
import sys
from importlib.metadata import version
from pathlib import Path

import numpy
import umap
from sentence_transformers import SentenceTransformer
from sklearn.manifold import trustworthiness

# How many of the first texts, and the neighbours and dimensions that clusters.rs takes for that number: all of them, and parts.
SETTINGS = [(146, 29, 10), (146, 10, 10), (72, 10, 6), (36, 10, 3), (24, 10, 2)]
SEEDS = range(224, 234)
# Neighbours that must be kept.
NEAR = 5


def sentences():
    text = (Path(__file__).parents[4] / "samples" / "the-gift-of-the-magi.txt").read_text(encoding="utf-8")
    text = " ".join(text.split())
    return [sentence for sentence in re.split(r"(?<=[.!?”\"])\s+(?=[A-Z“\"])", text) if len(sentence) > 20]


model = SentenceTransformer(sys.argv[1], device="cpu")
embedded = model.encode(sentences(), convert_to_numpy=True, show_progress_bar=False)
thousandths = numpy.round(embedded * 1000).astype(int)
vectors = thousandths / numpy.linalg.norm(thousandths, axis=1, keepdims=True)


def kept(points):
    return float(trustworthiness(vectors[: len(points)], points, n_neighbors=NEAR, metric="cosine"))


cases = []
for texts, neighbours, dims in SETTINGS:
    layouts = [
        umap.UMAP(n_neighbors=neighbours, n_components=dims, metric="cosine", random_state=seed).fit_transform(
            vectors[:texts]
        )
        for seed in SEEDS
    ]
    each = [kept(points) for points in layouts]
    cases.append({
        "texts": texts,
        "neighbours": neighbours,
        "dims": dims,
        "least": round(min(each), 6),
        "mean": round(sum(each) / len(each), 6),
        "most": round(max(each), 6),
    })
json.dump(
    {
        "made_with": {name: version(name) for name in ["umap-learn", "scikit-learn", "numpy", "sentence-transformers"]},
        "near": NEAR,
        # What the measure gives for the first coordinates as they are: a check for other implementations.
        "first_coordinates": [{"dims": dims, "kept": round(kept(vectors[:, :dims]), 6)} for dims in (2, 10, 100)],
        "umap": cases,
        "thousandths": thousandths.tolist(),
    },
    sys.stdout,
    separators=(",", ":"),
)
print()
