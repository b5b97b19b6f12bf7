"""kvjit, by its C ABI: kvjit_driver.py LIBKVJIT

Each variant is the part of a spec that differs. Element types come from the parsed spec, so that a type which this
library does not have yet is refused by it, with its own words."""

import ctypes
import sys
from ctypes import byref, c_char_p, c_int64, c_size_t, c_void_p, sizeof

import numpy as np

import data
import driver
import rounding
from cases import DIM, GROUP, HEADS, KV_HEADS
from driver import BFLOAT16, FLOAT16, Variant
from pages import Pages

_PAGE = 128
_SPEC = f"op=MultiHeadCacheAttention,head_dim={DIM},group={GROUP},is_causal=1,cache_mode=page_table,page_size={_PAGE},"
_FLOAT16, _INT8, _UINT8, _INT64 = 2, 4, 5, 7  # kvjit_dtype


def quantized(bits, group, like=FLOAT16, t1="f16"):
    """A cache of codes with a float16 scale for `group` elements, beside queries of type t1, which `like` has."""
    held = rounding.dequantized(bits, group)
    as_floats = Variant(bits / 8 + 2 / group, lambda x: held(like.held(x)), like.held_query, max(like.tolerance, 3e-3))
    return as_floats.with_options(spec=f"t1={t1},t3=f16,layout=L2HTD,quant_bit={bits},quant_group={group}")


