"""What GPUs were measured to reach: measured/*.txt, a file a GPU, each a measured.txt of run_all.sh's step `specs`."""

import os
from typing import NamedTuple

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "measured")


class Wrong(Exception):
    """A file isn't what it should be."""


class Call(NamedTuple):
    """One program's."""
    seconds: float
    bytes: int
    operations: int

    def rate(self, program):
        """A second: bytes of decode, operations of prefill."""
        return (self.bytes if program == "decode" else self.operations) / self.seconds


def _call(words):
    """The program's name and its Call. Raises ValueError."""
    spec, program, microseconds, moved, operations = words
    if program not in ("decode", "prefill") or not float(microseconds) > 0:
        raise ValueError
    return f"{spec}.{program}", Call(float(microseconds) / 1e6, int(moved), int(operations))


def _calls(path):
    """{program's name: Call} of a file."""
    with open(path, encoding="utf-8") as file:
        lines = [line.strip() for line in file if line.strip() and not line.startswith("#")]
    calls = {}
    for line in lines:
        try:
            name, call = _call(line.split())
        except ValueError as error:
            raise Wrong(f"{path}: '{line}' is not: spec, decode or prefill, microseconds, bytes, operations") from error
        calls[name] = call
    return calls


def read(gpus, folder=FOLDER):
    """{(GPU's name, program's name): Call}. gpus: the names there are; a file's is one of them, in small letters."""
    known = {gpu.lower() + ".txt": gpu for gpu in gpus}
    files = [name for name in sorted(os.listdir(folder)) if name.endswith(".txt")] if os.path.isdir(folder) else []
    found = {}
    for name in files:
        path = os.path.join(folder, name)
        if name not in known:
            raise Wrong(f"{path} has the name of no GPU: {', '.join(known)}")
        found |= {(known[name], program): call for program, call in _calls(path).items()}
    return found
