"""Draws how decode's time grows with keys: lengths.py RESULTS.json BASE writes BASE-lengths.svg and .png.

RESULTS.json is what ./dev bench --benchmark_filter=BM_decode_length --benchmark_out=RESULTS.json writes. Needs
matplotlib (Debian: python3-matplotlib).
"""

import json
import os
import sys

import matplotlib.pyplot as plt

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "peers"))
import plots

_CURVES = (("us", "all cores", "#d1495b"), ("one_core_us", "one core", "#2e86ab"))


def points(path):
    """The counters of each length, by keys."""
    with open(path, encoding="utf-8") as file:
        runs = json.load(file)["benchmarks"]
    chosen = [run for run in runs if run["name"].startswith("BM_decode_length/keys:") and run["run_type"] == "iteration"]
    if not chosen:
        sys.exit(f"{path} has no results of BM_decode_length: run it with --benchmark_out={path}")
    return {int(run["name"].split("/")[1].removeprefix("keys:")): run for run in chosen}


def draw(found):
    """Time over keys, and as dotted lines what it would be if each key cost as much as with the most keys."""
    figure, axes = plt.subplots(figsize=(7, 4.5))
    most = max(found)
    for counter, label, colour in _CURVES:
        axes.plot(list(found), [run[counter] for run in found.values()], "-", marker="o", color=colour, label=label)
        axes.plot(list(found), [found[most][counter] * keys / most for keys in found], ":", color=colour)
    axes.set(xscale="log", yscale="log", xlabel="keys of the one sequence", ylabel="us for a layer of one kv head",
             title="Decode from memory, float16: time over keys; dotted: in proportion to keys")
    axes.set_xticks(list(found), [f"{keys >> 10}k" if keys < 1 << 20 else f"{keys >> 20}M" for keys in found], minor=False)
    axes.minorticks_off()
    axes.legend()
    return figure


def main(path, base):
    plt.rcParams.update(plots.STYLE)
    plots.save(draw(points(path)), base + "-lengths")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
