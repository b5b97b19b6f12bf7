#!/usr/bin/env python3
"""What budgets and tables are made of: against summaries and numbers written by hand."""

import os
import sys
import tempfile
import unittest

import budgets
import measured
import model
from figures import PIPES, Figures, TileFigures, Unclear, of_summary, tile_json


def figures(instructions=480, shared_cycles=100, copies=0, trips=0, flight_bytes=8192, tensor=32):
    counts = tuple(tensor if name == "tensor" else 0 for name in PIPES)
    tile = TileFigures(16, 4, instructions, counts, shared_cycles, flight_bytes, copies, trips, 8192, 1 << 20, 0, 0)
    return Figures(180, 0, 30000, 100000, 8, tile)


SUMMARY = {
    "code_bytes": 30000, "registers": 180, "static_shared_bytes": 1000, "dynamic_shared_bytes": 99000,
    "occupancy": {"blocks": 2, "warps": 8}, "code": {"instructions": 2000, "spills": 0}, "lacks": [],
    "hot_loop": {
        "instructions": 480, "pipes": {name: 32 if name == "tensor" else 0 for name in PIPES}, "spills": 0,
        "tile": {"keys": 16, "rows": 4, "shared_cycles": 100, "flight_bytes": 8192, "copies": 0, "trips": 0,
                 "cache_bytes": 8192, "operations": 1 << 20, "group_products": 0, "alone": 0}}}


class Summaries(unittest.TestCase):
    def test_figures_are_those_of_a_summary(self):
        self.assertEqual(of_summary("decode", SUMMARY), figures())

    def test_what_the_model_takes_is_as_the_summary_has_it(self):
        loop = SUMMARY["hot_loop"]
        self.assertEqual(tile_json(figures().tile), {"pipes": loop["pipes"], "tile": loop["tile"]})

    def test_other_programs_have_no_tile(self):
        without = SUMMARY | {"hot_loop": {"instructions": 20}}
        self.assertEqual(of_summary("store", without), figures()._replace(tile=None))

    def test_code_that_is_not_understood_is_an_error(self):
        for program, summary in (("decode", SUMMARY | {"hot_loop": {}, "lacks": ["hot loop: no loop"]}),
                                 ("store", {"lacks": ["hot loop: no loop"]})):
            with self.assertRaisesRegex(Unclear, "hot loop: no loop"):
                of_summary(program, summary)


GPU = {"name": "made up", "architecture": "sm_90a", "multiprocessors": 100, "clock": 1e9, "bandwidth": 1e12,
       "tensor": 100e12, "product_cycles": 8, "float_cycles": 1}


class Tables(unittest.TestCase):
    def test_a_gpu_has_a_line_with_its_numbers(self):
        self.assertEqual(model.gpu_table([GPU])[2], "| made up | sm_90a | 100 | 1 | 1 | 100 | 8 | 1 |")

    MODEL = model.Model([GPU, GPU | {"name": "unknown"}],
                        {("made up", "f16.decode"): "0.90 memory", ("made up", "f16.prefill"): "0.60 tensor"},
                        {("made up", "f16.decode"): 1e12, ("made up", "f16.prefill"): 100e12})
    NAMES = ("f16.decode", "f16.prefill")

    def test_where_nothing_is_measured_the_last_column_is_empty(self):
        lines = model.table(self.MODEL, {}, "decode", self.NAMES)
        self.assertEqual(lines, ["| decode | made up | unknown | measured |", "|---|---|---|---|",
                                 "| f16 | 0.90 memory | – |  |"])

    def test_measured_are_decodes_bytes_and_prefills_operations_as_shares_of_what_is_published(self):
        calls = {("made up", "f16.decode"): measured.Call(2e-3, 1_500_000_000, 7),
                 ("made up", "f16.prefill"): measured.Call(2e-3, 7, 90_000_000_000),
                 ("unknown", "f16.decode"): measured.Call(2e-3, 7, 7)}
        for program, line in (("decode", "| f16 | 0.90 memory | – | made up 0.75 |"),
                              ("prefill", "| f16 | 0.60 tensor | – | made up 0.45 |")):
            self.assertEqual(model.table(self.MODEL, calls, program, self.NAMES)[2:], [line])

    def test_gpus_that_a_program_was_measured_on_stand_side_by_side(self):
        both = model.Model([GPU | {"name": "A1"}, GPU | {"name": "B2"}], {},
                           {("A1", "f16.decode"): 1e12, ("B2", "f16.decode"): 2e12})
        calls = {(gpu, "f16.decode"): measured.Call(1e-3, 800_000_000, 7) for gpu in ("B2", "A1")}
        self.assertEqual(model.table(both, calls, "decode", self.NAMES)[2], "| f16 | – | – | A1 0.80, B2 0.40 |")


