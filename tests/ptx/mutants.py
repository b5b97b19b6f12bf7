#!/usr/bin/env python3
"""Whether tests notice mistakes: mutants.py [--build FOLDER] [--only TEXT] [--jobs N] [--quick | --check]

Runs tests against copies of the templates, each with one mistake of mutants.txt, and prints which test noticed it: first
the recorded call ("call:") or the tests ("stage:") that mutants.txt names, then others on the PTX interpreter, then, where
those noticed nothing, in the emulator. Fails where a mistake survives that mutants.txt does not expect to, or where an expected survivor is
noticed after all. --quick makes only those that have a call, and replays it alone; it says SKIP where NVRTC is
missing."""

import argparse
import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
CALLS = ["pmx/003", "pmx/004", "pmx/017", "pmx/028", "pmx/037", "pmx/049", "pmx/060", "rules/all", "types/bf16",
         "types/int8"]
NEEDED = ("file", "old", "new", "why")
FIELDS = NEEDED + ("call", "stage", "expect")
SURVIVES = "survives"
NOT_COMPILED = "KVJIT_COMPILE_FAILED"
NO_NVRTC = "NVRTC, which compiles CUDA kernels, can't be opened"


def read_mutants(path):
    """Blocks of "field: text"; a text goes on in lines that begin with no field's name. Lines before a block's first
    field that begin with # are comments."""
    mutants = []
    for block in path.read_text().split("\n\n"):
        mutant, field = {}, None
        for line in block.splitlines():
            name, colon, rest = line.partition(": ")
            if line.startswith("#") and field is None:
                continue
            if colon and name in FIELDS:
                field = name
                mutant[field] = rest
            elif field is None:
                sys.exit(f"{path.name}: {line!r} begins with no field's name, of {', '.join(FIELDS)}")
            else:
                mutant[field] += "\n" + line
        if mutant:
            mutants.append(checked(mutant, path.name))
    return mutants


def checked(mutant, name):
    """The mutant; ends the program where it lacks a field, or makes no mistake."""
    lacks = [field for field in NEEDED if field not in mutant or not (mutant[field] or field == "new")]
    if lacks:
        sys.exit(f"{name}: {mutant} has no {', '.join(lacks)}")
    if mutant["old"] == mutant["new"]:
        sys.exit(f"{name}: {mutant['why']}: old and new are the same")
    if not mutant.get("expect", SURVIVES).startswith(SURVIVES):
        sys.exit(f"{name}: {mutant['why']}: expect begins with {SURVIVES!r}, not {mutant['expect']!r}")
    return mutant


PTX = {"PTX_MACHINE": "multiprocessors=132"}
HOPPER = {"PTX_MACHINE": "capability=9.0,multiprocessors=132"}


def files_of(calls):
    files = {call: sorted((ROOT / "tests/golden").glob(call + "*")) for call in calls}
    for call, found in files.items():
        if not found:
            sys.exit(f"tests/golden has no call {call}")
    return [str(path) for found in files.values() for path in found]


def on_ptx(build):
    return [str(HERE / "on_ptx.sh"), "--libraries", str(build / "tests/ptx/lib")]


def replay(build, calls, target):
    return [str(build / "kvjit"), "replay", "--quiet", "--target", target] + files_of(calls)


def of_warpgroups(mutant):
    return "wgmma" in mutant["file"] or "warpgroup" in mutant["file"]


def named_call(build, mutant):
    machine = HOPPER if of_warpgroups(mutant) else PTX
    return (mutant["call"], on_ptx(build) + replay(build, [mutant["call"]], "cuda"), machine)


