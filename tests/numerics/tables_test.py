#!/usr/bin/env python3
"""Holds the tables of docs/numerics.md to what is measured: tables_test.py KVJIT_NUMERICS NUMERICS.MD cpu|gpu

Each table is of one target. Tables of targets that this machine can't run are said and left out; 77 where no table is
left."""

import subprocess
import sys

TARGETS = {"products of float32": "x86-64-v4", "pairs of bfloat16": "x86-64-v4-bf16+sse4a",
           "products of bytes": "x86-64-v4-vnni", "AMX": "x86-64-v3+amx-emulated",
           "GPUs, emulated": "cuda-emulated"}
SKIPPED = 77


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def written_rows(page):
    """(target, kernel) -> errors, by the first cell of the table's head."""
    rows, target = {}, None
    for line in page.splitlines():
        if not line.startswith("|"):
            target = None
        elif target is None:
            target = TARGETS[cells(line)[0]]
        elif not line.startswith("|---"):
            kernel, *errors = cells(line)
            rows[target, kernel] = errors
    return rows


def measured_rows(tool, target):
    """kernel -> errors, and what the tool said; no rows where the machine can't run the target."""
    done = subprocess.run([tool, target], capture_output=True, text=True, check=False)
    rows = {}
    for line in done.stdout.splitlines()[2:]:
        kernel, _, *errors = cells(line)
        rows[kernel] = errors
    if done.returncode != 0 and rows:
        sys.exit(f"{target}: {done.stderr}")
    return rows, done.stderr


def main():
    tool, page, kind = sys.argv[1:]
    targets = [each for each in TARGETS.values() if each.startswith("cuda") == (kind == "gpu")]
    with open(page, encoding="utf-8") as file:
        written = written_rows(file.read())
    missing = set(TARGETS.values()) - {target for target, _ in written}
    if missing:
        sys.exit(f"{page} has no table of {', '.join(sorted(missing))}")
    differences = measured = 0
    for target in targets:
        rows, said = measured_rows(tool, target)
        if not rows:
            print(f"SKIP {target}: {said.splitlines()[0] if said else 'no rows'}")
            continue
        measured += 1
        for (of, kernel), errors in written.items():
            if of == target and rows.get(kernel) != errors:
                differences += 1
                print(f"{target}, {kernel}:\n  written   {errors}\n  measured  {rows.get(kernel)}")
    if differences:
        sys.exit(f"{page}: {differences} lines differ")
    return 0 if measured else SKIPPED


if __name__ == "__main__":
    sys.exit(main())
