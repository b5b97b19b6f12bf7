"""The files of mistakes: blocks of "field: text". A text goes on in lines that begin with no field's name. Lines before
a block's first field that begin with # are comments.

    file, old, new   the template, and the text that is replaced
    why              what is wrong then
    call             a recorded call that notices it alone, which the test suite replays
    stage            "DEVICE: TEST", one of the tests of stages.py that does
    expect           "survives: ", and why nothing can notice it"""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
FILES = {"cpu": HERE / "cpu.txt", "cuda": HERE / "cuda.txt"}
NEEDED = ("file", "old", "new", "why")
FIELDS = NEEDED + ("call", "stage", "expect")
SURVIVES = "survives"


def read(backend):
    """A backend's mistakes, as dictionaries of their fields and of "backend"."""
    path = FILES[backend]
    found = []
    for block in path.read_text().split("\n\n"):
        mistake, field = {}, None
        for line in block.splitlines():
            name, colon, rest = line.partition(":")
            if line.startswith("#") and field is None:
                continue
            if colon and name in FIELDS:
                field = name
                mistake[field] = rest.removeprefix(" ")
            elif field is None:
                sys.exit(f"{path.name}: {line!r} begins with no field's name, of {', '.join(FIELDS)}")
            else:
                mistake[field] += "\n" + line
        if mistake:
            found.append(dict(checked(mistake, path.name), backend=backend))
    return found


def checked(mistake, name):
    """The mistake; ends the program where it lacks a field, or changes nothing."""
    lacks = [field for field in NEEDED if field not in mistake or not (mistake[field] or field == "new")]
    if lacks:
        sys.exit(f"{name}: {mistake} has no {', '.join(lacks)}")
    if mistake["old"] == mistake["new"]:
        sys.exit(f"{name}: {mistake['why']}: old and new are the same")
    if not mistake.get("expect", SURVIVES).startswith(SURVIVES):
        sys.exit(f"{name}: {mistake['why']}: expect begins with {SURVIVES!r}, not {mistake['expect']!r}")
    return mistake


def template_with(mistake):
    """The template's text with the mistake in place of the first text that it replaces."""
    text = (ROOT / "templates" / mistake["file"]).read_text()
    if mistake["old"] not in text:
        sys.exit(f"{FILES[mistake['backend']].name}: {mistake['file']} has no text {mistake['old']!r}")
    return text.replace(mistake["old"], mistake["new"], 1)
