"""Element types as numpy has them or not, and what rounding to each does to a number."""

import numpy as np


def to_bfloat16(numbers):
    """The bits of the nearest bfloat16, ties to even, as uint16. `numbers`: finite."""
    bits = np.ascontiguousarray(numbers, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def from_bfloat16(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


def exact(numbers):
    return numbers


def float16(numbers):
    return numbers.astype(np.float16).astype(np.float32)


def bfloat16(numbers):
    return from_bfloat16(to_bfloat16(numbers))


def quantize(numbers, bits, group):
    """Symmetric codes, and a float16 scale for `group` consecutive elements of the last axis."""
    largest = 2 ** (bits - 1) - 1
    grouped = numbers.reshape(*numbers.shape[:-1], -1, group)
    scales = np.maximum(np.abs(grouped).max(axis=-1) / largest, 1e-5).astype(np.float16)
    codes = np.clip(np.rint(grouped / scales.astype(np.float32)[..., None]), -largest, largest)
    return codes.astype(np.int8).reshape(numbers.shape), scales


def pack_nibbles(codes):
    """Two int4 codes a byte, the first in the low nibble."""
    return ((codes[..., 0::2] & 15) | (codes[..., 1::2] << 4)).astype(np.uint8)


def dequantized(bits, group):
    """The function that quantises and takes it back."""

    def rounded(numbers):
        codes, scales = quantize(numbers, bits, group)
        grouped = codes.reshape(*scales.shape, group) * scales.astype(np.float32)[..., None]
        return grouped.reshape(numbers.shape)

    return rounded
