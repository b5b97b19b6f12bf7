"""Measures a case: every variant of every peer in turn, round by round, and the machine's limits in each round."""

import os
import time

import machine

_LIMIT_TRIES = 3  # the best counts
_PAUSE = 0.06  # until threads of the last one that wait for work sleep


class Contestant:
    """A variant of a peer that is ready to run a case."""

    def __init__(self, driver, variant, answer):
        self.driver, self.variant = driver, variant
        self.name = f"{driver.name} {variant}"
        self.answer, self.seconds = answer, []

    def run(self):
        """One more time; what the driver lacks, or None."""
        time.sleep(_PAUSE)
        answer = self.driver.ask("run", variant=self.variant)
        self.seconds.append(answer.get("seconds"))
        return answer.get("lacks")

    def record(self):
        told = {key: self.answer[key] for key in ("layers", "bytes", "error")}
        return {"peer": self.driver.name, "variant": self.variant, **told, "seconds": self.seconds}


def verdict(answer):
    """Why a prepared variant is not measured, or None."""
    if "lacks" in answer:
        return answer["lacks"]
    # So that not-a-number is refused, too.
    if not answer["error"] <= answer["tolerance"]:
        return f"wrong: an error of {answer['error']:.2g}, more than {answer['tolerance']:g}"
    return None


def prepare(case, drivers, beyond_cache, progress):
    """(contestants, reasons): those whose results are right, and why the others are not among them."""
    contestants, reasons = [], {}
    for driver in drivers:
        for variant in driver.variants:
            progress.step(f"{case.name}: {driver.name} {variant} is checked against float64")
            answer = driver.ask("prepare", case=case.name, variant=variant, beyond_cache=beyond_cache)
            reason = verdict(answer)
            if reason is None:
                contestants.append(Contestant(driver, variant, answer))
            else:
                reasons[f"{driver.name} {variant}"] = reason
    return contestants, reasons


def turns(contestants, number):
    """Every other round goes the other way, so that nobody always follows the same one."""
    return contestants if number % 2 == 0 else contestants[::-1]


def run_rounds(case, contestants, limits, rounds, progress):
    """Measures of the limits, by name, a round each. A contestant that fails leaves; why is the second result."""
    measured, reasons, running = {name: [] for name in limits.units}, {}, list(contestants)
    for number in range(rounds):
        time.sleep(_PAUSE)
        for name, values in measured.items():
            values.append(max(limits.measure(name) for _ in range(_LIMIT_TRIES)))
        for contestant in turns(running, number):
            progress.step(f"{case.name}: round {number + 1} of {rounds}, {contestant.name}")
            reason = contestant.run()
            if reason:
                reasons[contestant.name] = reason
        running = [each for each in running if each.name not in reasons]
    return measured, reasons


def measure(case, drivers, limits, rounds, progress, niceness=None):
    """The case's part of the results, as summary.py reads it. `niceness`: of all while they are timed."""
    variants = sum(len(driver.variants) for driver in drivers)
    contestants, reasons = prepare(case, drivers, machine.beyond_cache_bytes(variants), progress)
    progress.skip(rounds * (variants - len(contestants)))
    pids = [each.pid for each in (*drivers, limits) if not each.lacks] + [os.getpid()]
    with machine.niceness(pids, niceness):
        others = machine.Others(pids)
        measured, failed = run_rounds(case, contestants, limits, rounds, progress)
        cores = others.cores()
    for driver in drivers:
        driver.ask("drop")
    return {"title": case.title, "elements": case.elements, "operations": case.operations,
            "bound": case.bound, "date": machine.now(), "limits": measured, "others_used_cores": cores,
            "variants": {each.name: each.record() for each in contestants if each.name not in failed},
            "lacks": reasons | failed}
