#!/usr/bin/env python3
"""Times PyTorch's attention on the shapes of kvjit_gpu_bench, and writes a report that it can merge.

torch.nn.functional.scaled_dot_product_attention with the cuDNN and the flash backend, float16, from CUDA graphs where
the backend can be captured. It reads dense keys and values: no pages, no quantisation.
"""
import argparse
import inspect
import json
import math
import sys

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention as attention

HEADS, KV_HEADS, DIM = 32, 8, 128  # decode
TOKENS, WIDTH = 16384, 2048  # prefill
TIMES_L2 = 4
SAMPLE_US = 2000
MOST_CALLS = 256
USABLE = 0.9
BACKENDS = {"torch cuDNN": SDPBackend.CUDNN_ATTENTION, "torch flash": SDPBackend.FLASH_ATTENTION}
HAS_GQA = "enable_gqa" in (inspect.getdoc(attention) or "")


class Report:
    """Rows, skips and failures as kvjit_gpu_bench writes them."""

    def __init__(self):
        self.rows, self.skipped, self.failed = [], {}, {}

    def add(self, group, shape, what, by, samples, nbytes=0.0, operations=0.0):
        self.rows.append({"group": group, "shape": shape, "what": what, "by": by, "samples_us": samples,
                          "bytes": nbytes, "operations": operations})

    def json(self):
        machine = {"torch": torch.__version__, "cuDNN": str(torch.backends.cudnn.version())}
        return {"machine": machine, "rows": self.rows, "skipped": self.skipped, "failed": self.failed}


class Contestant:
    """`calls` calls, call(0), call(1), ..., in one go: a graph's replay, or one after the other."""

    def __init__(self, backend, call, calls):
        self.backend, self.call, self.calls, self.graph = backend, call, calls, None
        self.run_eagerly()  # plans, workspaces and compiled kernels are there before it is captured
        torch.cuda.synchronize()
        try:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                self.run_eagerly()
            self.graph = graph
        except RuntimeError:
            torch.cuda.synchronize()

    def run_eagerly(self):
        with sdpa_kernel(self.backend):
            for i in range(self.calls):
                self.call(i)

    def run(self):
        if self.graph is not None:
            self.graph.replay()
        else:
            self.run_eagerly()

    def how(self):
        return "graph" if self.graph is not None else "no graph"


def contest(contestants, rounds):
    """Microseconds a call, by contestant and round. One round more comes first and doesn't count."""
    times = [[] for _ in contestants]
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    for turn in range(-1, rounds):
        for contestant, samples in zip(contestants, times):
            start.record()
            contestant.run()
            end.record()
            end.synchronize()
            if turn >= 0:
                samples.append(1000 * start.elapsed_time(end) / contestant.calls)
    return times


def run_backends(report, name, rounds, call, calls):
    """(by, how, samples) of each backend that takes the shape; the others are skipped with what they said."""
    contestants, names = [], []
    for by, backend in BACKENDS.items():
        try:
            contestants.append(Contestant(backend, call, calls))
            names.append(by)
        except RuntimeError as error:
            report.skipped[f"{by}, {name}"] = str(error).splitlines()[0]
    return zip(names, [c.how() for c in contestants], contest(contestants, rounds))


def fits(report, name, nbytes):
    usable = USABLE * torch.cuda.mem_get_info()[0]
    if nbytes <= usable:
        return True
    report.skipped[f"torch, {name}"] = f"needs {nbytes / 1e6:.0f} MB of device memory, has {usable / 1e6:.0f}"
    return False


def l2_bytes():
    return torch.cuda.get_device_properties(torch.cuda.current_device()).L2_cache_size


def normal(*shape):
    return torch.randn(*shape, dtype=torch.float16, device="cuda")


def bench_decode(report, sequences, keys, rounds):
    name = f"B {sequences}, keys {keys}"
    cache_bytes = sequences * keys * 2 * KV_HEADS * DIM * 2
    copies = max(1, math.ceil(TIMES_L2 * l2_bytes() / cache_bytes))
    calls = max(copies, min(MOST_CALLS, math.ceil(SAMPLE_US / (4 + cache_bytes / 3e6))))
    heads = KV_HEADS if HAS_GQA else HEADS
    if not fits(report, f"decode {name}", copies * cache_bytes * heads // KV_HEADS):
        return
    query = normal(sequences, HEADS, 1, DIM)
    caches = [(normal(sequences, heads, keys, DIM), normal(sequences, heads, keys, DIM)) for _ in range(copies)]
    options = {"enable_gqa": True} if HAS_GQA else {}

    def call(i):
        key, value = caches[i % copies]
        return attention(query, key, value, **options)

    what = "f16, dense" if HAS_GQA else "f16, dense, heads copied"
    for by, how, samples in run_backends(report, f"decode {name}", rounds, call, calls):
        report.add("decode", name, f"{what}, {how}", by, samples, float(cache_bytes))


def bench_prefill(report, length, dim, causal, rounds):
    name = f"S {length}, D {dim}" + (", causal" if causal else "")
    heads, sequences = WIDTH // dim, TOKENS // length
    operations = 4.0 * TOKENS * length * WIDTH / (2 if causal else 1)
    if not fits(report, f"prefill {name}", 4 * TOKENS * WIDTH * 2):
        return
    query, key, value = (normal(sequences, heads, length, dim) for _ in range(3))
    calls = 1 + int(3000 / (operations / 4e8))

    def call(_):
        return attention(query, key, value, is_causal=causal)

    for by, how, samples in run_backends(report, f"prefill {name}", rounds, call, calls):
        report.add("prefill", name, f"f16, {how}", by, samples, 0.0, operations)


def run(report, quick):
    rounds = 3 if quick else 9
    for sequences in (1, 64) if quick else (1, 16, 64, 256):
        for keys in (1024, 8192) if quick else (1024, 8192, 32768):
            attempt(report, f"decode B {sequences}, keys {keys}", bench_decode, sequences, keys, rounds)
    for dim in (64, 128, 256):
        for length in (2048, 16384) if quick else (1024, 2048, 4096, 8192, 16384):
            for causal in (True, False):
                attempt(report, f"prefill S {length}, D {dim}", bench_prefill, length, dim, causal, rounds)


def attempt(report, name, bench, *arguments):
    try:
        bench(report, *arguments)
    except RuntimeError as error:
        report.failed[f"torch, {name}"] = str(error).splitlines()[0]
    torch.cuda.empty_cache()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", required=True, help="where the report goes")
    parser.add_argument("--quick", action="store_true", help="fewer shapes and rounds, as kvjit_gpu_bench --quick")
    parser.add_argument("--device", type=int, default=0, help="the GPU of this number")
    arguments = parser.parse_args()
    torch.cuda.set_device(arguments.device)
    report = Report()
    with torch.inference_mode():
        run(report, arguments.quick)
    with open(arguments.json, "w", encoding="utf-8") as file:
        json.dump(report.json(), file, indent=1)
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
