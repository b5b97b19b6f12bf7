"""A model of time: what share of a GPU's bandwidth, or of its arithmetic, a program may reach, and what bounds it.
docs/gpu_model.md has the formula, the sources of these numbers and the table that `document` makes."""

from typing import NamedTuple

from pipes import PIPES

# The part of its cycles in which a unit of a multiprocessor works at best, with the few warps that attention has there.
_BUSY = 0.6
# The part of the published bandwidth that a copy reaches.
_STREAMED = 0.9
# Seconds from a load to its value, under load: out of memory, and out of the second-level cache.
_LATENCY, _CACHE_LATENCY = 600e-9, 200e-9
_PARTITIONS = 4


class Gpu(NamedTuple):
    name: str
    architecture: str
    multiprocessors: int
    clock: float      # Hz
    bandwidth: float  # bytes a second
    tensor: float     # float16 products and sums a second, float32 sums
    product: float    # cycles of a partition for one m16n8k16
    fma: float        # cycles of a partition for one float32 multiply-add of a warp

    @property
    def bytes_a_cycle(self):
        """Of the memory, for one multiprocessor."""
        return self.bandwidth / self.multiprocessors / self.clock

    @property
    def float32(self):
        """Operations a second."""
        return self.multiprocessors * self.clock * _PARTITIONS * 64 / self.fma


GPUS = (
    Gpu("A100", "sm_80", 108, 1.41e9, 2.039e12, 312e12, 8, 2),
    Gpu("A10", "sm_86", 72, 1.695e9, 0.6e12, 125e12, 16, 1),
    Gpu("L40S", "sm_89", 142, 2.52e9, 0.864e12, 362e12, 16, 1),
    Gpu("H100", "sm_90a", 132, 1.83e9, 3.35e12, 989e12, 6.3, 1),
    Gpu("H200", "sm_90a", 132, 1.83e9, 4.8e12, 989e12, 6.3, 1),
    Gpu("B200", "sm_100a", 148, 1.85e9, 8e12, 2250e12, 6.3, 1),
)


class Prediction(NamedTuple):
    share: float  # of the memory's bandwidth, or of the arithmetic's peak
    bound: str


def _cycles(tile, warps, gpu):
    """Of a multiprocessor for a tile of one warp, by what takes them."""
    pipes = dict(zip(PIPES, tile.pipes))
    issue = tile.instructions / _BUSY / _PARTITIONS
    from_memory = min(tile.copies, tile.trips)  # the cache's scales; tables and masks serve many blocks
    seconds = from_memory * _LATENCY + (tile.trips - from_memory) * _CACHE_LATENCY
    return {
        "issue": issue,
        "tensor": pipes["tensor"] * gpu.product / _BUSY / _PARTITIONS,
        "float": pipes["float"] * gpu.fma / _BUSY / _PARTITIONS,
        "shared": tile.waves / _BUSY,
        # A warp that waits issues nothing, and works alone meanwhile.
        "waits": seconds * gpu.clock / warps + issue if tile.trips else 0,
    }


def predict(program, figures, gpu):
    """The share of the GPU's bandwidth for decode, and of its arithmetic for prefill."""
    tile = figures.tile
    cycles = _cycles(tile, figures.warps, gpu)
    if program == "decode":
        in_flight = figures.warps * tile.flight / (_LATENCY * gpu.clock)  # bytes a cycle
        cycles["memory"] = tile.cache_bytes / (_STREAMED * gpu.bytes_a_cycle)
        cycles["flight"] = tile.cache_bytes / in_flight
        best = tile.cache_bytes / gpu.bytes_a_cycle
    else:
        peak = gpu.tensor if dict(zip(PIPES, tile.pipes))["tensor"] else gpu.float32
        best = tile.operations / (peak / gpu.multiprocessors / gpu.clock)
    bound = max(cycles, key=cycles.get)
    return Prediction(best / cycles[bound], bound)


# ---- Table ---------------------------------------------------------------------------------------------------------


def _line(*cells):
    return "| " + " | ".join(cells) + " |"


def gpu_table(gpus=GPUS):
    """Markdown: what is assumed of each."""
    columns = ("architecture", "multiprocessors", "clock, GHz", "memory, TB/s", "tensor cores, TFLOP/s",
               "cycles of a product m16n8k16", "of a float32 instruction")
    rows = [(gpu.name, gpu.architecture, gpu.multiprocessors, gpu.clock / 1e9, gpu.bandwidth / 1e12, gpu.tensor / 1e12,
             gpu.product, gpu.fma) for gpu in gpus]
    return [_line("", *columns), "|" + "---|" * (len(columns) + 1),
            *(_line(*(each if isinstance(each, str) else f"{each:g}" for each in row)) for row in rows)]


def _cell(figures, program, name, gpu):
    found = figures.get((gpu.architecture, name))
    if found is None:
        return "–"
    predicted = predict(program, found, gpu)
    return f"{predicted.share:.2f} {predicted.bound}"


def table(figures, program):
    """Markdown: a row a program, a column a GPU, and one for what is measured."""
    names = list(dict.fromkeys(name for _, name in figures if name.endswith("." + program)))
    lines = [_line(program, *(gpu.name for gpu in GPUS), "measured"), "|" + "---|" * (len(GPUS) + 2)]
    return lines + [_line(name.removesuffix("." + program), *(_cell(figures, program, name, gpu) for gpu in GPUS), "")
                    for name in names]


def document(figures):
    """The tables of docs/gpu_model.md."""
    return "\n".join([*gpu_table(), "", *table(figures, "decode"), "", *table(figures, "prefill")]) + "\n"