class Measured(unittest.TestCase):
    @staticmethod
    def read(name, text):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(text)
            return measured.read(["A1", "B2"], folder)

    def test_a_file_has_a_line_a_program(self):
        calls = self.read("b2.txt", "# a GPU\nf16 decode 2000.5 300 400\nf16 prefill 7 8 9\n")
        self.assertEqual(calls, {("B2", "f16.decode"): measured.Call(2000.5e-6, 300, 400),
                                 ("B2", "f16.prefill"): measured.Call(7e-6, 8, 9)})

    def test_there_may_be_no_files(self):
        self.assertEqual(self.read("README.md", "text"), {})
        self.assertEqual(measured.read(["A1"], "no such folder"), {})

    def test_a_file_of_an_unknown_gpu_is_refused(self):
        with self.assertRaisesRegex(measured.Wrong, "c3.txt has the name of no GPU: a1.txt, b2.txt"):
            self.read("c3.txt", "f16 decode 1 2 3\n")

    def test_lines_of_another_form_are_refused(self):
        for line in ("f16 decode 1 2", "f16 store 1 2 3", "f16 decode 0 2 3", "f16 decode nan 2 3",
                     "f16 decode 1 2.5 3"):
            with self.assertRaisesRegex(measured.Wrong, f"b2.txt: '{line}' is not: spec, decode or prefill"):
                self.read("b2.txt", line + "\n")


class Budgets(unittest.TestCase):
    def test_what_is_written_is_read(self):
        whole = {("sm_80", "a.decode"): figures(), ("sm_80", "a.store"): Figures(27, 0, 9728, 0, 64, None)}
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
        measured = {("sm_80", "a.decode"): figures()._replace(spills=3), ("sm_80", "b.decode"): figures()}
        self.assertEqual(budgets.spilling(measured), ["sm_80 a.decode: 3 loads and stores of local memory"])

    def test_programs_that_wait_for_copies_are_named(self):
        measured = {("sm_80", "a.decode"): figures(copies=2), ("sm_80", "a.store"): Figures(27, 0, 9728, 0, 64, None)}
        self.assertEqual(budgets.waiting(measured), ["sm_80 a.decode: 2 copies for which a warp waits"])

    def test_decode_of_too_many_instructions_for_16_keys_is_named(self):
        measured = {("sm_90a", "int8g8-d128.decode"): figures(instructions=501),
                    ("sm_90a", "int8row-d128.decode"): figures(instructions=330),
                    ("sm_80", "int8row-d128.decode"): figures(instructions=331)}
        self.assertEqual(budgets.crowded(measured),
                         ["sm_90a int8g8-d128.decode: 501 instructions for 16 keys, 500 at most"])

    def test_no_recorded_program_spills_waits_or_is_crowded(self):
        recorded, _ = budgets.read()
        self.assertEqual(budgets.spilling(recorded) + budgets.waiting(recorded) + budgets.crowded(recorded), [])


if __name__ == "__main__":
    sys.exit(unittest.main())
