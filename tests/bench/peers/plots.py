"""Draws results: plots.py NAME.json. Writes NAME-bars, NAME-keys and NAME-roofline beside it, as SVG and PNG."""

import json
import os
import statistics
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

import cases
import summary

_COLOURS = {"kvjit": "#d1495b", "vllm": "#2e86ab", "torch": "#e98a15", "openvino": "#59a14f", "onnxruntime": "#8d6cab",
            "ggml": "#7d7d7d"}
STYLE = {"svg.hashsalt": "kvjit", "font.size": 9, "axes.spines.top": False, "axes.spines.right": False}
_BARS = ("decode-1x4k", "decode-8x4k", "decode-64x512", "mixed", "prefill-2048", "step-128")


def colour(peer):
    return _COLOURS.get(peer, "#444444")


def save(figure, path):
    figure.tight_layout()
    figure.savefig(path + ".svg", metadata={"Date": None})
    figure.savefig(path + ".png", dpi=110, metadata={"Software": None})
    plt.close(figure)


def draw_bars_of(axes, case):
    """Each peer's fastest variant, as time over the reference's."""
    rows = [row for row in summary.best_of_peer(summary.rows(case)) if row.ratio][::-1]
    bars = axes.barh([row.name for row in rows], [row.ratio.median for row in rows],
                     color=[colour(row.peer) for row in rows])
    axes.axvline(1, color="black", linewidth=0.8)
    for label in axes.bar_label(bars, [f"{row.ratio.median:.2f}" for row in rows], padding=3):
        label.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 0.6})
    axes.margins(x=0.12)
    axes.set_title(case["title"], fontsize=8)


def draw_bars(results):
    chosen = [results["cases"][name] for name in _BARS if name in results["cases"]] or list(results["cases"].values())
    height = (len(chosen) + 1) // 2
    figure, grid = plt.subplots(height, 2, figsize=(10, 1.9 * height + 0.4), squeeze=False)
    for axes, case in zip(grid.flat, chosen):
        draw_bars_of(axes, case)
    for axes in grid.flat[len(chosen) :]:
        axes.set_axis_off()
    figure.suptitle(f"Each engine's fastest type: time / {summary.REFERENCE}'s; shorter is faster")
    return figure


def sweep(results):
    """(keys, case) of the cases that differ in nothing but their keys."""
    return [(cases.find(name).keys, results["cases"][name]) for name in cases.KEYS_SWEEP if name in results["cases"]]


def fastest_names(found):
    """Each peer's fastest variant where keys are most."""
    return [row.name for row in summary.best_of_peer(summary.rows(found[-1][1]))] if found else []


def draw_keys(results):
    figure, axes = plt.subplots(figsize=(7, 4.5))
    found = sweep(results)
    names = fastest_names(found)
    for name in dict.fromkeys([summary.REFERENCE, *names]):
        points = [(keys, summary.row(case, name)) for keys, case in found if name in case["variants"]]
        if points:
            style = "--" if name == summary.REFERENCE and name not in names else "-"
            axes.plot([keys for keys, _ in points], [row.seconds * 1e3 for _, row in points], style, marker="o",
                      color=colour(points[0][1].peer), label=name)
    axes.set(xscale="log", yscale="log", xlabel="keys of the one sequence", ylabel="ms a layer",
             title="Decode: time over keys, each engine's fastest type")
    if found:
        axes.set_xticks([keys for keys, _ in found], [str(keys) for keys, _ in found], minor=False)
        axes.legend()
    return figure


def limits_of(results, begins):
    """The largest median of a limit over the cases."""
    found = [statistics.median(values) for case in results["cases"].values() for name, values in case["limits"].items()
             if name.startswith(begins)]
    return max(found, default=0)


def draw_roofs(axes, results):
    slope, intensities = limits_of(results, "read"), [2**i for i in range(-1, 13)]
    roofs = {"float32 multiply-adds": "-", "bfloat16 pairs": "--", "bfloat16 tiles": ":"}
    for name, style in roofs.items():
        flat = limits_of(results, name)
        if slope and flat:
            axes.plot(intensities, [min(flat, slope * x) for x in intensities], style, color="black", linewidth=1,
                      label=f"{name}, {flat:.0f} GFLOP/s")


def draw_roofline(results):
    """Operations a second over operations a byte of keys and values."""
    figure, axes = plt.subplots(figsize=(7, 4.5))
    draw_roofs(axes, results)
    labelled = set()
    for case in results["cases"].values():
        for row in summary.rows(case):
            label = None if row.peer in labelled else row.peer
            labelled.add(row.peer)
            axes.plot(case["operations"] / case["variants"][row.name]["bytes"], case["operations"] / row.seconds / 1e9,
                      "o", markersize=4, color=colour(row.peer), label=label)
    axes.set(xscale="log", yscale="log", xlabel="operations a byte of the cache", ylabel="GFLOP/s",
             title=f"Roofline: reads of {limits_of(results, 'read'):.0f} GB/s")
    axes.legend(fontsize=7)
    return figure


def main(path):
    with open(path, encoding="utf-8") as file:
        results = json.load(file)
    base = os.path.splitext(path)[0]
    plt.rcParams.update(STYLE)
    for name, draw in (("bars", draw_bars), ("keys", draw_keys), ("roofline", draw_roofline)):
        save(draw(results), f"{base}-{name}")


if __name__ == "__main__":
    main(sys.argv[1])
