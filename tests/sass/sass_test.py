#!/usr/bin/env python3
"""How machine code is read and counted, and the model of time: against listings and numbers written by hand."""

import os
import sys
import tempfile
import types
import unittest

import budgets
import lines
import listing
import loops
import measure
import model
import pipes
import tiles


def listing_of(*lines):
    """A listing as nvdisasm prints it: labels, and instructions 16 bytes apart."""
    text, address = ["\t.section\t.text.kvjit_attend_decode,\"ax\",@progbits"], 0
    for line in lines:
        if line.startswith(".L_x_"):
            text.append(line)
        else:
            guard, _, rest = line.partition(" ") if line.startswith("@") else ("", "", line)
            text.append(f"        /*{address:04x}*/ {guard:>18} {rest} ;")
            address += 16
    return listing.read_blocks("\n".join(text) + "\n")


def instruction(line):
    return listing_of(line)[0].instructions[0]


DECODE = listing_of(
    "MOV R1, RZ",
    "MOV R9, RZ",
    ".L_x_1:",
    "DEPBAR.LE SB0, 0x2",
    "LDG.E.U16 R4, desc[UR4][R2.64]",
    "STS.U16 [R5], R4",
    "BSSY B0, `(.L_x_3)",
    "@!P0 BRA `(.L_x_2)",
    "LDGSTS.E.BYPASS.128 [R6], desc[UR4][R2.64]",
    "LDGSTS.E.BYPASS.128 [R6+0x200], desc[UR4][R2.64]",
    ".L_x_2:",
    "BSYNC B0",
    ".L_x_3:",
    "LDGDEPBAR",
    "LDS.128 R12, [R8]",
    "HMMA.16816.F32 R16, R12, R20, R16",
    "HMMA.16816.F32 R16, R12, R22, R16",
    "@P1 BRA `(.L_x_4)",
    "FMUL R16, R16, R7",  # rescales, which most tiles don't need
    "FMUL R17, R17, R7",
    ".L_x_4:",
    "MUFU.EX2 R10, R10",
    "VIADD R9, R9, 0x1",
    "ISETP.GE.AND P2, PT, R9, R11, PT",
    "@!P2 BRA `(.L_x_1)",
    "LDL R3, [R1]",
    "EXIT",
)


def tile_of(rows=16, row_share=1, value_products=0, copies=0):
    return types.SimpleNamespace(rows=rows, row_share=row_share, value_products=value_products,
                                 copies_of_lane=lambda width: copies)


def counts_of(blocks, is_product, tile=tile_of()):
    counts = loops.TileCounter(blocks, is_product, tile).count(loops.tile_loop(blocks, is_product))
    named = {}
    for each, times in counts.items():
        named[each.opcode] = named.get(each.opcode, 0) + times
    return named, counts


class Reading(unittest.TestCase):
    def test_an_instruction_has_a_guard_an_opcode_modifiers_and_operands(self):
        read = instruction("@!P3 LDG.E.64 R140, desc[UR6][R142.64]")
        self.assertEqual((read.guard, read.opcode, read.operands), ("@!P3", "LDG", "R140, desc[UR6][R142.64]"))
        self.assertEqual(read.modifiers, {"E", "64"})

    def test_a_branch_under_a_predicate_may_go_on(self):
        blocks = listing_of("@P0 BRA `(.L_x_1)", "MOV R1, R2", ".L_x_1:", "EXIT")
        self.assertEqual([block.followers for block in blocks], [[1, 2], [2], []])

    def test_uniform_and_divergent_branches_may_go_on_others_do_not(self):
        for branch, followers in (("BRA.U UP0, `(.L_x_1)", [1, 2]), ("BRA.DIV UR4, `(.L_x_1)", [1, 2]),
                                  ("@!P0 BRA P1, `(.L_x_1)", [1, 2]), ("BRA `(.L_x_1)", [2])):
            blocks = listing_of(branch, "MOV R1, R2", ".L_x_1:", "EXIT")
            self.assertEqual(blocks[0].followers, followers, branch)

    def test_a_switch_goes_to_all_of_its_labels(self):
        switch = "BRX R34 -0x1db0 (*\"BRANCH_TARGETS .L_x_1,.L_x_2\"*)"
        blocks = listing_of(switch, ".L_x_1:", "EXIT", ".L_x_2:", "EXIT")
        self.assertEqual(blocks[0].followers, [1, 2])

    def test_threads_meet_where_bssy_says(self):
        blocks = listing_of("BSSY B1, `(.L_x_2)", "@P0 BRA `(.L_x_1)", "BSYNC B1", ".L_x_1:", "MOV R1, R2", ".L_x_2:",
                            "EXIT")
        self.assertEqual(blocks[1].followers, [3])

    def test_a_call_of_a_label_is_a_branch_one_of_a_function_returns(self):
        blocks = listing_of("@P0 CALL.REL.NOINC `(.L_x_1)", "CALL.REL.NOINC `($__internal_2)", "MOV R1, R2", ".L_x_1:",
                            "EXIT")
        self.assertEqual(blocks[0].followers, [1, 2])
        self.assertEqual(blocks[1].followers, [2])


