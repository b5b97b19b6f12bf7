"""ggml, llama.cpp's kernels: ggml_driver.py FOLDER, where its libraries are. All layers are one graph."""

import ctypes
import math
import os
import sys
from ctypes import c_bool, c_char_p, c_float, c_int, c_int64, c_size_t, c_void_p

import numpy as np

import data
import driver
import rounding
from cases import DIM, HEADS, KV_HEADS

_F32, _F16, _Q4_0, _Q8_0 = 0, 1, 2, 8  # ggml_type
_ALIGNMENT = 64
_SIGNATURES = {
    "ggml_backend_cpu_init": (c_void_p,),
    "ggml_backend_cpu_set_n_threads": (None, c_void_p, c_int),
    "ggml_backend_cpu_buffer_from_ptr": (c_void_p, c_void_p, c_size_t),
    "ggml_backend_tensor_alloc": (c_int, c_void_p, c_void_p, c_void_p),
    "ggml_backend_alloc_ctx_tensors": (c_void_p, c_void_p, c_void_p),
    "ggml_backend_graph_compute": (c_int, c_void_p, c_void_p),
    "ggml_backend_buffer_free": (None, c_void_p),
    "ggml_new_tensor_4d": (c_void_p, c_void_p, c_int, c_int64, c_int64, c_int64, c_int64),
    "ggml_flash_attn_ext": (c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_float, c_float, c_float),
    "ggml_new_graph_custom": (c_void_p, c_void_p, c_size_t, c_bool),
    "ggml_build_forward_expand": (None, c_void_p, c_void_p),
    "ggml_tensor_overhead": (c_size_t,),
    "ggml_graph_overhead_custom": (c_size_t, c_size_t, c_bool),
    "ggml_get_data": (c_void_p, c_void_p),
    "ggml_free": (None, c_void_p),
    "ggml_row_size": (c_size_t, c_int, c_int64),
    "ggml_quantize_chunk": (c_size_t, c_int, c_void_p, c_void_p, c_int64, c_int64, c_int64, c_void_p),
    "ggml_version": (c_char_p,),
    "ggml_commit": (c_char_p,),
}


class _InitParams(ctypes.Structure):
    _fields_ = [("mem_size", c_size_t), ("mem_buffer", c_void_p), ("no_alloc", c_bool)]


class Library:
    """Functions of all of ggml's libraries, as attributes."""

    def __init__(self, folder):
        names = ("libggml-base.so", "libggml-cpu.so", "libggml.so")
        self.loaded = [ctypes.CDLL(os.path.join(folder, name), mode=ctypes.RTLD_GLOBAL) for name in names]
        for name, (result, *arguments) in _SIGNATURES.items():
            self._declare(name, result, arguments)
        self._declare("ggml_init", c_void_p, [_InitParams])

    def _declare(self, name, result, arguments):
        function = next((getattr(each, name) for each in self.loaded if hasattr(each, name)), None)
        if function is None:
            raise driver.Lacks(f"these libraries have no {name}")
        function.restype, function.argtypes = result, arguments
        setattr(self, name, function)


def q_blocks(numbers, bits):
    """(..., DIM / 32, codes, scales) of q8_0 and q4_0: 32 elements share a float16 scale."""
    grouped = numbers.reshape(*numbers.shape[:-1], -1, 32)
    if bits == 8:
        scales = np.abs(grouped).max(axis=-1) / 127
        return np.rint(grouped / scales[..., None]), scales
    extreme = np.take_along_axis(grouped, np.abs(grouped).argmax(axis=-1)[..., None], axis=-1)[..., 0]
    scales = extreme / -8
    return np.minimum(np.floor(grouped / scales[..., None] + 8.5), 15) - 8, scales


def held(bits):
    def rounded(numbers):
        codes, scales = q_blocks(numbers, bits)
        return (codes * scales.astype(np.float16).astype(np.float32)[..., None]).reshape(numbers.shape)

    return rounded


class Memory:
    """An array at an aligned address, which ggml is told to take as it is."""

    def __init__(self, ggml, array):
        room = np.empty(array.nbytes + 2 * _ALIGNMENT, np.uint8)
        start = -room.ctypes.data % _ALIGNMENT
        self.bytes = room[start : start + array.nbytes]
        self.bytes[:] = array.reshape(-1).view(np.uint8)
        self.ggml, self.room = ggml, room
        self.buffer = ggml.ggml_backend_cpu_buffer_from_ptr(self.bytes.ctypes.data, self.bytes.nbytes)

    def tensor(self, context, kind, *extents):
        made = self.ggml.ggml_new_tensor_4d(context, kind, *extents)
        if self.ggml.ggml_backend_tensor_alloc(self.buffer, made, self.bytes.ctypes.data) != 0:
            raise driver.Lacks("ggml does not take the memory")
        return made

    def __del__(self):
        self.ggml.ggml_backend_buffer_free(self.buffer)


