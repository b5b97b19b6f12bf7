"""The orchestrator's side of the line protocol of driver.py, and of limits.cc's."""

import json
import os
import subprocess


class Ended(Exception):
    """The process is no more; the text says how it ended."""


class _Lines:
    """A process that answers lines with lines. Its errors go to a log."""

    def __init__(self, command, log, environment=None):
        with open(log, "w", encoding="utf-8") as errors:
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
                                            text=True, env=environment)

    @property
    def pid(self):
        return self.process.pid

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            raise Ended(how_it_ended(self.process.wait()))
        return json.loads(line)

    def ask(self, line):
        try:
            print(line, file=self.process.stdin, flush=True)
        except BrokenPipeError:
            pass  # read() says how it ended
        return self.read()

    def close(self):
        """Ends it: its input is over."""
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


def how_it_ended(status):
    return f"its process ended with signal {-status}" if status < 0 else f"its process ended with status {status}"


def environment(threads, folder):
    """Of drivers: as many threads for every engine, and kvjit's kernels not in the user's own cache."""
    count = str(threads)
    return os.environ | {"OMP_NUM_THREADS": count, "MKL_NUM_THREADS": count, "OPENBLAS_NUM_THREADS": count,
                         "KVJIT_CACHE_DIR": os.path.join(folder, "kernels")}


class Driver:
    """A peer's process. `lacks` is None, or why there is no such peer; then nothing else may be asked."""

    def __init__(self, name, command, log, env):
        self.name, self.lines, self.lacks = name, _Lines(command, log, env), None
        hello = self._answer(self.lines.read)
        self.lacks = hello.get("lacks")
        self.version, self.notes = hello.get("version"), hello.get("notes", [])
        self.variants = hello.get("variants", [])

    @property
    def pid(self):
        return self.lines.pid

    def _answer(self, read):
        try:
            return read()
        except (Ended, json.JSONDecodeError) as error:
            self.lacks = str(error)
            return {"lacks": self.lacks}

    def ask(self, do, **request):
        """The answer; {"lacks": why} where the peer can't."""
        if self.lacks:
            return {"lacks": self.lacks}
        return self._answer(lambda: self.lines.ask(json.dumps({"do": do} | request)))

    def close(self):
        self.lines.close()


class Limits:
    """The process that measures what the machine can do."""

    lacks = None
    def __init__(self, command, log):
        self.lines = _Lines(command, log)
        self.units = self.lines.read()

    @property
    def pid(self):
        return self.lines.pid

    def measure(self, name):
        return self.lines.ask(name)

    def close(self):
        self.lines.close()
