"""From times to figures: medians, and ratios within a round."""

import dataclasses
import statistics

REFERENCE = "kvjit float16 L2HTD"  # what the others' times are divided by


@dataclasses.dataclass(frozen=True)
class Ratio:
    """Times of one over those of the reference, round by round."""

    median: float
    lost: int  # rounds in which the reference was faster
    rounds: int


@dataclasses.dataclass(frozen=True)
class Row:
    name: str
    peer: str
    variant: str
    seconds: float  # median over the rounds, a layer
    ratio: Ratio | None  # None: the reference was not measured
    rate: float  # 1e9 bytes or operations a second
    share: float | None  # of the machine's limit, each round's with its own; None: no such limit
    error: float


def ratio(seconds, reference):
    """Of two lists of times, an entry a round; None where they share no round."""
    pairs = [(mine, other) for mine, other in zip(seconds, reference) if mine and other]
    if not pairs:
        return None
    ratios = [mine / other for mine, other in pairs]
    return Ratio(statistics.median(ratios), sum(each > 1 for each in ratios), len(ratios))


def best_limit(case, names):
    """The largest of these limits in each round; empty where the case has none of them."""
    columns = [case["limits"][name] for name in names if name in case["limits"]]
    return [max(values) for values in zip(*columns)]


def limit_names(case, variant):
    """The limits that the variant can't pass: reads, or products of its type."""
    products = ("float32", "bfloat16") if variant.startswith(("bfloat16", "fp8")) else ("float32",)
    begins = {"memory": ("read",), "arithmetic": products, "calls": ()}[case["bound"]]
    return [name for name in case["limits"] if name.startswith(begins)]


def share(work, seconds, limit):
    """Median over the rounds of work a second, in 1e9, over the limit; None without a limit."""
    shares = [work / time / 1e9 / most for time, most in zip(seconds, limit) if time and most]
    return statistics.median(shares) if shares else None


def row(case, name):
    record = case["variants"][name]
    times = [time for time in record["seconds"] if time]
    work = case["operations"] if case["bound"] == "arithmetic" else record["bytes"]
    reference = case["variants"].get(REFERENCE)
    return Row(
        name=name,
        peer=record["peer"],
        variant=record["variant"],
        seconds=statistics.median(times),
        ratio=ratio(record["seconds"], reference["seconds"]) if reference else None,
        rate=work / statistics.median(times) / 1e9,
        share=share(work, record["seconds"], best_limit(case, limit_names(case, record["variant"]))),
        error=record["error"],
    )


def rows(case):
    """One for each variant that was measured, in the order in which they were."""
    return [row(case, name) for name in case["variants"]]


def best_of_peer(found):
    """Of rows, each peer's fastest, the fastest first."""
    fastest = {}
    for each in sorted(found, key=lambda each: each.seconds):
        fastest.setdefault(each.peer, each)
    return list(fastest.values())
