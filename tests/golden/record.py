#!/usr/bin/env python3
"""record.py --check FILE ...
record.py FROM TO [window_left=N] [window_right=N] [soft_cap=X] [sinks=SEED] [t1=TYPE] [t2=TYPE] [t3=TYPE]

--check computes anew what the recorded calls store and load; it has to be what was recorded.

Else writes the recorded call FROM as TO, with other rules of scores: numbers of the batch, and sinks out of a seed (random.gauss;
the first of several is -inf, which is none); or with other types (f32, f16, bf16), to which its tensors are rounded.
What the call stores and loads is computed anew where types change (docs/semantics.md, sections 4 to 6);
out.attn_output and out.lse always, in float64 (section 3). The files of rules/ and types/ were made so; their names end
with FROM's number:

    record.py pmx/012_* rules/window_012.safetensors window_left=3
    record.py pmx/024_* rules/soft_cap_024.safetensors soft_cap=0.75
    record.py pmx/053_* rules/sinks_053.safetensors sinks=1
    record.py pmx/026_* rules/both_sides_026.safetensors window_left=4 window_right=1
    record.py pmx/025_* rules/all_025.safetensors window_left=9 window_right=0 soft_cap=2.5 sinks=2

    record.py pmx/045_* types/bf16_045.safetensors t1=bf16 t2=bf16 t3=bf16
    record.py pmx/016_* types/int8_bf16_016.safetensors t1=bf16 t3=bf16
    record.py pmx/053_* types/int4_f16_053.safetensors t1=bf16 t3=f16
    record.py pmx/018_* types/f16_018.safetensors t1=bf16 t2=f16
    record.py pmx/021_* types/f32_021.safetensors t2=bf16
"""
import json
import math
import random
import struct
import sys

CODES = {"F32": "f", "F16": "e", "BF16": "H", "I64": "q", "I32": "i", "U8": "B", "I8": "b"}
LARGEST = {"F32": 3.4028234663852886e38, "F16": 65504.0, "BF16": 3.3895313892515355e38}


def pack(dtype, numbers):
    return struct.pack(f"<{len(numbers)}{CODES[dtype]}", *(map(to_bf16, numbers) if dtype == "BF16" else numbers))


def unpack(dtype, data):
    numbers = struct.unpack(f"<{len(data) // struct.calcsize(CODES[dtype])}{CODES[dtype]}", data)
    return tuple(struct.unpack("<f", struct.pack("<I", bits << 16))[0] for bits in numbers) if dtype == "BF16" else numbers


def rounded(dtype, numbers):
    return unpack(dtype, pack(dtype, numbers))


def to_bf16(number):
    """Bits of the bfloat16 nearest to a float32, ties to even."""
    bits = struct.unpack("<I", struct.pack("<f", number))[0]
    upper, lower = divmod(bits, 1 << 16)
    return upper | 0x40 if math.isnan(number) else upper + (lower > 0x8000 or (lower == 0x8000 and upper % 2))