class Library:
    """libkvjit.so with its structs, which the library itself describes."""

    def __init__(self, path):
        self.lib = ctypes.CDLL(path)
        self.structs = self._structs()
        self.error = self.new("kvjit_error")
        self.lib.kvjit_version.restype = c_char_p

    def _structs(self):
        kinds = {"char": ctypes.c_char, "int32_t": ctypes.c_int32, "uint32_t": ctypes.c_uint32, "int64_t": c_int64,
                 "uint64_t": ctypes.c_uint64, "float": ctypes.c_float, "double": ctypes.c_double,
                 "pointer": c_void_p}
        fields = {}

        def kind_of(name):
            if name not in kinds:
                kinds[name] = type(name, (ctypes.Structure,), {"_fields_": fields[name]})
            return kinds[name]

        @ctypes.CFUNCTYPE(None, c_void_p, c_char_p, c_char_p, c_char_p, c_size_t, c_size_t)
        def add(_, struct, name, kind, _offset, _size):
            element, _, extent = kind.decode().partition("[")
            field = kind_of(element) * int(extent[:-1]) if extent else kind_of(element)
            fields.setdefault(struct.decode(), []).append((name.decode(), field))

        self.lib.kvjit_struct_fields(add, None)
        return {name: kind_of(name) for name in fields}

    def new(self, name):
        struct = self.structs[name]()
        getattr(self.lib, name + "_init_sized")(byref(struct), c_size_t(sizeof(struct)))
        return struct

    def call(self, function, *arguments):
        """Calls a function whose last argument is the error."""
        if getattr(self.lib, function)(*arguments, byref(self.error)) != 0:
            raise driver.Lacks(self.error.message.decode())

    def tensor(self, array, dtype):
        view = self.structs["kvjit_tensor"](array.ctypes.data, dtype, array.ndim)
        view.shape[: array.ndim] = array.shape
        view.strides[: array.ndim] = [stride // array.itemsize for stride in array.strides]
        return view


class Cache:
    """Codes and scales of all layers, by the letters of a layout: "L2HTD" or "TL2HD"."""

    def __init__(self, spec, layers, slots):
        self.bits, self.group = spec.quant_bit, spec.quant_group
        self.letters = spec.layout.decode()
        self.element = spec.t2 or spec.t1  # KVJIT_AUTO is 0
        extent = {"L": layers, "2": 2, "H": KV_HEADS, "T": slots}
        shape = tuple(extent[letter] for letter in self.letters[:-1])
        self.codes = np.zeros((*shape, DIM // 2 if self.bits == 4 else DIM), self._code_type())
        self.scales = np.zeros((*shape, DIM // self.group), np.float16) if self.bits else None

    def _code_type(self):
        if self.bits:
            return np.int8 if self.bits == 8 else np.uint8
        return np.float16 if self.element == _FLOAT16 else np.uint16

    def dtype(self):
        return {0: self.element, 8: _INT8, 4: _UINT8}[self.bits]

    def store(self, part, slots, rows):
        """Rows of (tokens, KV_HEADS, DIM), as keys (part 0) or values (1) of all layers."""
        codes, scales = self._encode(rows)
        self._put(self.codes, part, slots, codes)
        if self.bits:
            self._put(self.scales, part, slots, scales)

    def _encode(self, rows):
        if not self.bits:
            return as_element(rows, self.element), None
        rounded = rounding.float16(rows) if self.element == _FLOAT16 else rounding.bfloat16(rows)
        codes, scales = rounding.quantize(rounded, self.bits, self.group)
        return (rounding.pack_nibbles(codes) if self.bits == 4 else codes), scales

    def _put(self, array, part, slots, rows):
        by_layer = np.moveaxis(array, [self.letters.index(letter) for letter in "2LTH"], [0, 1, 2, 3])
        by_layer[part][:, slots] = rows


def filled_cache(case, spec, layers, pages):
    cache = Cache(spec, layers, pages.order.size * _PAGE)
    for sequence, (_, keys) in enumerate(case.sequences):
        slots = pages.slots(sequence, 0, keys)
        cache.store(0, slots, data.keys(sequence, 0, keys))
        cache.store(1, slots, data.values(sequence, 0, keys))
    return cache


def first_slots(pages):
    """kvjit's table, of first slots instead of page numbers."""
    return np.maximum(pages.table(-1) * _PAGE, -1)


def as_element(rows, dtype):
    """float16, or else the 16 bits of bfloat16."""
    return rows.astype(np.float16) if dtype == _FLOAT16 else rounding.to_bfloat16(rows)


class Batch:
    """What a plan is made of, with the arrays that it reads in every run."""

    def __init__(self, kvjit, case, layers, pages):
        new, keys = zip(*case.sequences)
        self.arrays = [np.concatenate([[0], np.cumsum(counts)]).astype(np.int64) for counts in (new, keys)]
        self.arrays += [np.subtract(keys, new).astype(np.int64), first_slots(pages)]
        self.batch, self.options = kvjit.new("kvjit_batch"), kvjit.new("kvjit_plan_options")
        self.batch.batch_size, self.batch.num_heads, self.batch.num_kv_heads = len(new), HEADS, KV_HEADS
        self.batch.num_layers, self.batch.max_tokens = layers, pages.order.size * _PAGE
        self.batch.decoding_batches = leading_decodes(new)
        self.batch.seqstarts, self.batch.kvstarts, self.batch.start_pos = (a.ctypes.data for a in self.arrays[:3])
        self.batch.cachestarts = kvjit.tensor(self.arrays[3], _INT64)
        self.options.num_threads = driver.threads()


class Step(driver.Prepared):
    def __init__(self, kvjit, case, spec, kernel, batch, cache):
        self.kvjit, self.case, self.kernel, self.batch, self.cache = kvjit, case, kernel, batch, cache
        self.layers, self.dtype = batch.batch.num_layers, spec.t1
        rows = (data.query(case), data.new_keys(case), data.new_values(case))
        self.inputs = [as_element(each, self.dtype) for each in rows]
        self.result = np.zeros_like(self.inputs[0])
        self.tensors = self._tensors()
        self.plan = c_void_p()
        self.runs = [(self.plan, byref(self.tensors), c_int64(layer)) for layer in range(self.layers)]

    def _tensors(self):
        tensors = self.kvjit.new("kvjit_tensors")
        names = ("query", "current_key", "current_value", "attn_output")
        for name, array in zip(names, (*self.inputs, self.result)):
            setattr(tensors, name, self.kvjit.tensor(array, self.dtype))
        tensors.cache = self.kvjit.tensor(self.cache.codes, self.cache.dtype())
        if self.cache.bits:
            tensors.scale = self.kvjit.tensor(self.cache.scales, _FLOAT16)
        return tensors

    def step(self):
        call = self.kvjit.call
        call("kvjit_plan_create", self.kernel, byref(self.batch.batch), byref(self.batch.options), byref(self.plan))
        for run in self.runs:
            call("kvjit_run", *run)
        self.kvjit.lib.kvjit_plan_release(self.plan)

    def output(self, sequence):
        rows = self.case.rows_of(self.result, sequence)
        return rows if self.dtype == _FLOAT16 else rounding.from_bfloat16(rows)


def leading_decodes(new):
    return next((b for b, count in enumerate(new) if count > 1), len(new))


class Kvjit(driver.Peer):
    variants = {
        "float16 L2HTD": FLOAT16.with_options(spec="t1=f16,layout=L2HTD"),
        "float16 TL2HD": FLOAT16.with_options(spec="t1=f16,layout=TL2HD"),
        "bfloat16 L2HTD": BFLOAT16.with_options(spec="t1=bf16,layout=L2HTD"),
        "int8 g32": quantized(8, 32),
        "int4 g32": quantized(4, 32),
        "bfloat16 over int4 g32": quantized(4, 32, BFLOAT16, "bf16"),
    }
    notes = [f"pages of {_PAGE} tokens in random order; the plan and storing new tokens are in its time"]

    def __init__(self, path):
        self.kvjit = Library(path)
        self.engine = c_void_p()
        self.kvjit.call("kvjit_engine_create", None, byref(self.engine))

    def version(self):
        return "kvjit " + self.kvjit.lib.kvjit_version().decode()

    def prepare(self, case, variant, layers):
        spec, kernel = self.kvjit.new("kvjit_spec"), c_void_p()
        text = (_SPEC + variant.options["spec"]).encode()
        self.kvjit.call("kvjit_spec_parse_sized", text, byref(spec), c_size_t(sizeof(spec)))
        self.kvjit.call("kvjit_engine_kernel", self.engine, byref(spec), None, byref(kernel))
        pages = Pages(case, _PAGE)
        batch = Batch(self.kvjit, case, layers, pages)
        return Step(self.kvjit, case, spec, kernel, batch, filled_cache(case, spec, layers, pages))


if __name__ == "__main__":
    driver.serve(lambda: Kvjit(sys.argv[1]))