class Operands:
    """Query, keys, values and mask of equal sequences; keys and values with the heads outside of the tokens."""

    def __init__(self, ggml, case, first, count, kind):
        self.ggml, self.kind, self.first, self.count = ggml, kind, first, count
        self.new, self.keys = case.sequences[first]
        rows = case.rows_of(data.query(case), first, count)
        self.query = Memory(ggml, np.ascontiguousarray(rows.reshape(count, self.new, HEADS, DIM).swapaxes(1, 2)))
        self.parts = [self._encode(self._dense(source)) for source in (data.keys, data.values)]
        self.mask = Memory(ggml, self._causal()) if self.new > 1 else None
        self.copies = []

    def _dense(self, source):
        stacked = [source(b, 0, self.keys) for b in range(self.first, self.first + self.count)]
        return np.ascontiguousarray(np.stack(stacked).swapaxes(1, 2))

    def _encode(self, rows):
        if self.kind in (_F32, _F16):
            return rows.astype(np.float16 if self.kind == _F16 else np.float32)
        count = rows.size // DIM
        coded = np.empty(count * self.ggml.ggml_row_size(self.kind, DIM), np.uint8)
        self.ggml.ggml_quantize_chunk(self.kind, rows.ctypes.data, coded.ctypes.data, 0, count, DIM, None)
        return coded

    def _causal(self):
        seen = np.arange(self.keys)[None, :] <= np.arange(self.keys - self.new, self.keys)[:, None]
        return np.where(seen, np.float16(0), np.float16(-np.inf))

    def attention(self, context):
        """A node over a copy of its own of keys and values."""
        key, value = (Memory(self.ggml, part) for part in self.parts)
        self.copies += [key, value]
        extents = (DIM, self.keys, KV_HEADS, self.count)
        query = self.query.tensor(context, _F32, DIM, self.new, HEADS, self.count)
        mask = self.mask.tensor(context, _F16, self.keys, self.new, 1, 1) if self.mask else None
        keys, values = (part.tensor(context, self.kind, *extents) for part in (key, value))
        return self.ggml.ggml_flash_attn_ext(context, query, keys, values, mask, 1 / math.sqrt(DIM), 0, 0)


class Step(driver.Prepared):
    def __init__(self, ggml, backend, case, kind, layers):
        self.ggml, self.backend, self.case, self.layers = ggml, backend, case, layers
        self.operands = [Operands(ggml, case, first, count, kind) for first, count in driver.alike(case.sequences)]
        nodes = layers * len(self.operands)
        room = ggml.ggml_tensor_overhead() * 8 * (nodes + 8) + ggml.ggml_graph_overhead_custom(4 * nodes + 64, False)
        self.context = ggml.ggml_init(_InitParams(room, None, True))
        self.graph = ggml.ggml_new_graph_custom(self.context, 4 * nodes + 64, False)
        self.results = [[each.attention(self.context) for each in self.operands] for _ in range(layers)]
        for result in (result for layer in self.results for result in layer):
            ggml.ggml_build_forward_expand(self.graph, result)
        self.buffer = ggml.ggml_backend_alloc_ctx_tensors(self.context, backend)

    def step(self):
        if self.ggml.ggml_backend_graph_compute(self.backend, self.graph) != 0:
            raise driver.Lacks("ggml does not compute the graph")

    def output(self, sequence):
        at = max(i for i, each in enumerate(self.operands) if each.first <= sequence)
        chosen = self.operands[at]
        shape = (chosen.count, chosen.new, HEADS, DIM)
        address = self.ggml.ggml_get_data(self.results[0][at])
        numbers = np.ctypeslib.as_array(ctypes.cast(address, ctypes.POINTER(c_float)), shape)
        return numbers[sequence - chosen.first]

    def __del__(self):
        self.ggml.ggml_backend_buffer_free(self.buffer)
        self.ggml.ggml_free(self.context)


class Ggml(driver.Peer):
    variants = {
        # It sums float16 values in float16.
        "float16": driver.Variant(2, rounding.float16, rounding.float16, 2e-2, {"type": _F16}),
        "q8_0": driver.Variant(34 / 32, held(8), tolerance=5e-2, options={"type": _Q8_0}),
        "q4_0": driver.Variant(18 / 32, held(4), tolerance=5e-2, options={"type": _Q4_0}),
    }
    notes = ["dense keys and values, heads outside of tokens; nothing is stored; all layers in one graph",
             "a batch of several lengths is a node each"]

    def __init__(self, folder):
        self.ggml = Library(folder)
        self.backend = self.ggml.ggml_backend_cpu_init()
        self.ggml.ggml_backend_cpu_set_n_threads(self.backend, driver.threads())

    def version(self):
        return f"ggml {self.ggml.ggml_version().decode()} (llama-cpp-python's source)"

    def prepare(self, case, variant, layers):
        return Step(self.ggml, self.backend, case, variant.options["type"], layers)


if __name__ == "__main__":
    driver.serve(lambda: Ggml(sys.argv[1]))
