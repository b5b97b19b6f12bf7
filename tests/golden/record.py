#!/usr/bin/env python3
"""record.py FROM TO [window_left=N] [window_right=N] [soft_cap=X] [sinks=SEED]

Writes the recorded call FROM as TO, with other rules of scores: numbers of the batch, and sinks out of a seed (random.gauss;
the first of several is -inf, which is none). What the call stores and loads stays; out.attn_output and out.lse are computed anew, in
float64, from docs/semantics.md, section 3. The files of rules/ were made so; their names end with FROM's number:

    record.py pmx/012_* rules/window_012.safetensors window_left=3
    record.py pmx/024_* rules/soft_cap_024.safetensors soft_cap=0.75
    record.py pmx/053_* rules/sinks_053.safetensors sinks=1
    record.py pmx/026_* rules/both_sides_026.safetensors window_left=4 window_right=1
    record.py pmx/025_* rules/all_025.safetensors window_left=9 window_right=0 soft_cap=2.5 sinks=2
"""
import json
import math
import random
import struct
import sys

CODES = {"F32": "f", "F16": "e", "I64": "q", "I32": "i", "U8": "B", "I8": "b"}


class File:
    def __init__(self, path):
        with open(path, "rb") as file:
            size = struct.unpack("<Q", file.read(8))[0]
            self.header = json.loads(file.read(size))
            self.data = bytearray(file.read())
        self.call = self.header["__metadata__"]

    def numbers(self, name):
        begin, end = self.header[name]["data_offsets"]
        code = CODES[self.header[name]["dtype"]]
        return struct.unpack(f"<{(end - begin) // struct.calcsize(code)}{code}", self.data[begin:end])

    def set(self, name, numbers):
        begin, end = self.header[name]["data_offsets"]
        self.data[begin:end] = struct.pack(f"<{len(numbers)}f", *numbers)

    def add(self, name, numbers):
        end = len(self.data) + 4 * len(numbers)
        self.header[name] = {"dtype": "F32", "shape": [len(numbers)], "data_offsets": [len(self.data), end]}
        self.data += struct.pack(f"<{len(numbers)}f", *numbers)

    def write(self, path):
        text = json.dumps(self.header).encode()
        text += b" " * (-len(text) % 8)
        with open(path, "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text + self.data)


def float32(number):
    return struct.unpack("<f", struct.pack("<f", number))[0]


def slope_of(head, heads):
    c = 2 ** int(math.log2(heads))
    numerator = -8 * (head + 1) if head < c else -4 * (2 * (head - c) + 1)
    return float32(2.0 ** float32(numerator / c))


def attend(file):
    call = file.call
    heads, dim = int(call["num_heads"]), int(call["head_dim"])
    kv_heads, repeat = int(call["num_kv_heads"]) or heads, int(call.get("num_repeat", 1))
    scale, cap = float32(float(call["softmax_scale"])), float32(float(call.get("soft_cap", 0)))
    left, right = int(call.get("window_left", -1)), int(call.get("window_right", -1))
    causal, alibi, rank = int(call["is_causal"]), int(call["is_alibi"]), int(call["attn_mask"])
    query, key, value = (file.numbers(name) for name in ("query", "out.key", "out.value"))
    seqstarts, kvstarts = file.numbers("seqstarts"), file.numbers("kvstarts")
    mask = file.numbers("attn_mask") if rank else ()
    columns = file.header["attn_mask"]["shape"][-1] if rank else 0
    sinks = file.numbers("sinks") if "sinks" in file.header else [-math.inf] * heads

    def row(b, i, h):
        """Output and lse of new token i of sequence b, query head h."""
        decoding = b < int(call["decoding_batches"])
        n, m = seqstarts[b + 1] - seqstarts[b], kvstarts[b + 1] - kvstarts[b]
        token, kv_head = seqstarts[b] + i, h // (heads // kv_heads) * repeat
        q = query[(token * heads + h) * dim:][:dim]
        scores, values = [], []
        for j in range(m):
            dist, at = j - (m - n + i), kvstarts[b] + j
            hidden = dist > 0 and (alibi or (causal and not decoding))
            hidden = hidden or (left >= 0 and dist < -left) or (right >= 0 and not decoding and dist > right)
            bias = mask[((h if rank == 3 else 0) * seqstarts[-1] + token) * columns + at] if rank else 0.0
            if hidden or bias == -math.inf:
                continue
            first = (at * kv_heads * repeat + kv_head) * dim
            score = sum(a * b for a, b in zip(q, key[first:first + dim])) * scale
            if cap:
                score = cap * math.tanh(score / cap)
            scores.append(score + bias + (slope_of(h, heads) * dist if alibi else 0.0))
            values.append(value[first:first + dim])
        if not scores:
            return [0.0] * dim, -math.inf
        most = max(scores)
        weights = [math.exp(score - most) for score in scores]
        total = sum(weights)
        divisor = total + math.exp(sinks[h] - most)
        return [sum(w * v[d] for w, v in zip(weights, values)) / divisor for d in range(dim)], most + math.log(total)

    rows = [row(b, i, h)
            for b in range(len(seqstarts) - 1)
            for i in range(seqstarts[b + 1] - seqstarts[b])
            for h in range(heads)]
    return [x for output, _ in rows for x in output], [lse for _, lse in rows]


def main():
    file = File(sys.argv[1])
    file.call.pop("pmx_attention_checked", None)
    rules = dict(rule.split("=") for rule in sys.argv[3:])
    if "sinks" in rules:
        rng = random.Random(int(rules.pop("sinks")))
        drawn = [rng.gauss(0, 2) for _ in range(int(file.call["num_heads"]))]
        file.add("sinks", [-math.inf] + drawn[1:] if len(drawn) > 1 else drawn)
    file.call.update(rules)
    output, lse = attend(file)
    file.set("out.attn_output", output)
    file.set("out.lse", lse)
    file.write(sys.argv[2])


main()
