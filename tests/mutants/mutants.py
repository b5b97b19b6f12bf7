#!/usr/bin/env python3
"""Whether tests notice mistakes: mutants.py [cpu | cuda] [--build FOLDER] [--only TEXT] [--jobs N] [--quick | --check]

Runs tests against copies of the templates, each with one mistake of cpu.txt or cuda.txt, and prints which test
noticed it: first the recorded call ("call:") or the test ("stage:") that the mistake names, then others. Fails where
a mistake survives that isn't expected to, or where an expected survivor is noticed after all. --quick makes only
those that have a call, and replays it alone. Mistakes whose tests can't run here are skipped: for want of NVRTC, or
of a CPU's features."""

import argparse
import concurrent.futures
import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading

import mistakes
from stages import stages_of

NOT_COMPILED = "KVJIT_COMPILE_FAILED"
NOT_HERE = ("NVRTC, which compiles CUDA kernels, can't be opened", "this machine lacks its feature")
NO_TEST = re.compile(r"test cases: +0 ")
SECONDS = 900
SKIPPED = 77


def run(stage, folder):
    """What the stage's command returns, or None where it does not end; what it prints."""
    environment = dict(os.environ, KVJIT_TEMPLATE_DIR=str(folder / "templates"), KVJIT_CACHE_DIR=str(folder / "cache"),
                       **stage.environment)
    try:
        done = subprocess.run(stage.command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=SECONDS, check=False, text=True, errors="replace")
        return done.returncode, done.stdout
    except subprocess.TimeoutExpired:
        return None, ""


class Wrong(Exception):
    """Why the mistakes say nothing: one doesn't compile, or a test fails without any."""


def link(source, target):
    """A file of the cache may be gone that was there when its folder was read."""
    with contextlib.suppress(FileNotFoundError):
        os.link(source, target)


class Original:
    """The templates as they are, and the kernels that the tests made of them."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        shutil.copytree(mistakes.ROOT / "templates", self.folder / "templates")
        (self.folder / "cache").mkdir()
        self.served = {}
        self.locks = {}

    def serves(self, stage):
        """Whether the stage runs on this machine. Raises Wrong where it fails without a mistake: it would "notice"
        anything."""
        with self.locks.setdefault(stage.name, threading.Lock()):
            if stage.name not in self.served:
                code, said = run(stage, self.folder)
                reason = next((line for line in said.splitlines() if any(text in line for text in NOT_HERE)), None)
                if code is None:
                    raise Wrong(f"{stage.name} does not end without any mistake")
                if code != 0 and reason is None:
                    raise Wrong(f"{stage.name} fails without any mistake:\n{said}")
                if NO_TEST.search(said):
                    raise Wrong(f"{stage.name} is of no test that there is")
                self.served[stage.name] = code == 0
                if code != 0:
                    print(f"SKIP: {stage.name}: {reason.strip()}", flush=True)
            return self.served[stage.name]

    def copy_with(self, mistake, folder):
        """A copy in which kernels whose templates lack the mistake are the original's."""
        shutil.copytree(self.folder, folder, copy_function=link, dirs_exist_ok=True)
        template = folder / "templates" / mistake["file"]
        template.unlink()
        template.write_text(mistakes.template_with(mistake))


def first_to_notice(mistake, candidates, original):
    """The name of the first stage that fails with the mistake; "" where none does, None where one that might doesn't run
    here."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        copied = skipped = False
        for stage in candidates:
            if not original.serves(stage):  # asked as late as may be: it takes long
                skipped = True
                continue
            if not copied:
                original.copy_with(mistake, folder)
                copied = True
            code, said = run(stage, folder)
            if NOT_COMPILED in said:
                raise Wrong(f"{mistake['why']}: that doesn't compile:\n{said}")
            if code != 0:
                return stage.name + (" (it does not end)" if code is None else "")
    return None if skipped else ""


def make(made, candidates, jobs):
    """Makes each of the mistakes and prints what noticed it. The exit status: 0, 1 where something is unlike what the
    files expect, 77 where all of them are skipped."""
    surprises = tried = 0
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        original = Original(folder)
        try:
            for mistake, noticed in zip(made, pool.map(lambda *job: first_to_notice(*job, original), made, candidates)):
                surprise = noticed is not None and bool(noticed) == ("expect" in mistake)
                surprises += surprise
                tried += noticed is not None
                said = "skipped" if noticed is None else noticed or "survives"
                print(f"{'! ' if surprise else '  '}{said:26} {mistake['file']}: {mistake['why']}", flush=True)
        except Wrong:
            pool.shutdown(cancel_futures=True)
            raise
    return 1 if surprises else 0 if tried else SKIPPED


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("backend", nargs="?", choices=mistakes.FILES, help="whose templates (default: both)")
    parser.add_argument("--build", type=pathlib.Path, default=mistakes.ROOT / "build")
    parser.add_argument("--only", default="", help="mistakes whose reason or file has this text")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="how many at a time (default: one a CPU)")
    parser.add_argument("--quick", action="store_true", help="only mistakes that name a call, and only that call")
    parser.add_argument("--check", action="store_true", help="only look whether templates, calls and tests are there")
    arguments = parser.parse_args()
    backends = [arguments.backend] if arguments.backend else list(mistakes.FILES)
    made = [m for backend in backends for m in mistakes.read(backend) if arguments.only in m["why"] + m["file"]]
    if arguments.quick:
        made = [m for m in made if "call" in m]
    if not made:
        sys.exit("no mistake is asked for")
    candidates = [stages_of(m, arguments.build.resolve())[:1 if arguments.quick else None] for m in made]
    if arguments.check:
        for mistake in made:
            mistakes.template_with(mistake)
        return 0
    try:
        return make(made, candidates, arguments.jobs)
    except Wrong as wrong:
        sys.exit(str(wrong))


if __name__ == "__main__":
    sys.exit(main())
