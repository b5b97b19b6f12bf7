#!/usr/bin/env python3
"""The step of quickstart.cc from Python, by ctypes alone: decode_step.py [libkvjit.so]

8 query heads over 2 kv heads of 128, one sequence of 300 tokens, int8 pages. The library tells what its structs look
like, so that nothing of kvjit.h is repeated here."""

import ctypes
import sys
from ctypes import byref, c_char_p, c_int64, c_size_t, c_void_p, sizeof

kvjit = ctypes.CDLL(sys.argv[1] if len(sys.argv) > 1 else "libkvjit.so")
F32, I8, I64 = 1, 4, 7  # kvjit_dtype


def declare_structs():
    """A ctypes.Structure for each struct of kvjit.h, by name."""
    types = {"char": ctypes.c_char, "int32_t": ctypes.c_int32, "uint32_t": ctypes.c_uint32, "int64_t": c_int64,
             "uint64_t": ctypes.c_uint64, "float": ctypes.c_float, "double": ctypes.c_double, "pointer": c_void_p}
    fields = {}

    def type_of(name):
        if name not in types:  # a struct, all of whose fields have been told
            types[name] = type(name, (ctypes.Structure,), {"_fields_": fields[name]})
        return types[name]

    @ctypes.CFUNCTYPE(None, c_void_p, c_char_p, c_char_p, c_char_p, c_size_t, c_size_t)
    def add_field(_, struct, name, kind, offset, size):
        element, _, extent = kind.decode().partition("[")
        field = type_of(element) * int(extent[:-1]) if extent else type_of(element)
        fields.setdefault(struct.decode(), []).append((name.decode(), field))

    kvjit.kvjit_struct_fields(add_field, None)
    return {name: type_of(name) for name in fields}


structs = declare_structs()
kvjit.kvjit_struct_size.restype = c_size_t
for name, struct in structs.items():
    assert sizeof(struct) == kvjit.kvjit_struct_size(name.encode()), name


def new(name):
    """A struct as its init function leaves it."""
    struct = structs[name]()
    getattr(kvjit, name + "_init_sized")(byref(struct), c_size_t(sizeof(struct)))
    return struct


error = new("kvjit_error")


def call(function, *arguments):
    """Calls a function whose last argument is the error."""
    if getattr(kvjit, function)(*arguments, byref(error)) != 0:
        sys.exit(error.message.decode())


def tensor(array, dtype, *shape):
    """A view of a ctypes array, which must live as long."""
    strides = [1]
    for extent in reversed(shape[1:]):
        strides.insert(0, strides[0] * extent)
    view = structs["kvjit_tensor"](ctypes.addressof(array), dtype, len(shape))
    view.shape[:len(shape)], view.strides[:len(shape)] = shape, strides
    return view


def int64s(*values):
    return (c_int64 * len(values))(*values)


def floats(count, value):
    return (ctypes.c_float * count)(*[value] * count)


spec, engine, kernel, plan = new("kvjit_spec"), c_void_p(), c_void_p(), c_void_p()
text = b"op=MultiHeadCacheAttention,head_dim=128,group=4,t1=f32,quant_bit=8,cache_mode=page_table,layout=L2HTD"
call("kvjit_spec_parse_sized", text, byref(spec), c_size_t(sizeof(spec)))
call("kvjit_engine_create", None, byref(engine))
call("kvjit_engine_kernel", engine, byref(spec), None, byref(kernel))

# The plan reads these arrays again in every run.
pages, seqstarts, kvstarts, start_pos = int64s(384, 0, 128), int64s(0, 1), int64s(0, 300), int64s(299)
batch = new("kvjit_batch")
batch.batch_size, batch.num_heads, batch.num_kv_heads, batch.max_tokens = 1, 8, 2, 512
batch.seqstarts, batch.kvstarts, batch.start_pos = map(ctypes.addressof, (seqstarts, kvstarts, start_pos))
batch.cachestarts = tensor(pages, I64, 1, 3)
call("kvjit_plan_create", kernel, byref(batch), None, byref(plan))

query, key, value, output = floats(8 * 128, 0.1), floats(2 * 128, 0.2), floats(2 * 128, 0.3), floats(8 * 128, 0)
cache, scale = (ctypes.c_int8 * (2 * 2 * 512 * 128))(), floats(2 * 2 * 512 * 16, 0.01)
tensors = new("kvjit_tensors")
tensors.query = tensor(query, F32, 1, 8, 128)
tensors.current_key = tensor(key, F32, 1, 2, 128)
tensors.current_value = tensor(value, F32, 1, 2, 128)
tensors.cache = tensor(cache, I8, 1, 2, 2, 512, 128)
tensors.scale = tensor(scale, F32, 1, 2, 2, 512, 16)
tensors.attn_output = tensor(output, F32, 1, 8, 128)
call("kvjit_run", plan, byref(tensors), c_int64(0))
print(f"attn_output[0, 0, 0] = {output[0]:g}")

kvjit.kvjit_plan_release(plan)
kvjit.kvjit_kernel_release(kernel)
kvjit.kvjit_engine_release(engine)
