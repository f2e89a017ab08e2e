"""Makes bm25.json: what an independent implementation of the analyzer and of Lucene's BM25 says about a few texts.

Run with: pip install snowballstemmer==2.2.0 uniseg==0.10.1; python bm25.py > bm25.json
"""

import json
import math
import unicodedata
from collections import Counter

import snowballstemmer
from uniseg.wordbreak import words

K1, B = 0.9, 0.4
STOP_WORDS = set(
    "a an and are as at be but by for if in into is it no not of on or such that the their then there these they this to was will with".split()
)
STEMMER = snowballstemmer.stemmer("english")

TEXTS = [
    "Maria: I finally booked the train to Lisbon, leaving on the 14th of March.",
    "Tom: Lisbon! Are you travelling alone, or is your sister travelling too?",
    "Maria: My sister's new job starts that week, so I am going alone this time.",
    "Tom: You'll love the trams. I rode tram 28 twice when I travelled there.",
    "Maria: I don\u2019t like crowded trams, honestly; walking suits me better.",
    "Tom: Walking it is, then. Bring good shoes, the hills are steep.",
    "Maria: Steep hills are fine. I've been running every morning since January.",
    "Tom: Running? You? Since when do you run before breakfast?",
    "Maria: Since the doctor said my blood pressure was too high.",
    "Tom: Good for you. My father's doctor told him the same, and he ignored it.",
    "The ferry leaves the harbour at six and returns at nine in the evening.",
    "The old harbour master kept a ledger of every ferry, tug and fishing boat.",
    "Fishing boats were painted blue; tugs were painted black and red.",
    "A ledger entry reads: two crates of oranges, one bell, no passengers.",
    "Bells were rung in fog, and fog came on most mornings in autumn.",
    "Autumn fog delayed the ferries so often that passengers carried books.",
    "She read the same book four times and could recite its first page.",
    "Recited poems are remembered longer than poems read in silence.",
    "Memory, said the teacher, is a muscle: use it, rest it, use it again.",
    "The teacher's garden grew beans, leeks, garlic and a single fig tree.",
    "Fig trees grow slowly here. The fig by the wall is thirty years old.",
    "Garlic is planted in October and harvested in July.",
    "The caf\u00e9 on the corner serves cr\u00e8me br\u00fbl\u00e9e and na\u00efve paintings hang there.",
    "Der Stra\u00dfenbahnfahrer trank \u00c4pfelsaft in K\u00f6ln.",
    "\u4ed6\u4eec\u5728\u5357\u4eac\u5e02\u957f\u6c5f\u5927\u6865\u4e0a\u89c1\u9762\u3002",
    "\u5357\u4eac\u7684\u51ac\u5929\u5f88\u51b7\uff0c\u957f\u6c5f\u4e0a\u6709\u96fe\u3002",
    "\u6771\u4eac\u30bf\u30ef\u30fc\u306f\u8d64\u3044\u3067\u3059\u3002",
    "Version 2.0.1 costs \uff11\uff19.99 euros, tax included (20 %).",
    "Good morning \U0001f600\U0001f44d see you at 7:30 \u2764\ufe0f",
    "This is not it, and that will be that.",
    "",
]

QUERIES = [
    "When does Maria travel to Lisbon?",
    "tram",
    "the teacher's fig tree",
    "ferry ferry passengers in fog",
    "don't like crowded trams",
    "\u957f\u6c5f",
    "\u5357\u4eac \u957f\u6c5f\u5927\u6865",
    "\u8d64\u3044\u30bf\u30ef\u30fc",
    "CAF\u00c9 br\u00fbl\u00e9e",
    "19.99",
    "is it not that",
    "zeppelin",
]


def analyze(text):
    terms, before = [], None
    for word in words(unicodedata.normalize("NFKC", text).lower().replace("\u2019", "'")):
        if not any(sign.isalnum() for sign in word):
            before = None
            continue
        if before is not None:
            terms.append(before + word)
        before = word
        word = word.removesuffix("'s")
        if word not in STOP_WORDS:
            terms.append(STEMMER.stemWord(word))
    return terms


def search(index, query):
    counts = [Counter(terms) for terms in index]
    lengths = [len(terms) for terms in index]
    filled = sum(length > 0 for length in lengths)
    mean = sum(lengths) / filled
    scores = [0.0] * len(index)
    for term in analyze(query):
        df = sum(term in count for count in counts)
        idf = math.log(1 + (filled - df + 0.5) / (df + 0.5))
        for place, count in enumerate(counts):
            tf = count[term]
            scores[place] += idf * tf / (tf + K1 * (1 - B + B * lengths[place] / mean))
    hits = [(place, score) for place, score in enumerate(scores) if score > 0]
    return sorted(hits, key=lambda hit: (-hit[1], hit[0]))


def main():
    index = [analyze(text) for text in TEXTS]
    texts = [{"text": text, "terms": " ".join(terms)} for text, terms in zip(TEXTS, index)]
    queries = [{"query": query, "hits": search(index, query)} for query in QUERIES]
    lines = [",\n".join(json.dumps(entry) for entry in entries) for entries in (texts, queries)]
    print('{"texts": [\n%s\n], "queries": [\n%s\n]}' % tuple(lines))


main()
