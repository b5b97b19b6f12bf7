"""./dev bench --peers: kvjit beside other engines, on the same shapes, numbers, threads and cores."""

import argparse
import json
import os
import subprocess
import sys

import cases
import environment
import machine
import process
import rounds
import table
import terminal

_ROUNDS, _QUICK_ROUNDS = 7, 2
_HERE = os.path.dirname(os.path.abspath(__file__))
_ROOT = os.path.normpath(os.path.join(_HERE, "..", "..", ".."))

_MORE = """\
peers:
  {peers}
cases:
  {cases}

Each peer runs in a process of its own, with packages of fixed versions out of build/peers, where the first run
installs them as pip is configured: some GB, said before. A peer that can't be had, or lacks a case or a type, is named
with the reason, and the run goes on without it. kvjit and the machine's limits are measured without any network.

Every result is checked against float64 before its engine is timed. Then come rounds: in each, the machine's limits
(loops that only read; that only multiply and add; AMX's tiles) and every engine in turn, every other round in reverse
order. Times are medians, ratios are medians of each round's.

Other work on the machine is in the figures, too: --nice -20 (as root) keeps most of it out while engines are timed, and
the results say how many cores other processes used meanwhile.

examples:
  ./dev bench --peers --quick                       some minutes; into build/peers/quick
  ./dev bench --peers --only vllm --case mixed      one engine, one batch
  ./dev bench --peers --update --case mixed         again, where other work disturbed the first time
  ./dev bench --peers --name my-machine --nice -20  everything; into tests/bench/results/my-machine*
"""


