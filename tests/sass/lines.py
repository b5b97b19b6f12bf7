"""Which lines of the templates the instructions of a tile are from."""

import re
from collections import Counter, defaultdict

_FRAME = re.compile(r'^\s*//## File "(?:.*/)?templates/([^"]+)", line (\d+)')
_ADDRESS = re.compile(r"^\s+/\*([0-9a-f]+)\*/")
_PRIMITIVES = "cuda/machine/"  # who calls them is what matters


def lines_of(text):
    """{address: "cuda/attend/work.h:26"} of nvdisasm's output with lines (-gi): for each instruction the innermost line
    that is not a primitive's."""
    found, frames, is_new = {}, [], True
    for line in text.splitlines():
        frame, address = _FRAME.match(line), _ADDRESS.match(line)
        if frame:
            frames = [*([] if is_new else frames), f"{frame.group(1)}:{frame.group(2)}"]
            is_new = False
        elif address:
            own = [each for each in frames if not each.startswith(_PRIMITIVES)] or frames
            found[int(address.group(1), 16)] = own[0] if own else "no line"
            is_new = True
    return found


def report(counts, lines):
    """A line of text for each of the templates': how many instructions of a tile it is, and which, most first."""
    by_line = defaultdict(Counter)
    for each, times in counts.items():
        by_line[lines[each.address]][each.opcode] += times
    for line, opcodes in sorted(by_line.items(), key=lambda item: (-sum(item[1].values()), item[0])):
        named = ", ".join(f"{times} {opcode}" for opcode, times in opcodes.most_common())
        yield f"{sum(opcodes.values()):5}  {line:40} {named}"
