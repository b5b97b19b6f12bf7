"""The numbers that every peer gets, and what attention over them is, in float64."""

import functools
import math

import numpy as np

from cases import DIM, GROUP, HEADS, KV_HEADS

# Keys and values repeat a table of normal numbers. Its length is a prime, so that neither a token's heads nor a page of
# tokens come again soon.
_TABLE_ROWS = 16381
_VALUE_OFFSET, _SEQUENCE_OFFSET = 5003, 977
_QUERY_SCALE = 2  # peaked enough that a key at a wrong place shows
_CHECKED_ROWS = 8


@functools.cache
def _table():
    return np.random.default_rng(1).standard_normal((_TABLE_ROWS, DIM), dtype=np.float32)


def _rows(sequence, begin, end, offset):
    first = sequence * _SEQUENCE_OFFSET + offset
    picked = (np.arange(begin * KV_HEADS, end * KV_HEADS) + first) % _TABLE_ROWS
    return _table()[picked].reshape(end - begin, KV_HEADS, DIM)


def keys(sequence, begin, end):
    """(end - begin, KV_HEADS, DIM), float32: keys of these tokens of a sequence, the same in all layers."""
    return _rows(sequence, begin, end, 0)


def values(sequence, begin, end):
    return _rows(sequence, begin, end, _VALUE_OFFSET)


def new_keys(case):
    """(case.rows, KV_HEADS, DIM): keys of the new tokens of all sequences."""
    return np.concatenate([keys(b, m - n, m) for b, (n, m) in enumerate(case.sequences)])


def new_values(case):
    return np.concatenate([values(b, m - n, m) for b, (n, m) in enumerate(case.sequences)])


def query(case):
    """(case.rows, HEADS, DIM), float32."""
    return _QUERY_SCALE * np.random.default_rng(7).standard_normal((case.rows, HEADS, DIM), dtype=np.float32)


def attend(query, keys, values, row):
    """(HEADS, DIM), float64: softmax(q k^T / sqrt(DIM)) v of the new token `row`, which sees the keys up to its own."""
    seen = keys.shape[0] - query.shape[0] + row + 1
    grouped = query[row].astype(np.float64).reshape(KV_HEADS, GROUP, DIM)
    scores = np.einsum("hgd,mhd->hgm", grouped, keys[:seen].astype(np.float64), optimize=True) / math.sqrt(DIM)
    weights = np.exp(scores - scores.max(axis=2, keepdims=True))
    weights /= weights.sum(axis=2, keepdims=True)
    return np.einsum("hgm,mhd->hgd", weights, values[:seen].astype(np.float64), optimize=True).reshape(HEADS, DIM)


def checked_sequences(case):
    """The first, the last and one between, and the first that brings several tokens."""
    count = len(case.sequences)
    several = [b for b, (new, _) in enumerate(case.sequences) if new > 1]
    return sorted({0, count // 2, count - 1, *several[:1]})


def error(case, output, held_query, held):
    """The largest error of `output(b)`, (new tokens, HEADS, DIM), relative to the largest result.

    `held_query` and `held` round as the peer does before it computes: its types, its quantisation. The reference then
    starts from the same numbers, and the error is that of the arithmetic alone."""
    worst = 0.0
    rounded = held_query(query(case))
    for b in checked_sequences(case):
        new, count = case.sequences[b]
        k, v = held(keys(b, 0, count)), held(values(b, 0, count))
        got = np.asarray(output(b), np.float64).reshape(new, HEADS, DIM)
        for row in np.unique(np.linspace(0, new - 1, _CHECKED_ROWS).astype(int)):
            want = attend(case.rows_of(rounded, b), k, v, row)
            # A NaN stays one: neither max() nor a comparison with the tolerance may lose it.
            worst = np.fmax(worst, np.nan_to_num(np.abs(got[row] - want).max() / np.abs(want).max(), nan=np.inf))
    return float(worst)
