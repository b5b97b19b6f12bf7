#!/usr/bin/env python3
"""What budgets and tables are made of: against summaries and numbers written by hand."""

import os
import sys
import tempfile
import unittest

import budgets
import model
from figures import PIPES, Figures, TileFigures, Unclear, of_summary, tile_json


def figures(instructions=480, shared_cycles=100, copies=0, trips=0, flight_bytes=8192, tensor=32):
    counts = tuple(tensor if name == "tensor" else 0 for name in PIPES)
    tile = TileFigures(16, 4, instructions, counts, shared_cycles, flight_bytes, copies, trips, 8192, 1 << 20)
    return Figures(180, 0, 30000, 100000, 8, tile)


SUMMARY = {
    "code_bytes": 30000, "registers": 180, "static_shared_bytes": 1000, "dynamic_shared_bytes": 99000,
    "occupancy": {"blocks": 2, "warps": 8}, "code": {"instructions": 2000, "spills": 0}, "lacks": [],
    "hot_loop": {
        "instructions": 480, "pipes": {name: 32 if name == "tensor" else 0 for name in PIPES}, "spills": 0,
        "tile": {"keys": 16, "rows": 4, "shared_cycles": 100, "flight_bytes": 8192, "copies": 0, "trips": 0,
                 "cache_bytes": 8192, "operations": 1 << 20}}}


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

    def test_the_table_has_an_empty_column_for_what_is_measured(self):
        predicted = model.Model([GPU, GPU | {"name": "unknown"}], {("made up", "f16.decode"): "0.90 memory"})
        lines = model.table(predicted, "decode", ["f16.decode", "f16.prefill"])
        self.assertEqual(lines, ["| decode | made up | unknown | measured |", "|---|---|---|---|",
                                 "| f16 | 0.90 memory | – |  |"])


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


if __name__ == "__main__":
    sys.exit(unittest.main())
