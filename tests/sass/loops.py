"""The loops of a kernel, and how often each instruction runs in one turn of the loop that does its work.

A loop is what a branch back makes: the block that it leads to, through which all ways into the loop pass, and all
blocks from which that branch is reached. Attention's hot loop is the tile loop: the innermost one that copies rows to
shared memory (LDGSTS) and has most of the products (tensor cores', else float32's), those of loops inside it included.
A turn of it is a tile of keys; where keys and values are multiplied on two ways through it, two turns are.

A branch in it may leave out what most tiles don't need: masks at the end of the keys, the rescaling of sums whose
largest score hasn't changed. So the way that counts is that of the fewest instructions among those that do all of the
work: products, copies, stores. A loop inside it counts as often as it turns, by the constants that its counter is
compared with and grows by, or by the copies or products that the tile needs."""

import re
from collections import Counter

from pipes import bytes_of_lane, is_float_product, is_tensor, moves_data

_REGISTER = re.compile(r"\bU?R\d+")
_NUMBER = re.compile(r"^-?0x[0-9a-f]+$")


class Unclear(Exception):
    """The code is not such as these rules know."""


class Loop:
    """A loop's head and all of its blocks; `inner`: those loops in it that are in no other one of them."""

    def __init__(self, head, blocks):
        self.head = head
        self.blocks = blocks
        self.inner = []


# ---- Finding -------------------------------------------------------------------------------------------------------


def _dominators(blocks):
    """For each block that is reached: those through which all ways to it pass."""
    before = [[] for _ in blocks]
    for number, block in enumerate(blocks):
        for follower in block.followers:
            before[follower].append(number)
    order = _reached(blocks)
    dominators = {number: set(order) for number in order}
    dominators[0] = {0}
    changed = True
    while changed:
        changed = False
        for number in order[1:]:
            sets = [dominators[each] for each in before[number] if each in dominators]
            found = set.intersection(*sets) | {number}
            changed |= found != dominators[number]
            dominators[number] = found
    return dominators, before


def _reached(blocks):
    reached, rest = set(), [0]
    while rest:
        number = rest.pop()
        if number not in reached:
            reached.add(number)
            rest += blocks[number].followers
    return sorted(reached)


def find_loops(blocks):
    """All loops, with those inside them."""
    dominators, before = _dominators(blocks)
    bodies = {}
    for number in dominators:
        for head in blocks[number].followers:
            if head in dominators[number]:
                bodies.setdefault(head, {head}).update(_body(head, number, before, dominators))
    loops = [Loop(head, body) for head, body in bodies.items()]
    for loop in loops:
        around = [each for each in loops if each.blocks > loop.blocks]
        if around:
            min(around, key=lambda each: len(each.blocks)).inner.append(loop)
    return loops


def _body(head, end, before, reached):
    body, rest = {head}, [end]
    while rest:
        number = rest.pop()
        if number not in body:
            body.add(number)
            rest += [each for each in before[number] if each in reached]
    return body


def _count(blocks, numbers, asked):
    return sum(asked(each) for number in numbers for each in blocks[number].instructions)


def tile_loop(blocks, is_product):
    """The hot loop, as above."""
    found = [loop for loop in find_loops(blocks)
             if _count(blocks, loop.blocks, lambda each: each.opcode == "LDGSTS")
             and _count(blocks, loop.blocks, is_product)]
    if not found:
        raise Unclear("no loop copies rows and multiplies")
    return max(found, key=lambda loop: (_count(blocks, loop.blocks, is_product), -len(loop.blocks)))


# ---- Ways through a loop -------------------------------------------------------------------------------------------


def _order(followers, head):
    """The nodes that are reached from the head without coming back to it, each after those before it."""
    done, order = {head}, []

    def visit(node):
        for each in followers(node):
            if each not in done:
                done.add(each)
                visit(each)
        order.append(node)

    visit(head)
    return order[::-1]


def _ways(followers, head, weigh):
    """For each amount of work that a turn may do: the fewest instructions that do it, and the nodes of that way. weigh
    gives a node's work and instructions."""
    best, ends = {head: {0: (0, ())}}, {}
    for node in _order(followers, head):
        work, cost = weigh(node)
        ways = {done + work: (spent + cost, way + (node,)) for done, (spent, way) in best[node].items()}
        for each in followers(node):
            _keep_best(ends if each == head else best.setdefault(each, {}), ways)
    return ends


def _keep_best(kept, ways):
    for work, way in ways.items():
        kept[work] = min(kept.get(work, way), way)