class Pipes(unittest.TestCase):
    def test_each_instruction_occupies_one(self):
        for line, pipe in (("HMMA.16816.F32 R0, R4, R8, R0", "tensor"), ("HFMA2 R1, R2, R3, R4", "half"),
                           ("FFMA R1, R2, R3, R4", "float"), ("IMAD.WIDE.U32 R2, R3, R4, R6", "int"),
                           ("ULEA UR4, UR5, UR6, 0x18", "int"), ("MUFU.EX2 R1, R2", "convert"),
                           ("F2FP.F16.F32.PACK_AB R1, R2, R3", "convert"), ("LDSM.16.M88.4 R4, [R1]", "shared"),
                           ("SHFL.BFLY PT, R1, R2, 0x1, 0x1f", "shared"), ("STG.E [R2.64], R4", "global"),
                           ("BAR.SYNC.DEFER_BLOCKING 0x0", "control"), ("@!PT LDS RZ, [RZ]", "control")):
            self.assertEqual(pipes.pipe_of(instruction(line)), pipe, line)

    def test_shared_memory_takes_a_cycle_for_128_bytes(self):
        for line, cycles in (("LDS.128 R4, [R1]", 4), ("LDS.64 R4, [R1]", 2), ("STS [R1], R4", 1),
                             ("LDS.U16 R4, [R1]", 1), ("LDSM.16.MT88.4 R4, [R1]", 4),
                             ("LDGSTS.E.BYPASS.128 [R6], desc[UR4][R2.64]", 4),
                             ("@!PT LDS RZ, [RZ]", 0), ("FADD R1, R2, R3", 0)):
            self.assertEqual(pipes.wavefronts(instruction(line)), cycles, line)


