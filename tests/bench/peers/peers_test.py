#!/usr/bin/env python3
"""What the comparison with other engines makes of its measurements: peers_test.py LIBKVJIT LIMITS README

Figures against numbers computed by hand, processes that fail, kvjit's own driver on a small case, and README.md's table
against the results that it stands for."""

import contextlib
import importlib.util
import io
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import unittest

import cases
import environment
import machine
import process
import rounds
import summary
import table
import terminal

LIBKVJIT, LIMITS, README = sys.argv[1:4]
HERE = os.path.dirname(os.path.abspath(__file__))


def record(peer, variant, seconds, nbytes=8e6, error=1e-4):
    return {"peer": peer, "variant": variant, "layers": 1, "bytes": nbytes, "error": error, "seconds": seconds}


def decode_case():
    """Three rounds: kvjit takes 1, 2 and 4 ms; vllm 2, 1 and 6; torch is out in the second."""
    variants = {
        summary.REFERENCE: record("kvjit", "float16 L2HTD", [1e-3, 2e-3, 4e-3]),
        "vllm float16": record("vllm", "float16", [2e-3, 1e-3, 6e-3]),
        "torch bfloat16": record("torch", "bfloat16", [5e-3, None, 5e-3], 4e6),
    }
    limits = {"read, plain": [10, 8, 2], "read, streams": [8, 16, 4], "float32 multiply-adds": [100, 100, 100],
              "bfloat16 pairs": [0, 0, 0]}
    return {"title": "decode", "elements": 4e6, "operations": 16e6, "bound": "memory", "date": "a day",
            "limits": limits, "others_used_cores": 0.25, "variants": variants, "lacks": {"ggml q8_0": "wrong"}}


class Figures(unittest.TestCase):
    def test_ratio_is_the_median_of_each_rounds(self):
        # 2 / 1, 1 / 2, 6 / 4
        self.assertEqual(summary.ratio([2, 1, 6], [1, 2, 4]), summary.Ratio(1.5, 2, 3))

    def test_rounds_without_a_time_do_not_count(self):
        self.assertEqual(summary.ratio([2, None, 6], [1, 2, None]), summary.Ratio(2.0, 1, 1))
        self.assertIsNone(summary.ratio([None], [1]))

    def test_equal_times_are_not_lost(self):
        self.assertEqual(summary.ratio([1, 1], [1, 1]), summary.Ratio(1.0, 0, 2))

    def test_share_is_held_against_the_best_read_of_the_same_round(self):
        row = summary.row(decode_case(), "vllm float16")
        # 4, 8 and 4/3 GB/s of 10, 16 and 4
        self.assertAlmostEqual(row.share, 0.4)
        self.assertAlmostEqual(row.seconds, 2e-3)
        self.assertAlmostEqual(row.rate, 4.0)

    def test_arithmetic_is_held_against_products_of_the_type(self):
        case = decode_case() | {"bound": "arithmetic"}
        case["limits"]["bfloat16 pairs"] = [200, 200, 200]
        # 16e6 operations in 5 ms are 3.2 GFLOP/s
        self.assertAlmostEqual(summary.row(case, "torch bfloat16").share, 3.2 / 200)
        self.assertAlmostEqual(summary.row(case, "vllm float16").share, 8 / 100)

    def test_calls_have_no_limit(self):
        row = summary.row(decode_case() | {"bound": "calls"}, "vllm float16")
        self.assertIsNone(row.share)
        self.assertIn("| – |", table.row_line(row))

    def test_a_peers_best_is_its_fastest(self):
        case = decode_case()
        case["variants"]["vllm fp8"] = record("vllm", "fp8", [1e-3, 1e-3, 1e-3])
        names = [row.name for row in summary.best_of_peer(summary.rows(case))]
        self.assertEqual(names, ["vllm fp8", summary.REFERENCE, "torch bfloat16"])

    def test_operations_and_elements_of_cases(self):
        # The first new token sees 2 keys, the second 3: 5 pairs.
        case = cases.Case("x", "x", ((2, 3), (1, 4)))
        self.assertEqual(case.operations, 4 * 128 * 32 * (5 + 4))
        self.assertEqual(case.elements, 7 * 2 * 8 * 128)
        self.assertEqual(case.starts(), [0, 2, 3])
        self.assertEqual(case.layers(2, 3 * case.elements), 2)

    def test_the_cases_are_those_that_are_asked_for(self):
        mixed = cases.CASES["mixed"].sequences
        decodes = [keys for new, keys in mixed if new == 1]
        self.assertEqual((len(decodes), min(decodes), max(decodes)), (16, 1024, 8192))
        self.assertEqual(mixed[16:], ((512, 512), (512, 512)))
        self.assertEqual(cases.CASES["decode-64x512"].sequences, ((1, 512),) * 64)


