"""OpenVINO: one PagedAttentionExtension, as its LLM pipelines have it."""

import math

import numpy as np
import openvino
from openvino import Shape, Tensor, op
from openvino.op import _PagedAttentionExtension

import data
import driver
from cases import DIM, HEADS, KV_HEADS
from pages import Pages

_F32, _I32, _U8 = openvino.Type.f32, openvino.Type.i32, openvino.Type.u8
_ELEMENT_BYTES = {"f32": 4, "f16": 2, "bf16": 2, "u8": 1, "i8": 1, "u4": 0.5, "i4": 0.5}
_FILLED_AT_ONCE = 256  # blocks


def variant(bytes_per_element, precision, hint, like=None, tolerance=5e-2):
    """Quantised caches hold what OpenVINO makes of the numbers: the reference starts from the numbers themselves."""
    rounds = like or driver.FLOAT32
    options = {"KV_CACHE_PRECISION": precision, "INFERENCE_PRECISION_HINT": hint}
    return driver.Variant(bytes_per_element, rounds.held, rounds.held_query, tolerance, options)


def parameter(name, shape, kind):
    made = op.Parameter(kind, openvino.PartialShape(shape))
    made.set_friendly_name(name)
    made.output(0).get_tensor().set_names({name})
    return made


def constant(kind, shape=(0,), value=0):
    return op.Constant(kind, Shape(list(shape)), [value] * math.prod(shape))


def model():
    """The operator's first 13 inputs are the call's; the others are of features that it does not use."""
    caches = [parameter(name, [-1] * 4, openvino.Type.dynamic) for name in ("key_cache.0", "value_cache.0")]
    rows = [parameter("q", [-1, HEADS * DIM], _F32)]
    rows += [parameter(name, [-1, KV_HEADS * DIM], _F32) for name in ("k", "v")]
    names = ("past_lens", "subsequence_begins", "block_indices", "block_indices_begins")
    indices = [parameter(name, [-1], _I32) for name in names]
    longest = parameter("max_context_len", [], _I32)
    settings = [constant(_F32, (), 1 / math.sqrt(DIM)), constant(_I32, ()), constant(_F32)]
    # score_aggregation_window; rotation: blocks, deltas, table; sparse attention: threshold, block, stride; sinks;
    # eviction: size of the start, evictable sizes, diversity's blocks and their begins; token types; query bias, begins
    unused = [constant(_I32), constant(_I32), constant(_I32), constant(_F32), constant(_F32), constant(_I32, ()),
              constant(_I32, ()), constant(_F32), constant(_I32, ()), constant(_I32), constant(_I32), constant(_I32),
              constant(_I32), constant(_U8), constant(_I32)]
    inputs = [*rows, *caches, *indices, *settings, longest, *unused]
    attention = _PagedAttentionExtension([node.output(0) for node in inputs])
    for part in ("k", "v"):
        attention.get_rt_info()[f"{part}_head_size"] = DIM
        attention.get_rt_info()[f"num_{part}_heads"] = KV_HEADS
    return openvino.Model([op.Result(attention.output(0))], [*rows, *caches, *indices, longest], "attention")


def shapes(compiled):
    """Of a block of keys and of values: (extents, element type)."""
    found = []
    for name in ("key_cache.0", "value_cache.0"):
        port = compiled.input(name)
        extents = port.get_partial_shape()
        found.append(([extents[i].get_length() for i in range(1, 4)], port.get_element_type()))
    return found


class Step(driver.Prepared):
    def __init__(self, compiled, case, layers):
        self.request, self.case = compiled.create_infer_request(), case
        self.shapes = shapes(compiled)
        self.block = self.shapes[1][0][1]  # tokens
        self.pages = Pages(case, self.block)
        self.order = self.pages.order.astype(np.int32)
        self.layers = layers
        self.caches = [self._new_cache() for _ in range(layers)]
        for cache in self.caches:
            self._fill(cache)
        self._feed_case()

    def _new_cache(self):
        return [Tensor(kind, Shape([self.order.size, *extents])) for extents, kind in self.shapes]

    def _fill(self, cache):
        """The operator alone knows what its cache holds: it stores every block, as a sequence of its own."""
        parts = [self._by_block(rows) for rows in (data.keys, data.values)]
        for first in range(0, len(self.order), _FILLED_AT_ONCE):
            chosen = self.order[first : first + _FILLED_AT_ONCE]
            count, rows = len(chosen), len(chosen) * self.block
            keys, values = (part[first * self.block : first * self.block + rows] for part in parts)
            self._feed(np.zeros((rows, HEADS * DIM), np.float32), keys, values, np.zeros(count, np.int32),
                       np.arange(count + 1, dtype=np.int32) * self.block, chosen, np.arange(count + 1, dtype=np.int32),
                       self.block)
            self._run(cache)

    def _by_block(self, rows):
        """(blocks * tokens, KV_HEADS * DIM): the last block of a sequence goes past its end."""
        whole = [rows(b, 0, count * self.block) for b, count in enumerate(self.pages.counts)]
        return np.concatenate(whole).reshape(-1, KV_HEADS * DIM)

    def _feed_case(self):
        new, keys = zip(*self.case.sequences)
        self._feed(data.query(self.case).reshape(-1, HEADS * DIM),
                   data.new_keys(self.case).reshape(-1, KV_HEADS * DIM),
                   data.new_values(self.case).reshape(-1, KV_HEADS * DIM),
                   np.subtract(keys, new).astype(np.int32), np.array(self.case.starts(), np.int32), self.order,
                   self.pages.begins.astype(np.int32), max(keys))

    def _feed(self, *arrays):
        names = ("q", "k", "v", "past_lens", "subsequence_begins", "block_indices", "block_indices_begins")
        self.fed = [np.ascontiguousarray(array) for array in arrays[:-1]]
        for name, array in zip(names, self.fed):
            self.request.set_tensor(name, Tensor(array, shared_memory=True))
        self.request.set_tensor("max_context_len", Tensor(np.array(arrays[-1], np.int32)))

    def _run(self, cache):
        for name, tensor in zip(("key_cache.0", "value_cache.0"), cache):
            self.request.set_tensor(name, tensor)
        self.request.infer()

    def step(self):
        for cache in self.caches:
            self._run(cache)

    def output(self, sequence):
        rows = self.request.get_output_tensor(0).data.reshape(-1, HEADS, DIM)
        return self.case.rows_of(rows, sequence).copy()


class OpenVino(driver.Peer):
    variants = {
        "bfloat16": variant(2, "bf16", "bf16", driver.BFLOAT16),
        "float16": variant(2, "f16", "f16", driver.FLOAT16),
        "float32": variant(4, "f32", "f32", tolerance=1e-4),
        "u8": variant(1, "u8", "f32"),
        "u4": variant(0.5, "u4", "f32", tolerance=5e-1),
    }
    notes = ["blocks of 32 tokens in random order; storing new tokens is in its time"]

    def __init__(self):
        self.core = openvino.Core()

    def version(self):
        return "OpenVINO " + openvino.__version__.split("-")[0]

    def prepare(self, case, chosen, layers):
        settings = {"INFERENCE_NUM_THREADS": driver.threads(), "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY"}
        return Step(self.core.compile_model(model(), "CPU", settings | chosen.options), case, layers)


if __name__ == "__main__":
    driver.serve(OpenVino)
