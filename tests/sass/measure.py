"""What is measured of a kernel: a Figures."""

import re
from collections import Counter
from typing import NamedTuple

from listing import disassemble, read_blocks
from loops import TileCounter, tile_loop
from pipes import PIPES, copied_bytes, is_float_product, is_tensor, pipe_of, wavefronts
from tiles import Tile, constants_of

_REGISTER = re.compile(r"\bR(\d+)")
_HANDS_ON = ("MOV", "IMAD", "PRMT", "SEL")  # what may stand between a load and the store of its value
_WORDS = {"64": 2, "128": 4}
ATTENTION = ("decode", "prefill")  # programs with a tile


class TileFigures(NamedTuple):
    """Of one tile of keys, of one warp."""
    keys: int
    rows: int          # of queries, which exist
    instructions: int
    pipes: tuple       # of these, by pipe: pipes.PIPES
    waves: int         # cycles of shared memory
    flight: int        # bytes of copies that are on their way when the loop waits for some of them
    copies: int        # loads whose value is stored to shared memory: copies that are not in the background
    trips: int         # waits for a load in the same tile
    cache_bytes: int   # that the tile's keys and values have
    operations: int    # floating-point operations that its rows need


class Figures(NamedTuple):
    registers: int
    local: int         # instructions that load or store local memory: spills
    code: int          # bytes
    shared: int        # bytes a block
    warps: int         # of a multiprocessor
    tile: TileFigures  # None but for attention


def measure(nvdisasm, kernel):
    blocks = read_blocks(disassemble(nvdisasm, kernel.cubin))
    summary = kernel.summary
    local = sum(each.opcode in ("LDL", "STL") for block in blocks for each in block.instructions)
    tile = _tile_figures(kernel, blocks) if kernel.program in ATTENTION else None
    return Figures(summary["registers"], local, summary["code_bytes"], _shared_bytes(summary),
                   summary["occupancy"]["warps"], tile)


def _shared_bytes(summary):
    return summary["static_shared_bytes"] + summary["dynamic_shared_bytes"]


def count_tile(kernel, blocks):
    """A program's tile, and how often each instruction runs for it."""
    constants = constants_of(kernel.identity)
    is_product = is_tensor if constants["variant"] == "mma" else is_float_product
    loop = tile_loop(blocks, is_product)
    products = sum(is_tensor(each) for number in loop.blocks for each in blocks[number].instructions)
    tile = Tile(kernel.program, constants, _shared_bytes(kernel.summary), products)
    return tile, TileCounter(blocks, is_product, tile).count(loop)


def _tile_figures(kernel, blocks):
    tile, counts = count_tile(kernel, blocks)
    pipes = Counter()
    for each, times in counts.items():
        pipes[pipe_of(each)] += times
    return TileFigures(tile.keys, tile.rows, sum(counts.values()), tuple(pipes[each] for each in PIPES),
                       sum(wavefronts(each) * times for each, times in counts.items()), _bytes_in_flight(counts),
                       *_loads(list(counts)), tile.cache_bytes, tile.operations)


def _bytes_in_flight(counts):
    """Just before a wait: the groups of copies that it may leave pending, and those issued since the wait before."""
    copied = sum(copied_bytes(each) * times for each, times in counts.items())
    groups = sum(times for each, times in counts.items() if each.opcode == "LDGDEPBAR")
    waits = [int(each.operands.split(",")[1], 16) for each in counts
             if each.opcode == "DEPBAR" and "SB0" in each.operands]
    return round((min(waits) + groups / len(waits)) * copied / groups) if groups and waits else 0


def _loads(code):
    """Of instructions in their order: loads from global memory whose value is stored to shared memory, and waits for a
    load's value, of which one may be for several loads."""
    loaded, waited_for = set(), set()  # registers with loaded values; those for which nothing has waited yet
    copies = trips = 0
    for each in code:
        written, read = _registers(each)
        if read & waited_for:
            trips += 1
            waited_for = set()
        copies += each.opcode == "STS" and bool(read & loaded)
        hands_on = each.opcode in _HANDS_ON and bool(read & loaded)
        loaded -= written
        waited_for -= written
        if each.opcode in ("LDG", "LD"):
            loaded |= written
            waited_for |= written
        elif hands_on:
            loaded |= written
    return copies, trips


def _registers(instruction):
    """Registers that it writes, and those that it reads; of wide ones all."""
    operands = [each.strip() for each in instruction.operands.split(",")]
    if instruction.opcode in ("STS", "STG", "LDGSTS", "BRA", "RED", "ST"):
        return set(), _expanded(instruction, operands)
    first = [each for each in operands if not re.match(r"U?P[T\d]", each)][:1]
    target = _REGISTER.match(first[0]) if first else None
    written = {int(target.group(1))} if target else set()
    if instruction.opcode in ("LDG", "LD", "LDS"):
        words = max([_WORDS.get(each, 1) for each in instruction.modifiers], default=1)
        written = {register + word for register in written for word in range(words)}
    return written, _expanded(instruction, operands[operands.index(first[0]) + 1:] if first else operands)


def _expanded(instruction, operands):
    """The registers of operands: of addresses of 64 bits both."""
    read = set()
    for operand in operands:
        for register in _REGISTER.findall(operand):
            read.add(int(register))
            if f"R{register}.64" in operand:
                read.add(int(register) + 1)
    return read
