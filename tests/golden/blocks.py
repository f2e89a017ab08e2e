"""Makes blocks.json: for each GGUF block format, two rows of 256 weights as raw bytes in hex and as gguf-py's dequantised f32.

gguf-py quantises random weights where it can (the formats _0 and _1); the others get random bytes with sane f16 scales.
Decoding a row is exact: the values are kept with nine digits, which is every bit of an f32.

    python3 blocks.py
"""

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, dequantize, quantize

from golden import floats, made_with, write

ROWS, COLUMNS = 2, 256
QUANTISED = ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0"]
# Where a block keeps its f16 scales (ggml-common.h): d, and dmin behind it.
SCALES = {
    "Q4_K": [0, 2],
    "Q5_K": [0, 2],
    "Q6_K": [208],
    "Q2_K": [80, 82],
    "Q3_K": [108],
    "IQ4_NL": [0],
    "IQ4_XS": [0],
}


def quantised(random, kind):
    weights = random.normal(0, 0.5, (ROWS, COLUMNS)).astype(np.float32)
    return quantize(weights, kind)


def random_blocks(random, kind, offsets):
    block_len, block_bytes = GGML_QUANT_SIZES[kind]
    rows = ROWS * COLUMNS // block_len
    blocks = random.integers(0, 256, (rows, block_bytes), dtype=np.uint8)
    for offset in offsets:
        scales = random.uniform(0.001, 0.02, (rows, 1)).astype(np.float16)
        blocks[:, offset : offset + 2] = scales.view(np.uint8)
    return blocks.reshape(ROWS, -1)


def golden(random, name):
    kind = GGMLQuantizationType[name]
    blocks = random_blocks(random, kind, SCALES[name]) if name in SCALES else quantised(random, kind)
    return {
        "format": name,
        "rows": [row.tobytes().hex() for row in blocks],
        "values": floats(dequantize(blocks, kind).tolist(), digits=9),
    }


if __name__ == "__main__":
    random = np.random.default_rng(1)
    write("blocks.json", {
        "made_with": made_with("gguf", "numpy"),
        "columns": COLUMNS,
        "formats": [golden(random, name) for name in [*QUANTISED, *SCALES]],
    })