class File:
    def __init__(self, path):
        with open(path, "rb") as file:
            size = struct.unpack("<Q", file.read(8))[0]
            self.header = json.loads(file.read(size))
            self.data = bytearray(file.read())
        self.call = self.header["__metadata__"]

    def numbers(self, name):
        begin, end = self.header[name]["data_offsets"]
        return unpack(self.header[name]["dtype"], self.data[begin:end])

    def set(self, name, numbers, dtype=None):
        """Other numbers for a tensor, perhaps of another type, in the same order of tensors."""
        tensor = self.header[name]
        data = {other: self.data[slice(*at["data_offsets"])] for other, at in self.tensors()}
        tensor["dtype"] = dtype or tensor["dtype"]
        data[name] = pack(tensor["dtype"], numbers)
        self.data = bytearray()
        for other, at in self.tensors():
            at["data_offsets"] = [len(self.data), len(self.data) + len(data[other])]
            self.data += data[other]

    def add(self, name, numbers):
        self.header[name] = {"dtype": "F32", "shape": [len(numbers)], "data_offsets": [len(self.data)] * 2}
        self.set(name, numbers)

    def tensors(self):
        return sorted((item for item in self.header.items() if item[0] != "__metadata__"),
                      key=lambda item: item[1]["data_offsets"])

    def write(self, path):
        text = json.dumps(self.header).encode()
        text += b" " * (-len(text) % 8)
        with open(path, "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text + self.data)


def float32(number):
    return struct.unpack("<f", struct.pack("<f", number))[0]


class Cache:
    """The rows that a call stores to and loads from, by sequence and position."""

    def __init__(self, file):
        call = file.call
        self.mode, self.page, self.layer = call["cache_mode"], int(call["page_size"]), int(call["layer_idx"])
        self.order, self.shape = call["layout_order"], file.header["cache"]["shape"]
        self.bits, self.group, self.dim = int(call["quant_bit"]), int(call["quant_group"]), int(call["head_dim"])
        self.starts, self.kvstarts = file.numbers("cachestarts"), file.numbers("kvstarts")
        self.codes, self.code_type = list(file.numbers("cache")), file.header["cache"]["dtype"]
        self.scale_type = file.header["scale"]["dtype"] if self.bits else None
        self.scales = list(file.numbers("scale")) if self.bits else []

    def row(self, b, t, part, head):
        """Number of the row of elements, or of their scales: (block, token), key or value, head."""
        pages = len(self.starts) // (len(self.kvstarts) - 1)
        block, token = 0, self.starts[b] + t if self.mode == "offset" else 0
        if self.mode == "token_table":
            token = self.starts[self.kvstarts[b] + t]
        elif self.mode == "page_table":
            token = self.starts[b * pages + t // self.page] + t % self.page
        elif self.mode == "block_table":
            block, token = self.starts[b * pages + t // self.page], t % self.page
        at, index = 0, {"N": block, "T": token, "L": self.layer, "2": part, "H": head}
        for axis, extent in zip(self.order[:-1], self.shape):
            at = at * extent + index[axis]
        return at

    def store(self, row, numbers):
        if not self.bits:
            self.codes[row * self.dim:(row + 1) * self.dim] = rounded(self.code_type, numbers)
            return
        most, codes = (1 << (self.bits - 1)) - 1, []
        for first in range(0, self.dim, self.group):
            group = numbers[first:first + self.group]
            scale = max(float32(max(map(abs, group)) / most), float32(1e-5))
            scale = rounded(self.scale_type, [min(scale, LARGEST[self.scale_type])])[0]
            self.scales[(row * self.dim + first) // self.group] = scale
            codes += [max(-most, min(most, round(float32(x / scale)))) for x in group]
        if self.bits == 4:
            codes = [even % 16 + odd % 16 * 16 for even, odd in zip(codes[::2], codes[1::2])]
        self.codes[row * len(codes):(row + 1) * len(codes)] = codes

    def load(self, row):
        if not self.bits:
            return self.codes[row * self.dim:(row + 1) * self.dim]
        if self.bits == 4:
            packed = self.codes[row * self.dim // 2:(row + 1) * self.dim // 2]
            codes = [(nibble ^ 8) - 8 for byte in packed for nibble in (byte % 16, byte // 16)]
        else:
            codes = self.codes[row * self.dim:(row + 1) * self.dim]
        return [float32(code * self.scales[(row * self.dim + d) // self.group]) for d, code in enumerate(codes)]


def retype(file, types):
    """Rounds the call's inputs to other types, and computes what it stores and loads anew."""
    call = file.call
    call.update(types)
    call.pop("pmx_code_mismatches", None)
    t1, t2, t3 = (call[name].upper() for name in ("t1", "t2", "t3"))
    for name in ("query", "current_key", "current_value", "attn_mask"):
        if name in file.header:
            file.set(name, file.numbers(name), t1)
    if int(call["quant_bit"]):
        file.set("scale", file.numbers("scale"), t3)
    else:
        file.set("cache", file.numbers("cache"), t2)
    cache, seqstarts, dim = Cache(file), file.numbers("seqstarts"), int(call["head_dim"])
    heads = int(call["num_kv_heads"]) or int(call["num_heads"])
    for part, name in enumerate(("key", "value")):
        new, start = file.numbers("current_" + name), file.numbers("start_pos")
        for b, first in enumerate(seqstarts[:-1]):
            for i in range((seqstarts[b + 1] - first) * heads):
                row = cache.row(b, start[b] + i // heads, part, i % heads)
                cache.store(row, new[(first * heads + i) * dim:(first * heads + i + 1) * dim])
    file.set("out.cache", cache.codes, file.header["cache"]["dtype"])
    if cache.bits:
        file.set("out.scale", cache.scales, t3)
    kvstarts = file.numbers("kvstarts")
    for part, name in enumerate(("key", "value")):
        file.set("out." + name, [x for b, first in enumerate(kvstarts[:-1]) for t in range(kvstarts[b + 1] - first)
                                 for head in range(heads) for x in cache.load(cache.row(b, t, part, head))])


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


def check(paths):
    for path in paths:
        recorded, computed = File(path), File(path)
        retype(computed, {})
        for name in ("out.cache", "out.scale", "out.key", "out.value"):
            if name in recorded.header and recorded.numbers(name) != computed.numbers(name):
                sys.exit(f"{path}: {name} is not what the call stores and loads")
    print(f"{len(paths)} recorded calls")


def main():
    if sys.argv[1] == "--check":
        return check(sys.argv[2:])
    file = File(sys.argv[1])
    file.call.pop("pmx_attention_checked", None)
    rules = dict(rule.split("=") for rule in sys.argv[3:])
    if "sinks" in rules:
        rng = random.Random(int(rules.pop("sinks")))
        drawn = [rng.gauss(0, 2) for _ in range(int(file.call["num_heads"]))]
        file.add("sinks", [-math.inf] + drawn[1:] if len(drawn) > 1 else drawn)
    types = {name: rules.pop(name) for name in ("t1", "t2", "t3") if name in rules}
    if types:
        retype(file, types)
    file.call.update(rules)
    output, lse = attend(file)
    file.set("out.attn_output", output)
    file.set("out.lse", lse)
    file.write(sys.argv[2])


main()
