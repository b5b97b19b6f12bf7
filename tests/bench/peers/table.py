"""The results as markdown."""

import statistics

import summary

_OVERVIEW = {  # what README.md has room for
    "decode-1x4k": "decode, 4k keys",
    "decode-1x32k": "decode, 32k keys",
    "decode-8x4k": "decode, 8 of 4k keys",
    "decode-64x512": "decode, 64 of 512 keys",
    "mixed": "16 decodes, 2 prefills",
    "prefill-2048": "prefill 2048",
    "step-128": "step, 128 keys",
}
_NOTHING = "–"
_METHOD = f"""\
H 32, Hkv 8, D 128. {{rounds}} rounds, in each of which every engine has its turn, every other round in reverse order,
all with {{threads}} threads on the same cores. Each result was checked against float64 first: *error* is relative to
the largest result, and starts from the numbers as the engine's cache holds them (OpenVINO's u8 and u4: before they are
quantised, so that these errors include the quantisation's). Times are medians over the rounds.
*ratio* is the median of each round's time over that of {summary.REFERENCE}, and *lost* counts the rounds in which the
latter was faster. *of the limit* holds bytes against the fastest loop in the same round that only reads, and
operations against the fastest loop of products of the type. Every engine is called from Python, which its time has."""


def time_text(seconds):
    """Three digits and a unit."""
    for unit, size in (("s", 1), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e6:.3g} us"


def ratio_text(ratio):
    """Bold where the reference is slower."""
    if ratio is None:
        return _NOTHING
    text = f"{ratio.median:.2f}" if ratio.median < 10 else f"{ratio.median:.0f}"
    return f"**{text}**" if ratio.median < 1 else text


def line(*cells):
    return "| " + " | ".join(cells) + " |"


def header(*cells):
    return [line(*cells), "|" + "---|" * len(cells)]


def row_line(row):
    rounds = f"{row.ratio.lost} of {row.ratio.rounds}" if row.ratio and row.name != summary.REFERENCE else _NOTHING
    share = _NOTHING if row.share is None else f"{row.share:.2f}"
    return line(row.name, time_text(row.seconds), ratio_text(row.ratio), rounds, f"{row.rate:.3g}", share,
                f"{row.error:.1e}")


def limits_line(case, units):
    """Those of the case, medians."""
    parts = [(name, statistics.median(values)) for name, values in case["limits"].items()]
    return "; ".join(f"{name} {value:.3g} {units[name]}" for name, value in parts if value)


def unit_of(case):
    return "GFLOP/s" if case["bound"] == "arithmetic" else "GB/s"


def case_table(case, units):
    unit = unit_of(case)
    lines = [f"### {case['title'][0].upper()}{case['title'][1:]}", ""]
    lines += header("", "a layer", "ratio", "lost", unit, "of the limit", "error")
    lines += [row_line(row) for row in summary.rows(case)]
    lines += ["", f"Limits: {limits_line(case, units)}. Measured on {case['date']}; other processes used "
              f"{case['others_used_cores']:.2f} cores."]
    lines += [f"\nNot measured: {name}: {reason}" for name, reason in case["lacks"].items()]
    return lines


def overview_cell(case, name):
    """A variant's ratio."""
    return ratio_text(summary.row(case, name).ratio) if name in case["variants"] else _NOTHING


def overview(results):
    """A row a variant, a column a case: times over the reference's. Markdown."""
    cases = {name: results["cases"][name] for name in _OVERVIEW if name in results["cases"]}
    lines = header("time / kvjit float16's", *(_OVERVIEW[name] for name in cases))
    lines.append(line(summary.REFERENCE, *(reference_cell(case) for case in cases.values())))
    names = [f"{peer} {variant}" for peer, told in results["peers"].items() for variant in told["variants"]]
    for name in names:
        if name != summary.REFERENCE and any(name in case["variants"] for case in cases.values()):
            lines.append(line(name, *(overview_cell(case, name) for case in cases.values())))
    return "\n".join(lines)


def reference_cell(case):
    if summary.REFERENCE not in case["variants"]:
        return _NOTHING
    row = summary.row(case, summary.REFERENCE)
    share = "" if row.share is None else f", {row.rate:.3g} {unit_of(case)}, {row.share:.2f} of the limit"
    return f"1 ({time_text(row.seconds)}{share})"


def machine_text(results):
    machine = results["machine"]
    return (f"{machine['processor']}, {machine['cores']} cores ({', '.join(machine['instructions'])}), "
            f"{machine['last_level_cache_MB']} MB last-level cache, {machine['system']}, {machine['date']}")


def document(results):
    """All of the results, for people."""
    lines = ["# kvjit beside other engines", "", f"Made by `{results['command']}` on {machine_text(results)}.", "",
             _METHOD.format(rounds=results["rounds"], threads=results["machine"]["cores"]), "",
             *header("engine", "how it is called")]
    lines += [line(told["version"], "; ".join(told["notes"])) for told in results["peers"].values()]
    lines += [f"\nMissing: {name}: {reason}" for name, reason in results["missing"].items()]
    lines += ["", "## Overview", "", f"Bold: faster than {summary.REFERENCE}.", "", overview(results), ""]
    lines += ["## Cases", ""]
    for case in results["cases"].values():
        lines += [*case_table(case, results["units"]), ""]
    return "\n".join(lines)


def plain_rows(case):
    """Lines for a terminal."""
    lines = []
    for row in summary.rows(case):
        shown = f"{row.ratio.median:6.2f}" if row.ratio else " " * 6
        lines.append(f"  {row.name:26} {time_text(row.seconds):>9} {shown}  error {row.error:.1e}")
    return lines + [f"  {name}: {reason}" for name, reason in case["lacks"].items()]