class Loops(unittest.TestCase):
    def test_the_way_that_does_the_work_with_the_fewest_instructions_counts(self):
        named, _ = counts_of(DECODE, pipes.is_tensor)
        self.assertNotIn("FMUL", named)
        self.assertNotIn("LDL", named)
        self.assertEqual((named["HMMA"], named["LDGSTS"], named["BSYNC"], sum(named.values())), (2, 2, 1, 17))

    def test_a_loop_inside_counts_as_often_as_its_counter_says(self):
        for compared_first, bound, grow, turns in ((False, "0x400", "VIADD R7, R7, 0x200", 2),
                                                   (False, "0x401", "VIADD R7, R7, 0x200", 3),
                                                   (True, "0x380", "IADD3 R7, PT, PT, R7.reuse, 0x80, RZ", 8)):
            compare = f"ISETP.GE.AND P0, PT, R7, {bound}, PT"
            order = [compare, grow] if compared_first else [grow, compare]
            blocks = listing_of(".L_x_1:", "LDGSTS.E [R6], desc[UR4][R2.64]", "HMMA.16816.F32 R16, R12, R20, R16",
                                ".L_x_2:", "STS [R8], R9", *order, "@!P0 BRA `(.L_x_2)", "@P1 BRA `(.L_x_1)", "EXIT")
            self.assertEqual(counts_of(blocks, pipes.is_tensor)[0]["STS"], turns, (bound, grow))

    def test_a_loop_that_copies_counts_as_often_as_the_tile_needs(self):
        blocks = listing_of(".L_x_1:", "HMMA.16816.F32 R16, R12, R20, R16", ".L_x_2:",
                            "LDGSTS.E.BYPASS.128 [R6], desc[UR4][R2.64]",
                            "LDGSTS.E.BYPASS.128 [R7], desc[UR4][R2.64]", "@!P0 BRA `(.L_x_2)", "@P1 BRA `(.L_x_1)",
                            "EXIT")
        self.assertEqual(counts_of(blocks, pipes.is_tensor, tile_of(copies=5))[0]["LDGSTS"], 6)

    def test_rows_that_do_not_exist_are_left_out(self):
        rows = []
        for row in range(16):  # of a dot product, which stops after the rows that there are
            rows += [f"FFMA R{row}, R20, R21, R{row}", "LDS R22, [R23]", "@P3 BRA `(.L_x_3)"]
        blocks = listing_of(".L_x_1:", "LDGSTS.E [R6], desc[UR4][R2.64]", ".L_x_2:", *rows, ".L_x_3:",
                            "VIADD R40, R40, 0x8", "ISETP.GE.AND P0, PT, R40, 0x40, PT", "@!P0 BRA `(.L_x_2)",
                            "@P1 BRA `(.L_x_1)", "EXIT")
        for share, products in ((1, 128), (1 / 4, 32), (1 / 16, 8)):
            named, _ = counts_of(blocks, pipes.is_float_product, tile_of(row_share=share))
            self.assertEqual(named["FFMA"], products)
            self.assertEqual(named["LDGSTS"], 1)

    def test_keys_and_values_on_two_ways_are_two_turns(self):
        half = ["FFMA R1, R2, R3, R1"] * 16 + ["VIADD R7, R7, 0x1", "ISETP.GE.AND P0, PT, R7, 0x4, PT"]
        blocks = listing_of(".L_x_1:", "LDGSTS.E [R6], desc[UR4][R2.64]", "@P2 BRA `(.L_x_3)", ".L_x_2:", *half,
                            "@!P0 BRA `(.L_x_2)", "BRA `(.L_x_5)", ".L_x_3:", ".L_x_4:", *half, "@!P0 BRA `(.L_x_4)",
                            ".L_x_5:", "@P1 BRA `(.L_x_1)", "EXIT")
        named, _ = counts_of(blocks, pipes.is_float_product)
        self.assertEqual((named["FFMA"], named["LDGSTS"]), (128, 2))

    def test_what_is_not_understood_is_said(self):
        with self.assertRaises(loops.Unclear):
            loops.tile_loop(listing_of("HMMA.16816.F32 R16, R12, R20, R16", "EXIT"), pipes.is_tensor)
        blocks = listing_of(".L_x_1:", "LDGSTS.E [R6], desc[UR4][R2.64]", "HMMA.16816.F32 R16, R12, R20, R16",
                            ".L_x_2:", "STS [R8], R9", "@!P0 BRA `(.L_x_2)", "@P1 BRA `(.L_x_1)", "EXIT")
        with self.assertRaisesRegex(loops.Unclear, "0x20"):
            counts_of(blocks, pipes.is_tensor)


class Measuring(unittest.TestCase):
    def test_loads_that_are_stored_and_waits_for_loads(self):
        _, counts = counts_of(DECODE, pipes.is_tensor)
        self.assertEqual(measure._loads(list(counts)), (1, 1))

    def test_a_value_that_the_next_turn_uses_is_not_waited_for(self):
        code = [instruction(line) for line in ("IMAD.MOV.U32 R8, RZ, RZ, R4", "LDG.E.64 R4, desc[UR4][R2.64]",
                                               "STS [R6], R9")]
        self.assertEqual(measure._loads(code), (0, 0))

    def test_a_value_is_followed_through_a_move_and_both_words(self):
        code = [instruction(line) for line in ("LDG.E.64 R4, desc[UR4][R2.64]", "SEL R7, R5, RZ, P0", "STS [R6], R7")]
        self.assertEqual(measure._loads(code), (1, 1))

    def test_one_wait_may_be_for_several_loads(self):
        code = [instruction(line) for line in ("LDG.E R4, desc[UR4][R2.64]", "LDG.E R5, desc[UR4][R2.64+0x4]",
                                               "FADD R6, R4, R5", "LDG.E R4, desc[UR4][R2.64]", "FADD R6, R4, R5")]
        self.assertEqual(measure._loads(code), (0, 2))

    def test_bytes_in_flight_are_those_of_pending_groups_and_of_the_new_one(self):
        _, counts = counts_of(DECODE, pipes.is_tensor)
        self.assertEqual(measure._bytes_in_flight(counts), 3 * 2 * 512)  # the wait leaves two groups pending


