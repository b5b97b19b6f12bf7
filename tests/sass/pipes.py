"""What an instruction occupies."""

_CONVERSIONS = {"MUFU", "F2F", "F2FP", "F2I", "I2F", "I2FP", "F2IP", "FRND", "POPC", "FLO", "BREV"}
_SHARED = {"LDS", "LDSM", "STS", "SHFL", "ATOMS"}
_GLOBAL = {"LDG", "LDGSTS", "STG", "LD", "ST", "ATOM", "ATOMG", "RED", "LDC", "LDCU", "LDL", "STL"}
_CONTROL = {"BRA", "BSSY", "BSYNC", "BREAK", "BAR", "WARPSYNC", "DEPBAR", "LDGDEPBAR", "NOP", "EXIT", "CALL", "RET",
            "YIELD", "BMOV", "MEMBAR", "ERRBAR", "CCTL", "ENDCOLLECTIVE", "NANOSLEEP", "VOTE", "VOTEU", "ACQBULK"}
PIPES = ("tensor", "half", "float", "int", "convert", "shared", "global", "control")
_WIDTHS = (("128", 16), ("64", 8), ("U16", 2), ("S16", 2), ("U8", 1), ("S8", 1))
_LANES = 32
_WAVEFRONT = 128  # bytes that shared memory gives or takes in a cycle


def is_tensor(instruction):
    return instruction.opcode.endswith("MMA")


def is_float_product(instruction):
    return instruction.opcode in ("FFMA", "FFMA2")


def is_idle(instruction):
    """Takes an issue slot and does nothing: ptxas puts such loads in front of some LDGSTS."""
    return instruction.guard == "@!PT"


def moves_data(instruction):
    """A copy to shared memory, a load from global memory or a store."""
    return instruction.opcode in ("LDGSTS", "LDG", "LD", "STS", "STG", "ST") and not is_idle(instruction)


def pipe_of(instruction):
    opcode = instruction.opcode
    if is_tensor(instruction):
        return "tensor"
    if opcode in _CONTROL or is_idle(instruction):
        return "control"
    for name, opcodes in (("convert", _CONVERSIONS), ("shared", _SHARED), ("global", _GLOBAL)):
        if opcode in opcodes:
            return name
    if opcode[0] == "H":
        return "half"
    return "float" if opcode[0] == "F" else "int"


def bytes_of_lane(instruction):
    return next((size for name, size in _WIDTHS if name in instruction.modifiers), 4)


def copied_bytes(instruction):
    """Of a warp, by one LDGSTS; of narrow ones some lanes may copy nothing."""
    return _LANES * bytes_of_lane(instruction) if instruction.opcode == "LDGSTS" else 0


def wavefronts(instruction):
    """Cycles of shared memory, without bank conflicts, and as if no two lanes loaded the same bytes."""
    if is_idle(instruction):
        return 0
    if instruction.opcode == "LDSM":
        return 2 if "2" in instruction.modifiers else 1 if "1" in instruction.modifiers else 4
    if instruction.opcode in ("LDS", "STS", "LDGSTS", "SHFL", "ATOMS"):
        return max(1, _LANES * bytes_of_lane(instruction) // _WAVEFRONT)
    return 0
