"""Output for people: colour and a progress bar on a terminal, plain lines elsewhere."""

import os
import shutil
import sys

_BAR = 24


def on_terminal(stream=None):
    return (stream or sys.stdout).isatty() and os.environ.get("TERM", "dumb") != "dumb"


def bold(text):
    return f"\033[1m{text}\033[0m" if on_terminal() and not os.environ.get("NO_COLOR") else text


def say(text=""):
    """A line that stays."""
    clear()
    print(text, flush=True)


def clear():
    if on_terminal():
        print("\r\033[K", end="", flush=True)


class Progress:
    """How many of `total` steps are done; nothing where there is no terminal."""

    def __init__(self, total):
        self.total, self.done = max(1, total), 0

    def step(self, text):
        """Shows what begins now."""
        if on_terminal():
            filled = _BAR * min(self.done, self.total) // self.total
            line = f"[{'#' * filled}{'.' * (_BAR - filled)}] {text}"
            print("\r\033[K" + line[: shutil.get_terminal_size().columns - 1], end="", flush=True)
        self.done += 1

    def skip(self, steps):
        self.done += steps
