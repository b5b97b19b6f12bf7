"""A kernel's instructions, as nvdisasm prints them, and the blocks that they make."""

import re
import subprocess

_SECTION = re.compile(r"^\s*\.section\s+\.text\.(\w+)")
_LABEL = re.compile(r"^(\.L_x_\d+):")
_INSTRUCTION = re.compile(r"^\s+/\*([0-9a-f]+)\*/\s+(?:(@!?U?P[T\d]+)\s+)?([A-Z][\w.]*)\s*([^;]*);")
_TARGET = re.compile(r"\.L_x_\d+")
_PREDICATE = re.compile(r"\bU?P\d\b")
# Control goes elsewhere for good, unless a predicate stands before it. ptxas makes some branches of CALL, to a label;
# the calls that return are of functions with names.
_ENDS = {"EXIT", "RET", "BRA", "BRX", "BSYNC"}
_BYTES_OF_INSTRUCTION = 16


class Instruction:
    """One instruction: its guard ("@P0", or ""), opcode ("LDG"), modifiers ("E", "128") and operands."""

    def __init__(self, address, guard, name, operands):
        self.address = address
        self.guard = guard or ""
        self.opcode, *modifiers = name.split(".")
        self.modifiers = frozenset(modifiers)
        self.operands = operands.strip()

    def ends_block(self):
        return self.opcode in _ENDS or (self.opcode == "CALL" and _TARGET.search(self.operands) is not None)

    def is_always_taken(self):
        """Of one that ends a block: whether what follows it is not reached past it."""
        return not (self.guard or self.modifiers & {"DIV", "CONV"} or _PREDICATE.search(self.operands))


class Block:
    """Instructions that run one after another; numbers of the blocks that may follow."""

    def __init__(self):
        self.instructions = []
        self.targets = []  # labels of its branch
        self.followers = []


def disassemble(nvdisasm, cubin, *options):
    """What nvdisasm prints of a cubin's code."""
    return subprocess.run([nvdisasm, "-c", *options, cubin], check=True, capture_output=True, text=True).stdout


def _lines_of_entry(text):
    """The lines of the only entry's section."""
    inside = False
    for line in text.splitlines():
        section = _SECTION.match(line)
        if section:
            inside = section.group(1).startswith("kvjit_")
        elif inside:
            yield line


def read_blocks(text):
    """The blocks of the entry, in the order of their addresses."""
    blocks, at_label, joins = [Block()], {}, {}
    for line in _lines_of_entry(text):
        label, instruction = _LABEL.match(line), _INSTRUCTION.match(line)
        if label:
            if blocks[-1].instructions:
                blocks.append(Block())
            at_label[label.group(1)] = len(blocks) - 1
        elif instruction:
            _add(blocks, Instruction(int(instruction.group(1), 16), *instruction.group(2, 3, 4)), joins)
    blocks = blocks if blocks[-1].instructions else blocks[:-1]
    _connect(blocks, at_label)
    return blocks


def _add(blocks, instruction, joins):
    """Appends the instruction; a branch ends its block. joins: where threads that wait for each other go on, by barrier
    register, as the last BSSY before said; BSYNC goes there."""
    blocks[-1].instructions.append(instruction)
    targets = _TARGET.findall(instruction.operands)
    barrier = instruction.operands.split(",")[0]
    if instruction.opcode == "BSSY":
        joins[barrier] = targets
    elif instruction.ends_block():
        blocks[-1].targets = joins.get(barrier, []) if instruction.opcode == "BSYNC" else targets
        blocks.append(Block())


def _connect(blocks, at_label):
    for number, block in enumerate(blocks):
        last = block.instructions[-1]
        if number + 1 < len(blocks) and not (last.ends_block() and last.is_always_taken()):
            block.followers.append(number + 1)
        found = [at_label.get(target, len(blocks)) for target in block.targets]
        block.followers += [each for each in found if each < len(blocks)]