class Tables(unittest.TestCase):
    def test_rows(self):
        lines = table.case_table(decode_case(), {"read, plain": "GB/s", "read, streams": "GB/s",
                                                 "float32 multiply-adds": "GFLOP/s"})
        self.assertEqual(lines[0], "### Decode")
        self.assertIn("| vllm float16 | 2 ms | 1.50 | 2 of 3 | 4 | 0.40 | 1.0e-04 |", lines)
        self.assertIn("| kvjit float16 L2HTD | 2 ms | 1.00 | – | 4 | 0.50 | 1.0e-04 |", lines)
        self.assertIn("Limits: read, plain 8 GB/s; read, streams 8 GB/s; float32 multiply-adds 100 GFLOP/s. "
                      "Measured on a day; other processes used 0.25 cores.", lines)
        self.assertEqual(lines[-1], "\nNot measured: ggml q8_0: wrong")

    def test_numbers(self):
        self.assertEqual([table.time_text(each) for each in (2.5, 0.01234, 35.2e-6)], ["2.5 s", "12.3 ms", "35.2 us"])
        self.assertEqual(table.ratio_text(summary.Ratio(0.804, 1, 7)), "**0.80**")
        self.assertEqual(table.ratio_text(summary.Ratio(12.4, 7, 7)), "12")

    def test_overview(self):
        peers = {"kvjit": {"variants": ["float16 L2HTD"]}, "vllm": {"variants": ["float16", "fp8"]},
                 "ggml": {"variants": ["q8_0"]}}
        shown = table.overview({"cases": {"decode-1x4k": decode_case()}, "peers": peers}).splitlines()
        self.assertEqual(shown[0], "| time / kvjit float16's | decode, 4k keys |")
        self.assertEqual(shown[2], "| kvjit float16 L2HTD | 1 (2 ms, 4 GB/s, 0.50 of the limit) |")
        self.assertEqual(shown[3:], ["| vllm float16 | 1.50 |"])

    def test_readmes_table_is_that_of_the_results(self):
        with open(README, encoding="utf-8") as file:
            text = file.read()
        linked = re.search(r"\((tests/bench/results/[\w-]+)\.md\)", text)
        with open(os.path.join(os.path.dirname(README), linked[1] + ".json"), encoding="utf-8") as file:
            self.assertIn(table.overview(json.load(file)), text)


class Fake:
    """A driver that answers from a list."""

    def __init__(self, name, *answers):
        self.name, self.answers, self.variants, self.pid = name, list(answers), ["v"], os.getpid()
        self.lacks = None
        self.asked = []

    def ask(self, do, **_):
        self.asked.append(do)
        return self.answers.pop(0) if do != "drop" else {}


class FakeLimits:
    units, pid, lacks = {"read, plain": "GB/s"}, os.getpid(), None

    def measure(self, _):
        return 10.0


READY = {"layers": 2, "bytes": 100, "error": 1e-4, "tolerance": 1e-3}


def measured(*drivers, number=2):
    with contextlib.redirect_stdout(io.StringIO()):
        return rounds.measure(cases.SMALL, drivers, FakeLimits(), number, terminal.Progress(1))


class Rounds(unittest.TestCase):
    def test_wrong_results_are_named_and_not_timed(self):
        wrong = Fake("a", READY | {"error": 0.5})
        found = measured(wrong, Fake("b", READY | {"error": math.nan}))
        self.assertEqual(found["variants"], {})
        self.assertEqual(found["lacks"]["a v"], "wrong: an error of 0.5, more than 0.001")
        self.assertIn("b v", found["lacks"])
        self.assertEqual(wrong.asked, ["prepare", "drop"])

    def test_every_other_round_is_reversed(self):
        self.assertEqual(rounds.turns([1, 2, 3], 0) + rounds.turns([1, 2, 3], 1), [1, 2, 3, 3, 2, 1])

    def test_one_that_fails_leaves_and_the_others_go_on(self):
        good = Fake("a", READY, {"seconds": 1.0}, {"seconds": 2.0})
        found = measured(good, Fake("b", READY, {"lacks": "its process ended with signal 9"}))
        self.assertEqual(found["variants"]["a v"]["seconds"], [1.0, 2.0])
        self.assertEqual(found["lacks"], {"b v": "its process ended with signal 9"})
        self.assertEqual(found["limits"], {"read, plain": [10.0, 10.0]})


