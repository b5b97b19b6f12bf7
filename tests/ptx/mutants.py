#!/usr/bin/env python3
"""Whether tests notice mistakes: mutants.py [--build FOLDER] [--only TEXT] [--check]

Runs tests against copies of the templates, each with one mistake of mutants.txt, and prints which test noticed it: first
on the PTX interpreter, then, where that noticed nothing, in the emulator. Fails where a mistake survives that
mutants.txt does not expect to, or where an expected survivor is noticed after all."""

import argparse
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
FIELDS = ("file", "old", "new", "why", "expect")


def read_mutants(path):
    """Blocks of "field: text"; a text goes on in lines that begin with no field's name."""
    mutants = []
    for block in path.read_text().split("\n\n"):
        mutant, field = {}, None
        for line in block.splitlines():
            name, colon, rest = line.partition(": ")
            if line.startswith("#"):
                continue
            if colon and name in FIELDS:
                field = name
                mutant[field] = rest
            else:
                mutant[field] += "\n" + line
        if mutant:
            mutants.append(mutant)
    return mutants


def calls():
    return [str(path) for call in CALLS for path in sorted((ROOT / "tests/golden").glob(call + "*"))]


def stages(build):
    """(name, command, environment) of the tests, the quickest first."""
    tool, conformance = build / "kvjit", build / "tests/conformance/kvjit_conformance"
    device = build / "tests/gpu/kvjit_gpu_test"
    on_ptx = [str(HERE / "on_ptx.sh"), "--libraries", str(build / "tests/ptx/lib")]
    ptx = {"PTX_MACHINE": "multiprocessors=132"}
    random = ["-tc=random calls*", "--shard", "4/20"]
    edges = ["-tc=a negative softmax_scale,a mask hides*,quantised decode*"]
    nan = ["-tc=a NaN or an infinity in a value reaches*,a NaN in a visible query or key*"]
    return [
        ("ptx: recorded calls", on_ptx + [tool, "replay", "--quiet", "--target", "cuda"] + calls(), ptx),
        ("ptx: rows before keys", on_ptx + [conformance, "--target", "cuda", "--case", "116"], ptx),
        ("ptx: conformance", on_ptx + [conformance, "--target", "cuda"] + random, ptx),
        ("ptx: device tests", on_ptx + [device, "--target", "cuda", "-tc=the plan's own choice*,one plan serves*"], ptx),
        ("ptx: NaN", on_ptx + [conformance, "--target", "cuda"] + nan, ptx),
        ("emulator: recorded calls", [tool, "replay", "--quiet", "--target", "cuda-emulated"] + calls(), {}),
        ("emulator: conformance", [conformance, "--target", "cuda-emulated"] + random, {}),
        ("emulator: long rows", [conformance, "--target", "cuda-emulated", "-tc=few rows of many elements*"], {}),
        ("emulator: edges", [conformance, "--target", "cuda-emulated"] + edges, {}),
    ]


def mutated(mutant):
    """The template's text with the mistake."""
    text = (ROOT / "templates" / mutant["file"]).read_text()
    if mutant["old"] not in text:
        sys.exit(f"mutants.txt: {mutant['file']} has no text {mutant['old']!r}")
    return text.replace(mutant["old"], mutant["new"], 1)


def first_to_notice(mutant, build, folder):
    """The first stage that fails; "" where none does."""
    templates = folder / "templates"
    shutil.rmtree(templates, ignore_errors=True)
    shutil.copytree(ROOT / "templates", templates)
    (templates / mutant["file"]).write_text(mutated(mutant))
    for name, command, options in stages(build):
        environment = dict(os.environ, KVJIT_TEMPLATE_DIR=str(templates), KVJIT_CACHE_DIR=str(folder / "cache"), **options)
        try:
            done = subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                  timeout=900, check=False)
            if done.returncode != 0:
                return name
        except subprocess.TimeoutExpired:
            return name + " (it does not end)"
    return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--only", default="", help="mutants whose reason or file has this text")
    parser.add_argument("--check", action="store_true", help="only look whether the templates still have the texts")
    arguments = parser.parse_args()
    surprises = 0
    mutants = [m for m in read_mutants(HERE / "mutants.txt") if arguments.only in m["why"] + m["file"]]
    if arguments.check:
        for mutant in mutants:
            mutated(mutant)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        for mutant in mutants:
            noticed = first_to_notice(mutant, arguments.build.resolve(), pathlib.Path(folder))
            surprise = bool(noticed) == ("expect" in mutant)
            surprises += surprise
            print(f"{'! ' if surprise else '  '}{noticed or 'survives':26} {mutant['file']}: {mutant['why']}", flush=True)
    return 1 if surprises else 0


if __name__ == "__main__":
    sys.exit(main())