def warpgroup_stages(build):
    """Those of stages() that notice anything of warpgroups."""
    conformance = build / "tests/conformance/kvjit_conformance"
    long_rows = ["-tc=random calls that tensor cores*"]
    splits = ["-tc=few rows see many keys,*NaN*,*before a window are not touched"]
    return [
        ("ptx: warpgroups", on_ptx(build) + replay(build, ["pmx/048"], "cuda"), HOPPER),
        ("ptx: random warpgroups", on_ptx(build) + [conformance, "--target", "cuda"] + long_rows, HOPPER),
        ("ptx: splits", on_ptx(build) + [conformance, "--target", "cuda"] + splits, HOPPER),
        ("emulator: warpgroups", [conformance, "--target", "cuda-emulated+wgmma"] + long_rows, {}),
    ]


def stages(build):
    """(name, command, environment) of the tests, the quickest first."""
    conformance, device = build / "tests/conformance/kvjit_conformance", build / "tests/gpu/kvjit_gpu_test"
    random = ["-tc=random calls*", "--shard", "4/20"]
    edges = ["-tc=a negative softmax_scale,a mask hides*,a sink beside*,float32 scales*,quantised decode*"]
    relayouts = ["-tc=relayouts: threads*"]
    pieces = ["-tc=relayouts between layouts that cut*,*in pieces as in whole rows,*makes of whole rows"]
    sequences = ["-tc=more sequences than*"]
    long_rows = ["-tc=few rows of many elements*"]
    windows = ["-tc=*before a window are not touched"]
    parts = ["-tc=attention over parts of the keys*,Merge over a tensor that lacks*"]
    plans = ["-tc=the plan's own choice*,one plan serves*,a bad entry is found wherever*"]
    nan = ["-tc=a NaN or an infinity in a value reaches*,a NaN in a visible query or key*,a NaN lse*,"
           "a NaN in the output of a part*"]
    return [
        ("ptx: recorded calls", on_ptx(build) + replay(build, CALLS, "cuda"), PTX),
        ("ptx: rows before keys", on_ptx(build) + [conformance, "--target", "cuda", "--case", "116"], PTX),
        ("ptx: conformance", on_ptx(build) + [conformance, "--target", "cuda"] + random, PTX),
        ("ptx: device tests", on_ptx(build) + [device, "--target", "cuda"] + plans, PTX),
        ("ptx: Merge", on_ptx(build) + [conformance, "--target", "cuda"] + parts, PTX),
        ("ptx: NaN", on_ptx(build) + [conformance, "--target", "cuda"] + nan, PTX),
        ("ptx: long rows", on_ptx(build) + [conformance, "--target", "cuda"] + long_rows, PTX),
        ("ptx: many sequences", on_ptx(build) + [conformance, "--target", "cuda"] + sequences, PTX),
        ("ptx: windows", on_ptx(build) + [conformance, "--target", "cuda"] + windows, PTX),
        ("ptx: pieces", on_ptx(build) + [conformance, "--target", "cuda"] + pieces, PTX),
        ("emulator: recorded calls", replay(build, CALLS, "cuda-emulated"), {}),
        ("emulator: conformance", [conformance, "--target", "cuda-emulated"] + random, {}),
        ("emulator: long rows", [conformance, "--target", "cuda-emulated"] + long_rows, {}),
        ("emulator: edges", [conformance, "--target", "cuda-emulated"] + edges, {}),
        ("emulator: relayouts", [conformance, "--target", "cuda-emulated"] + relayouts, {}),
    ]


def candidates_of(mutant, build, quick):
    """The stages that may notice the mistake, in the order in which they are tried: the one that it names first."""
    named = [named_call(build, mutant)] if "call" in mutant else []
    if quick:
        return named
    others = warpgroup_stages(build) if of_warpgroups(mutant) else stages(build)
    if "stage" in mutant and mutant["stage"] not in (name for name, _, _ in others):
        sys.exit(f"mutants.txt: {mutant['why']}: there is no stage {mutant['stage']!r}")
    return named + sorted(others, key=lambda stage: stage[0] != mutant.get("stage"))