class Lines(unittest.TestCase):
    TEXT = """\
\t//## File "/home/me/templates/cuda/machine/ptx.h", line 111 inlined at "/home/me/templates/cuda/ring.h", line 68
\t//## File "/home/me/templates/cuda/ring.h", line 68 inlined at "/home/me/templates/cuda/decode.cu", line 112
\t//## File "/home/me/templates/cuda/decode.cu", line 112
        /*0000*/                   LDGSTS.E [R6], desc[UR4][R2.64] ;
        /*0010*/                   VIADD R1, R1, 0x1 ;
\t//## File "templates/cuda/decode.cu", line 113
        /*0020*/                   VIADD R2, R2, 0x1 ;
"""

    def test_an_instruction_is_of_the_innermost_line_but_a_primitives(self):
        self.assertEqual(lines.lines_of(self.TEXT),
                         {0: "cuda/ring.h:68", 16: "cuda/ring.h:68", 32: "cuda/decode.cu:113"})

    def test_lines_with_most_instructions_come_first(self):
        code = [instruction("LDGSTS.E [R6], desc[UR4][R2.64]"), instruction("VIADD R1, R1, 0x1")]
        code[1].address = 16
        told = list(lines.report({code[0]: 2, code[1]: 5}, {0: "a.h:1", 16: "b.h:2"}))
        self.assertEqual([line.split() for line in told], [["5", "b.h:2", "5", "VIADD"], ["2", "a.h:1", "2", "LDGSTS"]])