class Processes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def driver(self, *command):
        log, variables = os.path.join(self.folder, "log"), process.environment(2, self.folder)
        started = process.Driver("kvjit", command, log, variables)
        self.addCleanup(started.close)
        return started

    def test_a_driver_that_does_not_start_is_missing(self):
        driver = self.driver(sys.executable, "-c", "raise SystemExit(3)")
        self.assertEqual(driver.lacks, "its process ended with status 3")

    def test_a_driver_that_dies_is_named_and_asked_no_more(self):
        code = "import os; print('{}', flush=True); input(); os.kill(os.getpid(), 9)"
        driver = self.driver(sys.executable, "-c", code)
        self.assertEqual(driver.ask("run"), {"lacks": "its process ended with signal 9"})
        self.assertEqual(driver.ask("run"), {"lacks": "its process ended with signal 9"})

    def test_niceness_is_given_for_a_while(self):
        with subprocess.Popen(["sleep", "60"]) as child:
            own = os.getpriority(os.PRIO_PROCESS, child.pid)
            with machine.niceness([child.pid], 19):
                self.assertEqual(os.getpriority(os.PRIO_PROCESS, child.pid), 19)
            raised = os.getpriority(os.PRIO_PROCESS, child.pid)
            child.kill()
        # Only root may lower it again.
        self.assertEqual(raised, own if os.geteuid() == 0 else 19)

    def test_peers_that_are_not_installed_are_missing(self):
        found = environment.prepare(environment.Environment(self.folder), environment.PEERS, offline=True)
        self.assertEqual(found, {peer.name: "not installed" for peer in environment.PEERS})

    def test_peers_that_are_left_out_are_missing(self):
        spec = importlib.util.spec_from_file_location("peers_main", os.path.join(HERE, "__main__.py"))
        main = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(main)
        self.assertEqual(main.left_out(main.parse([])), {})
        others = {peer.name for peer in environment.PEERS} - {"vllm", "torch"}
        self.assertEqual(main.left_out(main.parse(["--only", "vllm", "--only", "torch"])),
                         {name: "left out by --only" for name in others})

    def test_a_folder_as_a_name_is_refused_before_anything_is_measured(self):
        refused = subprocess.run([sys.executable, HERE, "--build", self.folder, "--name", "there/results"],
                                 capture_output=True, text=True)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("there/results has a folder, which --out names", refused.stderr)
        self.assertEqual(os.listdir(self.folder), [])

    def test_reasons_name_no_host(self):
        said = "WARNING: retrying https://some.host/simple\nERROR: No matching distribution found for x==1\n"
        self.assertEqual(environment.last_line(said), "No matching distribution found for x==1")

    def test_limits(self):
        limits = process.Limits([LIMITS], os.path.join(self.folder, "log"))
        self.addCleanup(limits.close)
        self.assertEqual(limits.units["read, streams"], "GB/s")
        for name in ("read, plain", "read, prefetched", "read, streams", "float32 multiply-adds"):
            self.assertGreater(limits.measure(name), 0, name)
        flags = machine.describe()["instructions"]
        self.assertEqual(limits.measure("bfloat16 pairs") > 0, "avx512_bf16" in flags)
        self.assertEqual(limits.measure("bfloat16 tiles") > 0, "amx_bf16" in flags)

    def test_kvjits_driver(self):
        if importlib.util.find_spec("numpy") is None:
            self.skipTest("this Python has no numpy")
        driver = self.driver(sys.executable, os.path.join(HERE, "kvjit_driver.py"), LIBKVJIT)
        self.assertTrue(driver.version.startswith("kvjit "), driver.lacks)
        for variant in ("float16 L2HTD", "float16 TL2HD", "bfloat16 L2HTD", "int8 g32", "int4 g32"):
            answer = driver.ask("prepare", case="small", variant=variant, beyond_cache=1)
            self.assertIsNone(rounds.verdict(answer), variant)
            self.assertGreater(answer["error"], 0, variant)
            self.assertGreater(driver.ask("run", variant=variant)["seconds"], 0, variant)
        self.assertEqual(driver.ask("drop"), {})
        self.assertIn("KeyError", driver.ask("run", variant="int8 g32")["lacks"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
