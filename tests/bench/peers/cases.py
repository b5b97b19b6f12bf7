"""The shapes that every peer gets. Nothing here needs more than Python itself."""

import dataclasses
import math

HEADS, KV_HEADS, DIM = 32, 8, 128  # Llama 3 8B's attention
GROUP = HEADS // KV_HEADS


@dataclasses.dataclass(frozen=True)
class Case:
    """A batch. Each of `sequences` is (new tokens, keys with them); several new tokens see each other causally."""

    name: str
    title: str
    sequences: tuple
    bound: str = "memory"  # what it takes most of: "memory", "arithmetic", or "calls", which do next to nothing

    @property
    def rows(self):
        """New tokens of all sequences."""
        return sum(new for new, _ in self.sequences)

    @property
    def keys(self):
        return sum(keys for _, keys in self.sequences)

    @property
    def elements(self):
        """Elements of keys and values, one layer."""
        return self.keys * 2 * KV_HEADS * DIM

    @property
    def operations(self):
        """Floating-point operations, one layer: two products of DIM multiply-adds for each row and key that it sees."""
        pairs = sum(new * (keys - new) + new * (new + 1) // 2 for new, keys in self.sequences)
        return 4 * DIM * HEADS * pairs

    def starts(self):
        """First row of each sequence, and the number of rows."""
        starts = [0]
        for new, _ in self.sequences:
            starts.append(starts[-1] + new)
        return starts

    def rows_of(self, array, sequence, count=1):
        """Those of an array of all sequences' rows that belong to `count` of them."""
        starts = self.starts()
        return array[starts[sequence] : starts[sequence + count]]

    def layers(self, bytes_per_element, beyond_cache):
        """Layers whose keys and values together are as large as `beyond_cache` bytes, so that a run reads memory; one
        layer where that does not matter."""
        if self.bound != "memory":
            return 1
        return max(1, math.ceil(beyond_cache / (self.elements * bytes_per_element)))


def decode(sequences, keys):
    return ((1, keys),) * sequences


MIXED = tuple((1, keys) for keys in (*range(1024, 8193, 512), 1280)) + ((512, 512), (512, 512))

CASES = {
    case.name: case
    for case in (
        Case("decode-1x1k", "decode, 1 sequence of 1024 keys", decode(1, 1024)),
        Case("decode-1x4k", "decode, 1 sequence of 4096 keys", decode(1, 4096)),
        Case("decode-1x16k", "decode, 1 sequence of 16384 keys", decode(1, 16384)),
        Case("decode-1x32k", "decode, 1 sequence of 32768 keys", decode(1, 32768)),
        Case("decode-8x4k", "decode, 8 sequences of 4096 keys", decode(8, 4096)),
        Case("decode-64x512", "decode, 64 sequences of 512 keys", decode(64, 512)),
        Case("mixed", "16 decodes of 1024 to 8192 keys with 2 prefills of 512", MIXED),
        Case("prefill-2048", "prefill of 2048 tokens, causal", ((2048, 2048),), "arithmetic"),
        Case("step-128", "decode, 1 sequence of 128 keys, one layer", decode(1, 128), "calls"),
    )
}
# Time over keys: cases of one sequence that differ in nothing else.
KEYS_SWEEP = ("decode-1x1k", "decode-1x4k", "decode-1x16k", "decode-1x32k")
SMALL = Case("small", "3 sequences, for tests", ((1, 130), (1, 5), (40, 40)), "calls")


def find(name):
    return SMALL if name == SMALL.name else CASES[name]
