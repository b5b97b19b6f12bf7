"""onnxruntime: one GroupQueryAttention, bound to memory that holds past and present keys at once."""

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

import data
import driver
import rounding
from cases import DIM, HEADS, KV_HEADS

_FLOAT32 = (np.float32, TensorProto.FLOAT)
_FLOAT16 = (np.float16, TensorProto.FLOAT16)
_INT8 = (np.int8, TensorProto.INT8)
_INT4 = (np.uint8, TensorProto.UINT8)
_LARGEST = 5.0  # of the table's normal numbers, nearly: what one scale for all of a tensor must span
_SCALES = {8: np.float32(_LARGEST / 127), 4: np.float32(_LARGEST / 7)}


def codes(numbers, bits):
    """With one scale for all numbers."""
    largest = 2 ** (bits - 1) - 1
    return np.clip(np.rint(numbers / _SCALES[bits]), -largest - 1, largest).astype(np.int8)


def per_tensor(bits):
    return lambda numbers: codes(numbers, bits) * _SCALES[bits]


def encoded(numbers, bits):
    """As the operator reads them: int4 codes are shifted by 8, two a byte."""
    if not bits:
        return numbers
    signed = codes(numbers, bits)
    return signed if bits == 8 else rounding.pack_nibbles(signed + 8)


def quantized(cache, bits):
    return driver.Variant(bits / 8, per_tensor(bits), tolerance=2e-2, options={"types": (_FLOAT32, cache, bits)})


def infos(kind, shape, *names):
    """Of inputs or outputs that are alike."""
    return [helper.make_tensor_value_info(name, kind, shape) for name in names]


def model(kind, cache, bits):
    """One node; `kind` and `cache` are (numpy type, ONNX type)."""
    cached = (cache[1], ["b", KV_HEADS, "m", DIM // 2 if bits == 4 else DIM])
    inputs = infos(kind[1], ["b", "s", HEADS * DIM], "query")
    inputs += infos(kind[1], ["b", "s", KV_HEADS * DIM], "key", "value") + infos(*cached, "past_key", "past_value")
    inputs += infos(TensorProto.INT32, ["b"], "seqlens_k") + infos(TensorProto.INT32, [], "total")
    outputs = infos(kind[1], ["b", "s", HEADS * DIM], "out") + infos(*cached, "present_key", "present_value")
    names, attributes, constants = [info.name for info in inputs], {"num_heads": HEADS, "kv_num_heads": KV_HEADS}, []
    if bits:
        names += ["", "", "", "", "", "k_scale", "v_scale"]
        attributes |= {"k_quant_type": "PER_TENSOR", "v_quant_type": "PER_TENSOR", "kv_cache_bit_width": bits}
        constants = [onnx.numpy_helper.from_array(np.full(1, _SCALES[bits]), name) for name in names[-2:]]
    node = helper.make_node("GroupQueryAttention", names, [info.name for info in outputs], domain="com.microsoft",
                            **attributes)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    graph = helper.make_graph([node], "attention", inputs, outputs, constants)
    return helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()


class Call:
    """One sequence, or several of one length, in all layers."""

    def __init__(self, session, case, first, count, types, layers):
        (kind, _), (cache, _), bits = types
        self.first, self.new, keys = first, *case.sequences[first]
        shape = (count, self.new, -1)
        sources = (data.query(case), data.new_keys(case), data.new_values(case))
        self.inputs = [case.rows_of(rows, first, count).astype(kind).reshape(shape) for rows in sources]
        self.result = np.zeros_like(self.inputs[0])
        self.counts = np.full(count, keys - 1, np.int32), np.array(keys, np.int32)
        one = [self._dense(rows, first, count, keys, cache, bits) for rows in (data.keys, data.values)]
        self.layers = [one] + [[array.copy() for array in one] for _ in range(layers - 1)]
        self.bindings = [self._bind(session, *layer) for layer in self.layers]

    @staticmethod
    def _dense(rows, first, count, keys, cache, bits):
        stacked = np.stack([rows(b, 0, keys) for b in range(first, first + count)]).swapaxes(1, 2)
        return np.ascontiguousarray(encoded(stacked, bits).astype(cache, copy=False))

    def _bind(self, session, past_key, past_value):
        binding = session.io_binding()
        arrays = dict(zip(("query", "key", "value"), self.inputs))
        arrays |= {"past_key": past_key, "past_value": past_value, "seqlens_k": self.counts[0], "total": self.counts[1]}
        for name, array in arrays.items():
            binding.bind_input(name, "cpu", 0, array.dtype, array.shape, array.ctypes.data)
        for name, array in (("out", self.result), ("present_key", past_key), ("present_value", past_value)):
            binding.bind_output(name, "cpu", 0, array.dtype, array.shape, array.ctypes.data)
        return binding


class Step(driver.Prepared):
    def __init__(self, case, types, layers):
        self.layers = layers
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = driver.threads(), 1
        self.session = onnxruntime.InferenceSession(model(*types), options, providers=["CPUExecutionProvider"])
        runs = driver.alike(case.sequences)
        self.calls = [Call(self.session, case, first, count, types, layers) for first, count in runs]

    def step(self):
        for layer in range(self.layers):
            for call in self.calls:
                self.session.run_with_iobinding(call.bindings[layer])

    def output(self, sequence):
        call = [call for call in self.calls if call.first <= sequence][-1]
        return call.result[sequence - call.first].reshape(call.new, HEADS, DIM)


class Onnxruntime(driver.Peer):
    variants = {
        "float16": driver.FLOAT16.with_options(types=(_FLOAT16, _FLOAT16, 0)),
        "float32": driver.FLOAT32.with_options(types=(_FLOAT32, _FLOAT32, 0)),
        "int8": quantized(_INT8, 8),
        "int4": quantized(_INT4, 4),
    }
    notes = ["dense keys and values, one scale for all in int8 and int4, float32 queries there",
             "a batch of several lengths is a loop over calls"]

    def version(self):
        return "onnxruntime " + onnxruntime.__version__

    def prepare(self, case, variant, layers):
        return Step(case, variant.options["types"], layers)


if __name__ == "__main__":
    driver.serve(Onnxruntime)