class Tiles(unittest.TestCase):
    @staticmethod
    def constants(**changed):
        return {"variant": "mma", "kHeadDim": "128", "kGroup": "4", "kQuantBit": "0", "kQuantGroup": "128",
                "T2": "f16_t", "T3": "float"} | changed

    def test_constants_are_those_of_the_identity(self):
        text = "attend_decode;variant=mma;revision=1;kHeadDim=128;T1=f16_t;abi=2;nvptx64-nvidia-cuda:sm_90a"
        self.assertEqual(tiles.constants_of(text)["T1"], "f16_t")

    def test_bytes_and_operations_of_decode(self):
        int8 = self.constants(kQuantBit="8", kQuantGroup="8", T2="i8_t", T3="f16_t")
        tile = tiles.Tile("decode", int8, 0, 48)
        self.assertEqual((tile.keys, tile.rows, tile.cache_bytes), (16, 4, 2 * 16 * (128 + 32)))
        self.assertEqual(tile.operations, 4 * 4 * 16 * 128)
        self.assertEqual(tile.copies_of_lane(16), 16 * 128 // 16 // 32)

    def test_keys_of_prefill_follow_from_its_products(self):
        # 32 rows: 8 keys and 16 elements a product of keys, 8 elements and 16 keys a product of values
        self.assertEqual(tiles.Tile("prefill", self.constants(), 0, 2 * 8 * 8 + 2 * 16 * 4).keys, 64)
        with self.assertRaises(tiles.Unknown):
            tiles.Tile("prefill", self.constants(), 0, 100)

    def test_keys_of_dot_products_follow_from_shared_memory(self):
        dot = self.constants(variant="dot", kGroup="1")
        # queries, probabilities, four warps' keys and values in rows of 272 bytes
        tile = tiles.Tile("decode", dot, 16 * 128 * 4 + 4 * 16 * 32 * 4 + 4 * 2 * 32 * 272, 0)
        self.assertEqual((tile.keys, tile.rows, tile.row_share, tile.value_products), (32, 1, 1 / 16, 128))
        with self.assertRaises(tiles.Unknown):
            tiles.Tile("decode", dot, 1000, 0)


def figures(instructions=480, waves=100, copies=0, trips=0, flight=8192, tensor=32, cache_bytes=8192,
            operations=1 << 20):
    counts = tuple(tensor if name == "tensor" else 0 for name in pipes.PIPES)
    tile = measure.TileFigures(16, 4, instructions, counts, waves, flight, copies, trips, cache_bytes, operations)
    return measure.Figures(180, 0, 30000, 100000, 8, tile)


GPU = model.Gpu("made up", "sm_90a", 100, 1e9, 1e12, 100e12, 8, 1)  # 10 bytes a cycle and multiprocessor


class Model(unittest.TestCase):
    def expect(self, program, given, share, bound):
        found = model.predict(program, given, GPU)
        self.assertEqual(found.bound, bound)
        self.assertAlmostEqual(found.share, share, places=3)

    def test_decode_is_bound_by_what_takes_longest(self):
        self.expect("decode", figures(), 0.9, "memory")                        # 819.2 / 0.9 cycles
        self.expect("decode", figures(instructions=2400), 0.8192, "issue")     # 2400 / 4 / 0.6 = 1000
        self.expect("decode", figures(tensor=300), 0.8192, "tensor")           # 300 * 8 / 4 / 0.6
        self.expect("decode", figures(waves=600), 0.8192, "shared")            # 600 / 0.6
        self.expect("decode", figures(flight=600), 0.8, "flight")              # 8 warps * 600 bytes in 600 cycles
        self.expect("decode", figures(copies=12, trips=12), 819.2 / 1100, "waits")  # 12 * 600 / 8 + 480 / 4 / 0.6
        self.expect("decode", figures(copies=8, trips=20), 819.2 / 1100, "waits")   # (8 * 600 + 12 * 200) / 8 + 200

    def test_prefill_is_a_share_of_the_tensor_cores(self):
        # 2^20 operations take 1048.576 cycles at 1000 a cycle and multiprocessor
        self.expect("prefill", figures(tensor=600), 1048.576 / 2000, "tensor")

    def test_without_tensor_cores_it_is_a_share_of_float32(self):
        # 256 operations a cycle
        self.expect("prefill", figures(tensor=0, instructions=19200), 4096 / 8000, "issue")

    def test_a_gpu_has_a_line_with_its_numbers(self):
        self.assertEqual(model.gpu_table([GPU])[2], "| made up | sm_90a | 100 | 1 | 1 | 100 | 8 | 1 |")

    def test_the_table_has_an_empty_column_for_what_is_measured(self):
        lines = model.table({("sm_90a", "f16.decode"): figures(), ("sm_90a", "f16.prefill"): figures()}, "decode")
        self.assertEqual(len(lines), 3)
        self.assertEqual(lines[0].count("|"), lines[2].count("|"))
        self.assertTrue(lines[0].endswith("| measured |") and lines[2].endswith("|  |"))
        self.assertTrue(lines[2].startswith("| f16 | – |"))


class Budgets(unittest.TestCase):
    def test_what_is_written_is_read(self):
        whole = {("sm_80", "a.decode"): figures(), ("sm_80", "a.store"): measure.Figures(27, 0, 9728, 0, 64, None)}
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "budgets.txt")
            with open(path, "w", encoding="utf-8") as file:
                file.write(budgets.text_of(whole, "NVRTC of a test; flags"))
            self.assertEqual(budgets.read(path), (whole, "NVRTC of a test; flags"))

    def test_what_differs_is_named(self):
        key, other = ("sm_80", "a.decode"), ("sm_80", "b.decode")
        for recorded, measured, all_measured, lines in (
                ({key: figures()}, {key: figures()}, True, []),
                ({key: figures()}, {key: figures(instructions=481, trips=1)}, True,
                 ["sm_80 a.decode: insns 480 -> 481, trips 0 -> 1"]),
                ({key: figures(tensor=32)}, {key: figures(tensor=31)}, True, ["sm_80 a.decode: tensor 32 -> 31"]),
                ({key: figures()}, {key: figures(), other: figures()}, True, ["sm_80 b.decode: not recorded"]),
                ({key: figures(), other: figures()}, {key: figures()}, True, ["sm_80 b.decode: is no more"]),
                ({key: figures(), other: figures()}, {key: figures()}, False, [])):
            self.assertEqual(budgets.differing(recorded, measured, all_measured), lines)

    def test_programs_that_spill_are_named(self):
        measured = {("sm_80", "a.decode"): figures()._replace(local=3), ("sm_80", "b.decode"): figures()}
        self.assertEqual(budgets.spilling(measured), ["sm_80 a.decode: 3 loads and stores of local memory"])


if __name__ == "__main__":
    sys.exit(unittest.main())
