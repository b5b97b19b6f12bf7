"""What kvjit inspect tells of a CUDA program's machine code: a Figures."""

from typing import NamedTuple

ATTENTION = ("decode", "prefill")  # programs with a tile
PIPES = ("tensor", "half", "float", "int", "convert", "shared", "global", "control")


class Unclear(Exception):
    """kvjit doesn't understand the code of a program with a tile."""


class TileFigures(NamedTuple):
    """Of one tile of keys, of one warp. docs/gpu_model.md says what they mean."""
    keys: int
    rows: int
    instructions: int
    pipes: tuple  # of these, by pipe
    shared_cycles: int
    flight_bytes: int
    copies: int
    trips: int
    cache_bytes: int
    operations: int
    group_products: int
    alone: int


class Figures(NamedTuple):
    registers: int
    spills: int  # instructions that load or store local memory
    code: int    # bytes
    shared: int  # bytes a block
    warps: int   # of a multiprocessor
    tile: TileFigures  # None but for attention


def of_summary(program, summary):
    """Of the JSON of kvjit inspect --emit summary."""
    loop = summary.get("hot_loop", {})
    if "code" not in summary or (program in ATTENTION) != ("tile" in loop):
        raise Unclear("; ".join(summary["lacks"]))
    shared = summary["static_shared_bytes"] + summary["dynamic_shared_bytes"]
    return Figures(summary["registers"], summary["code"]["spills"], summary["code_bytes"], shared,
                   summary["occupancy"]["warps"], _tile_of(loop) if "tile" in loop else None)


def _tile_of(loop):
    pipes = tuple(loop["pipes"][each] for each in PIPES)
    return TileFigures(instructions=loop["instructions"], pipes=pipes, **loop["tile"])


def tile_json(tile):
    """The pipes and the tile of such a summary's loop."""
    fields = tile._asdict()
    del fields["instructions"]
    return {"pipes": dict(zip(PIPES, fields.pop("pipes"))), "tile": fields}
