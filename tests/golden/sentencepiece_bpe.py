"""Makes sentencepiece.json: the pieces of a small SentencePiece model in the form of a GGUF file, and texts with their ids.

The model is trained on the sample story with the settings of Llama 2 and Mistral: BPE with bytes for what no piece writes,
single digits, no normalisation. Each text has its ids with the dummy prefix, a space in front, and without it.

    python3 sentencepiece_bpe.py
"""

import io
import random

import sentencepiece
from sentencepiece import sentencepiece_model_pb2

from golden import HERE, made_with, write

STORY = HERE.parent.parent / "samples" / "the-gift-of-the-magi.txt"
USER_DEFINED = ["<|tool|>", "\u2581\u2581\u2581"]
TEXTS = [
    "",
    " ",
    "  two  spaces   three",
    "a",
    " leading",
    "trailing ",
    "One dollar and eighty-seven cents.",
    "line\nbreak\r\n\n\ttab",
    "1234567890 3.14 007",
    "Zürich, naïve café, Ελλάδα, Привет, 日本語, العربية",
    "e\u0301 and \u00e9, \ufb01 and fi, \u2460, \u00a0 and \u3000",
    "emoji 🙂👩‍👩‍👧🇨🇭",
    "a literal \u2581 piece",
    "<s> </s> <unk> <0x0A> are text",
    "<|tool|>call<|tool|> it<|tool|>",
    "zero \u0000 and \ufeff",
    "{\"key\": [1, true, \"of\"]}",
    "def of(the):\n    return the + 1\n",
]


def pieces(processor):
    """Tokens, scores and kinds as llama.cpp's converter writes them."""
    ids = range(processor.get_piece_size())

    def kind(index):
        tests = [(processor.is_unknown, 2), (processor.is_control, 3), (processor.is_unused, 5), (processor.is_byte, 6)]
        known = next((number for test, number in tests if test(index)), None)
        return known or (4 if processor.id_to_piece(index) in USER_DEFINED else 1)

    return {
        "tokens": [processor.id_to_piece(index) for index in ids],
        "scores": [processor.get_score(index) for index in ids],
        "kinds": [kind(index) for index in ids],
    }


def random_texts(count):
    """Words of few letters, where pieces that overlap compete."""
    generator = random.Random(1)
    return ["".join(generator.choice("aaenth  \n.é") for _ in range(generator.randint(1, 40))) for _ in range(count)]


if __name__ == "__main__":
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        input=str(STORY), model_writer=model, model_type="bpe", vocab_size=800, byte_fallback=True, split_digits=True,
        normalization_rule_name="identity", remove_extra_whitespaces=False, allow_whitespace_only_pieces=True,
        user_defined_symbols=USER_DEFINED, max_sentence_length=100_000, minloglevel=2,
    )
    with_prefix = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    proto = sentencepiece_model_pb2.ModelProto.FromString(model.getvalue())
    proto.normalizer_spec.add_dummy_prefix = False
    without = sentencepiece.SentencePieceProcessor(model_proto=proto.SerializeToString())
    texts = [*TEXTS, STORY.read_text(encoding="utf-8")[:3000], *random_texts(200)]
    write("sentencepiece.json", {
        "made_with": made_with("sentencepiece", "protobuf"),
        **pieces(with_prefix),
        "cases": [{"text": text, "prompt": with_prefix.encode(text), "plain": without.encode(text)} for text in texts],
    })
