"""Makes scores.json: the scorers f1:locomo, f1:gam, f1:squad, em:squad and bleu1 by a second implementation, over the
answers of a LoCoMo file and four predictors that need no model, and the stems of all its words by NLTK.

    pip install nltk==3.10.4
    python scores.py path/to/locomo.json scores.json

Nothing of the data set is in the output but numbers and a digest.
"""

import hashlib
import json
import re
import string
import sys
from collections import Counter

import nltk
from nltk.stem import PorterStemmer

STEMMER = PorterStemmer()


def locomo_normal(text):
    text = text.replace(",", "").lower()
    text = "".join(c for c in text if c not in string.punctuation)
    return " ".join(re.sub(r"\b(a|an|the|and)\b", " ", text).split())


def gam_normal(text):
    text = re.sub(r"[^\w\s]", " ", text.lower())
    return " ".join(re.sub(r"(^|\s)(a|an|the)(\s|$)", " ", text).split())


def squad_normal(text):
    text = "".join(c for c in text.lower() if c not in string.punctuation)
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", text).split())


def f1(prediction, gold):
    same = sum((Counter(prediction) & Counter(gold)).values())
    if same == 0:
        return 0.0
    precision, recall = same / len(prediction), same / len(gold)
    return 2 * precision * recall / (precision + recall)


def f1_locomo_once(prediction, gold):
    stem = lambda text: [STEMMER.stem(word) for word in locomo_normal(text).split()]
    return f1(stem(prediction), stem(gold))


def f1_locomo(prediction, gold, category):
    if category == 5:
        said = prediction.lower()
        return float("no information available" in said or "not mentioned" in said)
    if category == 3:
        gold = gold.split(";")[0].strip()
    if category == 1:
        predictions, golds = ([part.strip() for part in text.split(",")] for text in (prediction, gold))
        return sum(max(f1_locomo_once(p, g) for p in predictions) for g in golds) / len(golds)
    return f1_locomo_once(prediction, gold)


def f1_gam(prediction, gold):
    prediction, gold = gam_normal(prediction).split(), gam_normal(gold).split()
    return 1.0 if not prediction and not gold else f1(prediction, gold)


def bleu1(prediction, gold):
    from math import exp
    prediction, gold = gam_normal(prediction).split(), gam_normal(gold).split()
    if not prediction:
        return 0.0
    precision = sum((Counter(prediction) & Counter(gold)).values()) / len(prediction)
    brevity = 1.0 if len(prediction) >= len(gold) else exp(1 - len(gold) / len(prediction))
    return precision * brevity


SCORERS = {
    "f1:locomo": f1_locomo,
    "f1:gam": lambda p, g, _: f1_gam(p, g),
    "f1:squad": lambda p, g, _: f1(squad_normal(p).split(), squad_normal(g).split()),
    "em:squad": lambda p, g, _: float(squad_normal(p) == squad_normal(g)),
    "bleu1": lambda p, g, _: bleu1(p, g),
}

PREDICTORS = {
    "gold": lambda gold, _: gold,
    "sentence": lambda gold, _: f"It was {gold}.",
    "first half": lambda gold, _: " ".join(gold.split()[: (len(gold.split()) + 1) // 2]),
    "with the one before": lambda gold, before: f"{before}, and {gold}",
}


def main(source, target):
    samples = json.load(open(source, encoding="utf-8"))
    asked = [(str(qa["answer"]), qa["category"]) for s in samples for qa in s["qa"] if qa["category"] != 5]
    means = {}
    for predictor, predict in PREDICTORS.items():
        for scorer, score in SCORERS.items():
            before, scores = "", {"all": []}
            for gold, category in asked:
                value = score(predict(gold, before), gold, category)
                scores["all"].append(value)
                scores.setdefault(str(category), []).append(value)
                before = gold
            means[f"{predictor} | {scorer}"] = {
                name: round(sum(values) / len(values), 6) for name, values in sorted(scores.items())
            }
    texts = [turn["text"] for s in samples for key, session in s["conversation"].items()
             if isinstance(session, list) for turn in session]
    texts += [qa["question"] for s in samples for qa in s["qa"]] + [gold for gold, _ in asked]
    words = sorted({word for text in texts for word in locomo_normal(text).split()})
    ascii_words = [word for word in words if word.isascii()]
    stems = "".join(f"{word} {STEMMER.stem(word)}\n" for word in ascii_words)
    result = {
        "nltk": nltk.__version__,
        "questions": len(asked),
        "means": means,
        "ascii_words": len(ascii_words),
        "stems_sha256": hashlib.sha256(stems.encode()).hexdigest(),
    }
    json.dump(result, open(target, "w"), indent=1)
    open(target, "a").write("\n")


main(*sys.argv[1:])
