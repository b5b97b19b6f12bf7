"""One side of the line protocol: a process that runs one peer.

It reads a JSON object a line and answers each with one. What the peer prints goes to stderr.

    (start)                                  {"version": "PyTorch 2.15.0", "notes": [...], "variants": ["float16", ...]}
    {"do": "prepare", "case": "decode-1x4k", "variant": "float16", "beyond_cache": 256e6}
                                             {"layers": 16, "bytes": 16777216, "error": 2e-4, "tolerance": 2e-3}
                                             a layer's; errors as data.error has them
    {"do": "run", "variant": "float16"}      {"seconds": 0.001}    a layer, the median of some
    {"do": "drop"}                           {}                    frees what was prepared
    {"do": "quit"}                           ends the process

A request that fails is answered with {"lacks": "why"}.
"""

import dataclasses
import gc
import json
import os
import statistics
import sys
import time
import traceback
from typing import Callable

import cases
import data
import rounding

_RUN_SECONDS = 0.06
_MOST_STEPS = 200


class Lacks(Exception):
    """This peer, or this machine, has no such thing."""


@dataclasses.dataclass(frozen=True)
class Variant:
    """What a peer's cache holds, and how it rounds queries and cached numbers before it computes."""

    bytes: float  # an element of the cache, its scales included
    held: Callable = rounding.exact
    held_query: Callable = rounding.exact
    tolerance: float = 1e-4  # relative to the largest result
    options: dict = dataclasses.field(default_factory=dict)  # the driver's own

    def with_options(self, **options):
        return dataclasses.replace(self, options=options)


FLOAT32 = Variant(4)
FLOAT16 = Variant(2, rounding.float16, rounding.float16, 3e-3)
BFLOAT16 = Variant(2, rounding.bfloat16, rounding.bfloat16, 2e-2)


class Prepared:
    """A case that a peer is ready to run. Subclasses have `layers`."""

    layers = 1

    def step(self):
        """All layers, in turn."""
        raise NotImplementedError

    def output(self, sequence):
        """Layer 0's result of a sequence after a step: numbers of (new tokens, HEADS, DIM)."""
        raise NotImplementedError


class Peer:
    """A subclass a peer."""

    variants = {}
    notes = []  # what a reader of the results must know of how it is called

    def version(self):
        raise NotImplementedError

    def prepare(self, case, variant, layers):
        """A Prepared. Raises Lacks where there is none."""
        raise NotImplementedError


def threads():
    """Cores that the process may run on: what every peer uses."""
    return len(os.sched_getaffinity(0))


def alike(sequences):
    """Runs of equal sequences, as (first, count): what a peer without ragged batches can do in one call."""
    runs = []
    for b, shape in enumerate(sequences):
        if runs and sequences[runs[-1][0]] == shape:
            runs[-1] = (runs[-1][0], runs[-1][1] + 1)
        else:
            runs.append((b, 1))
    return runs


def timed(step):
    start = time.perf_counter()
    step()
    return time.perf_counter() - start


def median_step(step):
    """Seconds of a step: one that does not count, then as many as fit into a short time, at least one."""
    step()
    seconds = []
    while not seconds or (sum(seconds) < _RUN_SECONDS and len(seconds) < _MOST_STEPS):
        seconds.append(timed(step))
    return statistics.median(seconds)


class _Session:
    def __init__(self, peer):
        self.peer, self.prepared = peer, {}

    def prepare(self, request):
        case, variant = cases.find(request["case"]), self.peer.variants[request["variant"]]
        layers = case.layers(variant.bytes, request["beyond_cache"])
        ready = self.peer.prepare(case, variant, layers)
        ready.step()
        error = data.error(case, ready.output, variant.held_query, variant.held)
        self.prepared[request["variant"]] = ready
        return {"layers": ready.layers, "bytes": case.elements * variant.bytes, "error": error,
                "tolerance": variant.tolerance}

    def run(self, request):
        ready = self.prepared[request["variant"]]
        return {"seconds": median_step(ready.step) / ready.layers}

    def drop(self, _):
        self.prepared.clear()
        gc.collect()
        return {}

    def answer(self, request):
        try:
            return {"prepare": self.prepare, "run": self.run, "drop": self.drop}[request["do"]](request)
        except Exception as error:  # whatever a peer throws is its answer
            if not isinstance(error, Lacks):
                traceback.print_exc()
            return {"lacks": f"{'' if isinstance(error, Lacks) else type(error).__name__ + ': '}{error}"}


def serve(make_peer):
    """Runs until it is told to quit or its input ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def say(answer):
        print(json.dumps(answer), file=answers, flush=True)

    try:
        session = _Session(make_peer())
    except (ImportError, OSError, Lacks) as error:
        say({"lacks": str(error).splitlines()[0]})
        return
    say({"version": session.peer.version(), "notes": session.peer.notes, "variants": list(session.peer.variants)})
    for line in sys.stdin:
        request = json.loads(line)
        if request["do"] == "quit":
            break
        say(session.answer(request))
