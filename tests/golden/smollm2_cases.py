"""What smollm2.json asks: ten prompts to continue, and forty strings on which tokenizers go wrong."""

STORY = " ".join(
    f"In year {year} of the old calendar the keeper of the lighthouse counted {year * 3 % 17} ships, wrote their names in the blue "
    f"book, and sent letter number {year + 40} to her sister, who lived beyond the mountain and answered only when it rained."
    for year in range(1, 12)
)

# A string is continued as it is; a list of (role, content) is rendered by the file's own chat template first.
PROMPTS = {
    "one word": "Hello",
    "fact": "The capital of France is",
    "code": "def fibonacci(n):\n    \"\"\"Return the n-th Fibonacci number.\"\"\"\n",
    "numbers": "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11,",
    "long": STORY + "\n\nQuestion: What did the keeper write in the blue book?\nAnswer:",
    "french": "Il était une fois une petite fille qui habitait",
    "chat": [("user", "What is the capital of France?")],
    "chat with system": [
        ("system", "You answer in one short sentence."),
        ("user", "Why is the sky blue?"),
    ],
    "chat with code": [("user", "Write a Python function that adds two numbers.\n\n```python\ndef add(a, b):\n```")],
    "chat of three turns": [
        ("user", "My name is Ada and I live in Turin."),
        ("assistant", "Nice to meet you, Ada!"),
        ("user", "What is my name and where do I live?"),
    ],
}

STRINGS = [
    "",
    " ",
    "  ",
    "\n",
    "\n\n\n",
    "\t",
    "\t\tindented\twith tabs",
    "\r\nCRLF\r\nlines\r\n",
    " leading and trailing spaces  ",
    "    four leading spaces",
    "two  spaces   three    four",
    "Hello, world!",
    "hello\nworld\n\n  next",
    "1234567890",
    "3.14159 1,000,000 -42 1e-10 0xFF 2024-02-29",
    "v1.2.3-rc4 a1b2c3",
    "I've we're they'll don't it's he'd I'm I'VE WE'RE",
    "½ ² Ⅷ ٣ ४ ①",
    "😀🎉👍🏽👨‍👩‍👧‍👦🇫🇷",
    "我们昨天在北京大学读书。",
    "東京は日本の首都です。カタカナ",
    "한국어 문장입니다.",
    "Съешь же ещё этих мягких французских булок",
    "اللغة العربية جميلة",
    "हिन्दी में लिखा हुआ ไทย",
    "Cafe\u0301 nai\u0308ve A\u030a Z\u0351\u036b\u0343a\u0310",
    "Café naïve Å ﬁ ﬀ Ａ",
    "\u00a0no-break\u2003em\u200bzero\u3000wide\ufeffmark",
    "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n",
    "a<|endoftext|>b <|im_end|> c<repo_name>d",
    "<|im_start|><|im_start|> <|IM_START|> <|im_start",
    "fn main() {\n\tlet x: Vec<u32> = vec![1, 2, 3];\n    println!(\"{x:?}\");\n}",
    "if (a!=b&&c==d||!e){return a->b[i]++;} // ok",
    "https://example.org/a_b?q=1&r=%20#frag user@example.com",
    "snake_case CamelCase SCREAMING_CASE kebab-case",
    "!!!???...---===***###",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "control \u0000\u0001\u0007\u001b[0m\u007f\u0085 end",
    "bytes \u0004 not \u0016 in \U00050000 the \U00090000 vocabulary ?\u0006?",
    "\U000f0000\U0010ffff\ufffd\ue000 private",
]
