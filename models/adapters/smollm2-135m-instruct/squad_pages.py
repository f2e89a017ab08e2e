"""Writes the training set of SQuAD 1.1 as items for `memlocal-train data`, from the pages of one article each that the history of
SQuAD-explorer holds (442 articles, 18,896 paragraphs, 87,599 questions).

    python3 squad_pages.py SQUAD_EXPLORER.git squad_new.jsonl.gz --apart EVALUATION.json ... --known TRAIN.jsonl.gz ...

Left out are paragraphs that share a run of 50 characters (in lower case, with single spaces) with a text of the files after `--apart`, questions that
occur in them, and paragraphs of the files after `--known`.
"""
import argparse
import gzip
import html
import json
import re
import subprocess
import urllib.parse

COMMIT = "13f82e35b9a1fb9173f863b35f5675030646571e"
FOLDER = "explore/1.1/train/"
RUN, STEP = 50, 25


def git(repository, *arguments, **options):
    return subprocess.run(["git", f"--git-dir={repository}", *arguments], capture_output=True, check=True, **options).stdout


def pages(repository):
    """The texts of all pages."""
    listed = git(repository, "ls-tree", "-r", "-z", "--format=%(objectname)", COMMIT, FOLDER)
    out = git(repository, "cat-file", "--batch", input=listed.replace(b"\0", b"\n"))
    at = 0
    while at < len(out):
        line = out.index(b"\n", at)
        end = line + 1 + int(out[at:line].split()[2])
        yield out[line + 1:end].decode()
        at = end + 1


def within(tag, text):
    return [html.unescape(found) for found in re.findall(rf"<{tag}>(.*?)</{tag.split()[0]}>", text, re.S)]


def paragraphs(page):
    """The title, the paragraph and its questions with their answers, for each paragraph of a page."""
    for title in within('h1 id="title"', page):
        for part in page.split('<div class="para-wrap">')[1:]:
            asked = part.split('<div class="qa-wrap">')
            questions = [(within('strong class="question"', one)[0], within('span class="answer"', one)) for one in asked[1:]]
            yield urllib.parse.unquote(title).replace("_", " "), within("pre", asked[0])[0], questions


def values(path):
    """The values of a JSON or JSONL file, compressed or not."""
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8") as file:
        text = file.read()
    try:
        return [json.loads(text)]
    except json.JSONDecodeError:
        return [json.loads(line) for line in text.splitlines() if line.strip()]


def strings(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from strings(inner)


def plain(text):
    return " ".join(text.lower().split())


def letters(text):
    return "".join(c for c in text.lower() if c.isalnum())


class Apart:
    """Texts that no paragraph may share a run with."""

    def __init__(self, paths):
        self.questions, self.texts, self.places = set(), [], {}
        for text in {text for path in paths for value in values(path) for text in strings(value)}:
            self.questions.add(letters(text))
            text = plain(text)
            for start in range(0, len(text) - RUN + 1 and len(text) - STEP + 1, STEP):
                self.places.setdefault(text[start:start + STEP], []).append((len(self.texts), start))
            self.texts.append(text)

    def shares(self, paragraph):
        paragraph = plain(paragraph)
        return any(
            self.reaches(paragraph, at, *place)
            for at in range(len(paragraph) - STEP + 1)
            for place in self.places.get(paragraph[at:at + STEP], [])
        )

    def reaches(self, paragraph, at, number, start):
        """Whether equal characters at two places belong to a run that is long enough."""
        text, before, behind = self.texts[number], 0, STEP
        while before < RUN and min(start, at) > before and text[start - before - 1] == paragraph[at - before - 1]:
            before += 1
        while behind < RUN and start + behind < len(text) and text[start + behind:start + behind + 1] == paragraph[at + behind:at + behind + 1]:
            behind += 1
        return before + behind >= RUN


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("repository")
    parser.add_argument("out")
    parser.add_argument("--apart", nargs="+", default=[])
    parser.add_argument("--known", nargs="+", default=[])
    given = parser.parse_args()
    apart = Apart(given.apart)
    known = {letters(text) for path in given.known for value in values(path) for text in strings(value["context"])}
    all_of_them, kept, items = 0, 0, {}
    for page in pages(given.repository):
        for title, paragraph, questions in paragraphs(page):
            all_of_them += 1
            if letters(paragraph) in known or apart.shares(paragraph):
                continue
            kept += 1
            for question, answers in questions:
                if letters(question) in apart.questions or not answers or not answers[0].strip() or answers[0] not in paragraph:
                    continue
                items.setdefault((letters(question), paragraph), {
                    "id": f"squad-page-{len(items)}", "source": "squad_v1.1_train", "kind": "single",
                    "context": [{"title": title, "text": paragraph}], "question": " ".join(question.split()),
                    "answers": [answers[0].strip()], "supporting": [title],
                })
    with gzip.open(given.out, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(item, ensure_ascii=False) + "\n" for item in items.values())
    print(f"{all_of_them} paragraphs, {kept} kept with {len(items)} questions")


if __name__ == "__main__":
    main()
