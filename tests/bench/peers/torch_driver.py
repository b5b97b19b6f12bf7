"""PyTorch: scaled_dot_product_attention with its flash backend, over dense keys and values."""

import numpy as np
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

import data
import driver
from cases import DIM, GROUP, HEADS, KV_HEADS


def dense(rows, case, first, count, dtype):
    """(count, KV_HEADS, keys, DIM) of `rows`, data.keys or data.values."""
    keys = case.sequences[first][1]
    stacked = np.stack([rows(b, 0, keys) for b in range(first, first + count)])
    return torch.from_numpy(stacked).to(dtype).transpose(1, 2).contiguous()


class Call:
    """Equal sequences in one call, for each layer with memory of its own."""

    def __init__(self, case, first, count, dtype, layers):
        self.first, self.new = first, case.sequences[first][0]
        query = torch.from_numpy(case.rows_of(data.query(case), first, count)).to(dtype)
        # One new token: the query heads of a kv head are the rows of one product, which is faster than enable_gqa.
        self.decodes = self.new == 1
        shape = (count, KV_HEADS, GROUP, DIM) if self.decodes else (count, self.new, HEADS, DIM)
        self.query = query.view(shape) if self.decodes else query.view(shape).transpose(1, 2).contiguous()
        one = [dense(rows, case, first, count, dtype) for rows in (data.keys, data.values)]
        self.layers = [one] + [[tensor.clone() for tensor in one] for _ in range(layers - 1)]

    def run(self, layer):
        key, value = self.layers[layer]
        return scaled_dot_product_attention(
            self.query, key, value, is_causal=not self.decodes, enable_gqa=not self.decodes
        )

    def rows_of(self, output, sequence):
        one = output[sequence - self.first].float()
        return one.reshape(1, HEADS, DIM) if self.decodes else one.transpose(0, 1)


class Step(driver.Prepared):
    def __init__(self, case, dtype, layers):
        self.layers = layers
        self.calls = [Call(case, first, count, dtype, layers) for first, count in driver.alike(case.sequences)]

    def run_layer(self, layer):
        return [call.run(layer) for call in self.calls]

    def step(self):
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
            for layer in range(self.layers):
                self.run_layer(layer)

    def output(self, sequence):
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
            outputs = self.run_layer(0)
        call, output = [pair for pair in zip(self.calls, outputs) if pair[0].first <= sequence][-1]
        return call.rows_of(output, sequence)


class Torch(driver.Peer):
    variants = {
        "bfloat16": driver.BFLOAT16.with_options(type=torch.bfloat16),
        "float16": driver.FLOAT16.with_options(type=torch.float16),
        "float32": driver.FLOAT32.with_options(type=torch.float32),
    }
    notes = ["dense keys and values, nothing is stored; a batch of several lengths is a loop over calls"]

    def __init__(self):
        torch.set_num_threads(driver.threads())
        torch.set_grad_enabled(False)

    def version(self):
        return "PyTorch " + torch.__version__

    def prepare(self, case, variant, layers):
        return Step(case, variant.options["type"], layers)


if __name__ == "__main__":
    driver.serve(Torch)
