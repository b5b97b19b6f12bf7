"""Draws how decode's time grows with keys: lengths.py RESULTS.json BASE writes BASE-lengths.svg and .png.

RESULTS.json is what ./dev bench --benchmark_filter=BM_decode_length --benchmark_out=RESULTS.json writes. Needs
matplotlib (Debian: python3-matplotlib).
"""

import json
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

_STYLE = {"svg.hashsalt": "kvjit", "font.size": 9, "axes.spines.top": False, "axes.spines.right": False}
_CURVES = (("us", "all cores", "#d1495b"), ("one_core_us", "one core", "#2e86ab"))


def points(path):
    """The counters of each length, by keys."""
    with open(path, encoding="utf-8") as file:
        runs = json.load(file)["benchmarks"]
    chosen = [run for run in runs if run["name"].startswith("BM_decode_length/keys:") and "us" in run]
    if not chosen:
        sys.exit(f"{path} has no results of BM_decode_length: run it with --benchmark_out={path}")
    return {int(run["name"].split("/")[1].removeprefix("keys:")): run for run in chosen}


def draw(found):
    """Time over keys, and as dotted lines what it would be if each key cost what each of the most keys does."""
    figure, axes = plt.subplots(figsize=(7, 4.5))
    most = max(found)
    for counter, label, colour in _CURVES:
        axes.plot(list(found), [run[counter] for run in found.values()], "-", marker="o", color=colour, label=label)
        axes.plot(list(found), [found[most][counter] * keys / most for keys in found], ":", color=colour)
    axes.set(xscale="log", yscale="log", xlabel="keys of the one sequence", ylabel="us a layer of one kv head",
             title="Decode from memory, float16: time over keys; dotted: in proportion to keys")
    axes.set_xticks(list(found), [f"{keys // 1024}k" for keys in found], minor=False)
    axes.minorticks_off()
    axes.legend()
    return figure


def main(path, base):
    plt.rcParams.update(_STYLE)
    figure = draw(points(path))
    figure.tight_layout()
    figure.savefig(base + "-lengths.svg", metadata={"Date": None})
    figure.savefig(base + "-lengths.png", dpi=110, metadata={"Software": None})


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