def mutated(mutant):
    """The template's text with the mistake."""
    text = (ROOT / "templates" / mutant["file"]).read_text()
    if mutant["old"] not in text:
        sys.exit(f"mutants.txt: {mutant['file']} has no text {mutant['old']!r}")
    return text.replace(mutant["old"], mutant["new"], 1)


def run(stage, folder):
    """What the stage's command returns, or None where it does not end; what it prints."""
    _, command, options = stage
    environment = dict(os.environ, KVJIT_TEMPLATE_DIR=str(folder / "templates"), KVJIT_CACHE_DIR=str(folder / "cache"),
                       **options)
    try:
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=900,
                              check=False, text=True, errors="replace")
        return done.returncode, done.stdout
    except subprocess.TimeoutExpired:
        return None, ""


class Wrong(Exception):
    """Why the mistakes say nothing: one doesn't compile, or a test fails without any."""


def copy_of_templates(folder):
    shutil.copytree(ROOT / "templates", pathlib.Path(folder) / "templates")
    return pathlib.Path(folder)


def first_to_notice(mutant, candidates):
    """The first of the stages that fails with the mistake; "" where none does."""
    with tempfile.TemporaryDirectory() as folder:
        folder = copy_of_templates(folder)
        (folder / "templates" / mutant["file"]).write_text(mutated(mutant))
        for stage in candidates:
            code, error = run(stage, folder)
            if NOT_COMPILED in error:
                raise Wrong(f"mutants.txt: {mutant['why']}: that doesn't compile:\n{error}")
            if code != 0:
                return stage[0] + (" (it does not end)" if code is None else "")
    return ""


def without_mistake(candidates, pool):
    """Raises Wrong where one of the stages fails on the templates as they are: it would "notice" anything. Whether NVRTC
    is there."""
    with tempfile.TemporaryDirectory() as folder:
        folder = copy_of_templates(folder)
        for stage, (code, error) in zip(candidates, pool.map(lambda stage: run(stage, folder), candidates)):
            if NO_NVRTC in error:
                return False
            if code != 0:
                raise Wrong(f"{stage[0]} fails without any mistake:\n{error}")
    return True


def surprises_of(mutants, candidates, pool):
    """Prints what noticed each mistake; how many are unlike what mutants.txt expects."""
    surprises = 0
    for mutant, noticed in zip(mutants, pool.map(first_to_notice, mutants, candidates)):
        surprise = bool(noticed) == ("expect" in mutant)
        surprises += surprise
        print(f"{'! ' if surprise else '  '}{noticed or 'survives':26} {mutant['file']}: {mutant['why']}", flush=True)
    return surprises


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--only", default="", help="mutants whose reason or file has this text")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="how many at a time (default: as many as CPUs)")
    parser.add_argument("--quick", action="store_true", help="only mutants that name a call, and only that call")
    parser.add_argument("--check", action="store_true", help="only look whether the templates still have the texts")
    arguments = parser.parse_args()
    mutants = [m for m in read_mutants(HERE / "mutants.txt") if arguments.only in m["why"] + m["file"]]
    if arguments.quick:
        mutants = [m for m in mutants if "call" in m]
    if not mutants:
        sys.exit("mutants.txt: no mistake is asked for")
    if arguments.check:
        for mutant in mutants:
            mutated(mutant)
            files_of([mutant["call"]] if "call" in mutant else [])
            candidates_of(mutant, arguments.build, False)
        return 0
    candidates = [candidates_of(m, arguments.build.resolve(), arguments.quick) for m in mutants]
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        try:
            if not without_mistake(list({repr(stage): stage for some in candidates for stage in some}.values()), pool):
                print(f"SKIP: {NO_NVRTC}")
                return 0
            return 1 if surprises_of(mutants, candidates, pool) else 0
        except Wrong as wrong:
            pool.shutdown(cancel_futures=True)
            sys.exit(str(wrong))


if __name__ == "__main__":
    sys.exit(main())