class TileCounter:
    """Counts instructions in a tile of an attention program. `tile`: what that takes beside the code (tiles.py)."""

    def __init__(self, blocks, is_product, tile):
        self.blocks = blocks
        self.is_product = is_product
        self.tile = tile

    def count(self, loop):
        """How often each instruction runs for a tile, in the order of the code's way through the loop."""
        self.loop_of = {number: inner for inner in loop.inner for number in inner.blocks}
        self.inner = {inner.head: self._inner_counts(inner) for inner in loop.inner}
        left = {node for node in self._nodes(loop) if self._products(node)}
        total = Counter()
        while left:
            way = self._best_way(loop, left)
            if not left & set(way):
                raise Unclear("no way through the tile loop does the rest of its products")
            left -= set(way)
            for node in way:
                total.update(self._counts(node))
        return total

    # A node is a block of the loop, or a loop inside it, which its head stands for.

    def _nodes(self, loop):
        return {self._node(number) for number in loop.blocks}

    def _node(self, number):
        return self.loop_of[number].head if number in self.loop_of else number

    def _followers(self, node):
        if node not in self.inner:
            return [self._node(each) for each in self.blocks[node].followers]
        own = self.loop_of[node].blocks
        return sorted({self._node(each) for number in own for each in self.blocks[number].followers
                       if each not in own})

    def _counts(self, node):
        if node in self.inner:
            return self.inner[node]
        return Counter({each: 1 for each in self.blocks[node].instructions})

    def _products(self, node):
        """Of a node; float32's products count in loops only: a few stand elsewhere."""
        inside = node in self.inner or self.is_product is is_tensor
        return sum(n for each, n in self._counts(node).items() if self.is_product(each)) if inside else 0

    def _best_way(self, loop, left):
        def weigh(node):
            counts = self._counts(node)
            moved = sum(n for each, n in counts.items() if moves_data(each))
            products = self._products(node) if node in left else 0
            return 100000 * products + moved, sum(counts.values())

        def followers(node):
            return [each for each in self._followers(node) if each in nodes]

        nodes = self._nodes(loop)
        ends = _ways(followers, loop.head, weigh)
        return ends[max(ends)][1]

    # ---- Loops inside the tile loop ----

    def _inner_counts(self, loop):
        if loop.inner:
            raise Unclear("the tile loop has loops of three levels")
        code = [each for number in self._inner_way(loop) for each in self.blocks[number].instructions]
        return Counter(dict.fromkeys(code, self._turns(loop, code)))

    def _inner_way(self, loop):
        """Of a loop of products the way that serves the call's rows; of others the one that moves most data."""
        products = sum(self.is_product(each) for n in loop.blocks for each in self.blocks[n].instructions)
        asked = self.is_product if self._is_product_loop(loop) else moves_data

        def weigh(number):
            instructions = self.blocks[number].instructions
            return sum(asked(each) for each in instructions), len(instructions)

        def followers(number):
            return [each for each in self.blocks[number].followers if each in loop.blocks]

        ends = _ways(followers, loop.head, weigh)
        needed = products * self.tile.row_share if self._is_product_loop(loop) else max(ends)
        return ends[min(work for work in ends if work >= needed)][1]

    def _is_product_loop(self, loop):
        return _count(self.blocks, loop.blocks, is_float_product) >= 16

    def _turns(self, loop, code):
        copies = [bytes_of_lane(each) for each in code if each.opcode == "LDGSTS"]
        if copies:
            return -(-self.tile.copies_of_lane(copies[0]) // len(copies))
        turns = _constant_turns(code)
        if not turns and self._is_product_loop(loop):
            turns = self.tile.value_products // sum(self.is_product(each) for each in code)
        elif not turns and any(each.opcode == "MUFU" for each in code):
            turns = self.tile.rows
        if not turns:
            raise Unclear(f"nothing tells the turns of the loop at {code[0].address:#x}")
        return turns


def _constant_turns(code):
    """Turns of a loop whose counter begins below its step and is compared with a constant; None for others. `code` is
    one turn, which ends with the branch back."""
    for place, compare in enumerate(code):
        operands = [each.strip() for each in compare.operands.split(",")]
        if compare.opcode != "ISETP" or len(operands) < 4 or not _NUMBER.match(operands[3]):
            continue
        counter = _REGISTER.match(operands[2])
        step = counter and _step(code, counter.group())
        if step and code[-1].guard.lstrip("@!") == operands[0] and not _is_set(code[place + 1:], operands[0]):
            grown, amount = step
            turns = -(-int(operands[3], 16) // amount)
            return turns if grown < place else turns + 1
    return None


def _step(code, register):
    """The place of the only instruction that changes the register, and what it adds; None if it does something else."""
    changes = [(place, each) for place, each in enumerate(code)
               if re.match(rf"{register}\b", each.operands) and not each.opcode.startswith(("ISETP", "ST", "BRA"))]
    if len(changes) != 1:
        return None
    place, change = changes[0]
    sources = [each.strip().removesuffix(".reuse") for each in change.operands.split(",")][1:]
    added = [each for each in sources if _NUMBER.match(each)]
    grows = change.opcode in ("VIADD", "IADD3", "IMAD") and set(sources) - {"RZ", "PT"} == {register, *added}
    return (place, int(added[0], 16)) if grows and len(added) == 1 and int(added[0], 16) > 0 else None


def _is_set(code, predicate):
    return any(re.match(rf"{predicate}\b", each.operands) for each in code if "SETP" in each.opcode)