def _positive(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return number


def _file_name(text):
    if os.path.basename(text) != text:
        raise argparse.ArgumentTypeError(f"{text} has a folder, which --out names")
    return text


def parse(arguments):
    names = [peer.name for peer in environment.PEERS]
    described = "\n  ".join(f"{case.name:14} {case.title}" for case in cases.CASES.values())
    parser = argparse.ArgumentParser(prog="./dev bench --peers", description=__doc__.partition(": ")[2],
                                     formatter_class=argparse.RawDescriptionHelpFormatter,
                                     epilog=_MORE.format(peers=", ".join(names), cases=described))
    parser.add_argument("--only", metavar="PEER", action="append", choices=[*names, "kvjit"],
                        help="this peer and kvjit; may be repeated")
    parser.add_argument("--case", metavar="CASE", action="append", choices=list(cases.CASES),
                        help="this case only; may be repeated")
    parser.add_argument("--quick", action="store_true", help=f"{_QUICK_ROUNDS} rounds instead of {_ROUNDS}")
    parser.add_argument("--rounds", type=_positive, metavar="N", help="N rounds")
    parser.add_argument("--offline", action="store_true", help="install nothing: peers that are not there are missing")
    parser.add_argument("--out", metavar="FOLDER", help="where results go")
    parser.add_argument("--name", type=_file_name, default="peers", help="what their files are called (%(default)s)")
    parser.add_argument("--nice", type=int, metavar="N",
                        help="niceness of all engines while they are timed; below 0 takes root")
    parser.add_argument("--update", action="store_true", help="keep the other cases of the results that are there")
    parser.add_argument("--build", default=os.path.join(_ROOT, "build"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    options.rounds = options.rounds or (_QUICK_ROUNDS if options.quick else _ROUNDS)
    options.folder = os.path.join(options.build, "peers")
    quick, full = os.path.join(options.folder, "quick"), os.path.join(_ROOT, "tests", "bench", "results")
    options.out = options.out or (quick if options.quick else full)
    return options


def chosen_peers(options):
    return [peer for peer in environment.PEERS if not options.only or peer.name in options.only]


def left_out(options):
    """Why peers that --only leaves out are missing, by their names."""
    chosen = chosen_peers(options)
    return {peer.name: "left out by --only" for peer in environment.PEERS if peer not in chosen}


def start_driver(name, command, options):
    logs = os.path.join(options.folder, "logs")
    os.makedirs(logs, exist_ok=True)
    env = process.environment(len(os.sched_getaffinity(0)), options.folder)
    return process.Driver(name, command, os.path.join(logs, name + ".log"), env)


def start_drivers(options, python, missing):
    """Those of kvjit and of the peers that are there; `missing` gets the others."""
    library = os.path.join(options.build, "lib", "libkvjit.so")
    commands = {"kvjit": [python.python, os.path.join(_HERE, "kvjit_driver.py"), library]}
    there = [peer for peer in chosen_peers(options) if peer.name not in missing]
    commands |= {peer.name: environment.command(python, peer) for peer in there}
    drivers = [start_driver(name, command, options) for name, command in commands.items()]
    for driver in drivers:
        if driver.lacks:
            missing[driver.name] = driver.lacks
            driver.close()
    return [driver for driver in drivers if not driver.lacks]


def start_limits(options):
    program = os.path.join(options.build, "tests", "bench", "peers", "kvjit_peer_limits")
    return process.Limits([program], os.path.join(options.folder, "logs", "limits.log"))


def measure_cases(options, drivers, limits):
    chosen = [case for case in cases.CASES.values() if not options.case or case.name in options.case]
    variants = sum(len(driver.variants) for driver in drivers)
    progress, measured = terminal.Progress(len(chosen) * variants * (1 + options.rounds)), {}
    for case in chosen:
        measured[case.name] = rounds.measure(case, drivers, limits, options.rounds, progress, options.nice)
        terminal.say(terminal.bold(case.title))
        terminal.say("\n".join(table.plain_rows(measured[case.name])))
    return measured


def collect(options, arguments, drivers, limits, missing):
    """The results, as summary.py, table.py and plots.py read them."""
    peers = {driver.name: {"version": driver.version, "notes": driver.notes, "variants": driver.variants}
             for driver in drivers}
    return {"command": " ".join(["./dev bench --peers", *arguments]), "machine": machine.describe(),
            "rounds": options.rounds, "units": limits.units, "peers": peers, "missing": missing,
            "cases": measure_cases(options, drivers, limits)}


def kept(path):
    """Cases of the results that are there."""
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)["cases"]
    except FileNotFoundError:
        return {}


def rounded(value):
    """Times need no more than five digits."""
    if isinstance(value, dict):
        return {key: rounded(each) for key, each in value.items()}
    if isinstance(value, list):
        return [rounded(each) for each in value]
    return float(f"{value:.5g}") if isinstance(value, float) else value


def write(options, python, results):
    os.makedirs(options.out, exist_ok=True)
    base = os.path.join(options.out, options.name)
    if options.update:
        found = kept(base + ".json") | results["cases"]
        results["cases"] = {name: found[name] for name in cases.CASES if name in found}
    with open(base + ".json", "w", encoding="utf-8") as file:
        json.dump(rounded(results), file, indent=1)
    with open(base + ".md", "w", encoding="utf-8") as file:
        file.write(table.document(results))
    draw = subprocess.run([python.python, os.path.join(_HERE, "plots.py"), base + ".json"],
                          capture_output=True, text=True)
    plots = " and plots" if draw.returncode == 0 else f"; no plots: {environment.last_line(draw.stderr)}"
    terminal.say(f"Results: {os.path.relpath(base)}.md, .json{plots}")


def main(arguments):
    options = parse(arguments)
    python = environment.Environment(options.folder)
    missing = left_out(options) | environment.prepare(python, chosen_peers(options), options.offline)
    drivers, limits = start_drivers(options, python, missing), start_limits(options)
    for name, reason in missing.items():
        terminal.say(f"Without {name}: {reason}")
    results = collect(options, arguments, drivers, limits, missing)
    for each in (*drivers, limits):
        each.close()
    write(options, python, results)
    return 0 if any(driver.name == "kvjit" for driver in drivers) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
