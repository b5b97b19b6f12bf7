"""The recorded figures: budgets.txt, a line a program and architecture."""

import os

from figures import PIPES, Figures, TileFigures

FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "budgets.txt")
_MAKER = "# Made by "
_COLUMNS = ("arch", "program", "regs", "local", "code", "smem", "warps", "keys", "rows", "insns", *PIPES,
            "waves", "flight", "copies", "trips", "bytes", "ops", "groups", "alone")
_EXPLAINED = """\
# What ptxas makes of kvjit's kernels, by ./dev sass --record; docs/gpu_model.md says what columns mean. A program that
# several specs have goes by the name of the first.
"""
_NOTHING = "-"


def _row(key, figures):
    tile = figures.tile
    words = [*key, *figures[:5]]
    if tile:
        words += [tile.keys, tile.rows, tile.instructions, *tile.pipes, *tile[4:]]
    return [str(word) for word in words] + [_NOTHING] * (len(_COLUMNS) - len(words))


def text_of(figures, maker):
    """{(architecture, name): Figures} as the file has it."""
    rows = [_COLUMNS, *(_row(key, each) for key, each in figures.items())]
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = ["  ".join(word.ljust(width) if at < 2 else word.rjust(width)
                       for at, (word, width) in enumerate(zip(row, widths))) for row in rows]
    return _EXPLAINED + f"{_MAKER}{maker}\n" + "\n".join(lines) + "\n"


def _figures(words):
    numbers = [int(word) for word in words if word != _NOTHING]
    if len(numbers) == 5:
        return Figures(*numbers, None)
    end = 8 + len(PIPES)
    return Figures(*numbers[:5], TileFigures(*numbers[5:8], tuple(numbers[8:end]), *numbers[end:]))


def read(path=FILE):
    """What the file has, and what made it."""
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    maker = next(line.removeprefix(_MAKER) for line in lines if line.startswith(_MAKER))
    rows = [line.split() for line in lines if not line.startswith("#")][1:]
    return {(row[0], row[1]): _figures(row[2:]) for row in rows}, maker


# ---- Comparing -----------------------------------------------------------------------------------------------------


def _differences(recorded, measured):
    before, after = (_row(("", ""), each)[2:] for each in (recorded, measured))
    return ", ".join(f"{name} {was} -> {now}" for name, was, now in zip(_COLUMNS[2:], before, after) if was != now)


def spilling(measured):
    """Lines that name programs with spills: recording them makes them no better."""
    return [f"{arch} {name}: {each.spills} loads and stores of local memory" for (arch, name), each in measured.items()
            if each.spills]


# Shared memory of 100 KiB holds one stage for each of two blocks: scales of 2 bytes are stored as soon as they are loaded.
_MAY_WAIT = {("sm_86", "int8row-d256.decode"), ("sm_89", "int8row-d256.decode")}


def waiting(measured):
    """Lines that name programs whose warps wait for copies through registers."""
    return [f"{arch} {name}: {each.tile.copies} copies for which a warp waits"
            for (arch, name), each in measured.items()
            if each.tile and each.tile.copies and (arch, name) not in _MAY_WAIT]


# What a warp may issue for 16 keys, where the memory is fast enough for instructions to bound decode. float16 and int4 are
# far below; these are the aims, not what was reached.
_MOST = {"f16-d128.decode": 400, "int8row-d128.decode": 330, "int8g8-d128.decode": 500, "int4g32-d128.decode": 560}
_MOST_ON = "sm_90a"


def crowded(measured):
    """Lines that name decode programs with more instructions for 16 keys than they may have."""
    lines = []
    for (arch, name), each in measured.items():
        if arch == _MOST_ON and name in _MOST:
            instructions = each.tile.instructions * 16 / each.tile.keys
            if instructions > _MOST[name]:
                lines.append(f"{arch} {name}: {instructions:g} instructions for 16 keys, {_MOST[name]} at most")
    return lines


def differing(recorded, measured, all_measured):
    """Lines that tell what isn't as recorded; all_measured: whether what wasn't measured doesn't exist."""
    lines = [f"{arch} {name}: is no more" for arch, name in recorded if all_measured and (arch, name) not in measured]
    for key, each in measured.items():
        if key not in recorded:
            lines.append(f"{' '.join(key)}: not recorded")
        elif recorded[key] != each:
            lines.append(f"{' '.join(key)}: {_differences(recorded[key], each)}")
    return lines
