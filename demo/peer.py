"""PyTorch's attention beside kvjit's, for the demo. Usage: peer.py THREADS

Prints its name. Then, for each line of numbers, new tokens and keys of each sequence of a batch, it runs
scaled_dot_product_attention on all of them, dense keys and values in float32, and prints the seconds that this took.
"""
import os
import sys
import time

os.environ["OMP_WAIT_POLICY"] = "PASSIVE"  # its threads must not spin while others are timed
import torch
from torch.nn.attention.bias import causal_lower_right
from torch.nn.functional import scaled_dot_product_attention

HEADS, KV_HEADS, DIM = 32, 8, 128


def tensors(rows, keys):
    return [torch.randn(1, heads, n, DIM) for heads, n in ((HEADS, rows), (KV_HEADS, keys), (KV_HEADS, keys))]


def attend(query, key, value):
    rows, keys = query.shape[2], key.shape[2]
    mask = None if rows == 1 else causal_lower_right(rows, keys)
    return scaled_dot_product_attention(query, key, value, attn_mask=mask, enable_gqa=True)


def main():
    torch.set_num_threads(int(sys.argv[1]))
    torch.set_grad_enabled(False)
    attend(*tensors(1, 64))  # what a first call costs
    print("PyTorch", torch.__version__.split("+")[0], flush=True)
    for line in sys.stdin:
        numbers = [int(number) for number in line.split()]
        batch = [tensors(rows, keys) for rows, keys in zip(numbers[::2], numbers[1::2])]
        start = time.perf_counter()
        for sequence in batch:
            attend(*sequence)
        print(time.perf_counter() - start, flush=True)


main()
