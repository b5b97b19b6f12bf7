"""The tests that may notice a mistake in a template. A stage is "DEVICE: TEST": a test, and where its kernels run."""

import collections
import sys

from mistakes import HERE, ROOT

# What a stage runs, and what its environment has beside ours.
Stage = collections.namedtuple("Stage", "name command environment")

# The GPUs that are none; each other device is a CPU target. What runs on the PTX interpreter has its options.
Gpu = collections.namedtuple("Gpu", "target machine")
GPUS = {
    "ptx": Gpu("cuda", "multiprocessors=132"),
    "ptx sm_90": Gpu("cuda", "capability=9.0,multiprocessors=132"),
    "emulator": Gpu("cuda-emulated", None),
    "emulator wgmma": Gpu("cuda-emulated+wgmma", None),
}

# Arguments of kvjit_conformance. A test that is not here is a file of tests/conformance.
CONFORMANCE = {
    "random calls": ["-tc=random calls*"],
    "some random calls": ["-tc=random calls*", "--shard", "4/20"],
    "random relayouts": ["-tc=random relayouts*"],
    "rows before keys": ["-tc=new tokens that outnumber*"],
    "all but random calls": ["-tce=random*,quantised decode*", "-sfe=*relayout*"],
    "edges": ["-tc=a negative softmax_scale,a mask hides*,a sink beside*,float32 scales*,quantised decode*"],
    "tiny scales": ["-tc=a subnormal softmax_scale*,products near*"],
    "NaN": ["-tc=a NaN or an infinity in a value reaches*,a NaN in a visible query or key*,a NaN lse*,"
            "a NaN in the output of a part*"],
    "Merge": ["-tc=attention over parts of the keys*,Merge over a tensor that lacks*"],
    "long rows": ["-tc=few rows of many elements*"],
    "many sequences": ["-tc=more sequences than*"],
    "heads of a warp": ["-tc=tokens of which a warp stores*"],
    "windows": ["-tc=*before a window are not touched"],
    "pieces": ["-tc=relayouts between layouts that cut*,*in pieces as in whole rows,*makes of whole rows"],
    "relayout threads": ["-tc=relayouts: threads*"],
    "tensor cores": ["-tc=random calls that tensor cores*"],
    "stack": ["-tc=*what the stack held*"],
    "rows of a tile": ["-tc=the rows of a tile see*"],
    "splits": ["-tc=few rows see many keys,*NaN*,*before a window are not touched"],
}

CALLS = ["pmx/003", "pmx/004", "pmx/017", "pmx/028", "pmx/037", "pmx/049", "pmx/060", "rules/all", "types/bf16",
         "types/int8"]
PLANS = ["-tc=the plan's own choice*,one plan serves*,a bad entry is found*"]

# What is tried, in this order, where the stage that a mistake names does not notice it.
CUDA = ["ptx: recorded calls", "ptx: rows before keys", "ptx: some random calls", "ptx: tensor cores", "ptx: device tests",
        "ptx: Merge",
        "ptx: NaN", "ptx: long rows", "ptx: many sequences", "ptx: windows", "ptx: pieces", "emulator: recorded calls",
        "emulator: some random calls", "emulator: long rows", "emulator: edges", "emulator: relayout threads"]
WARPGROUPS = ["ptx sm_90: call pmx/048", "ptx sm_90: tensor cores", "ptx sm_90: splits", "emulator wgmma: tensor cores"]
CPU = ["host: recorded calls", "host: random calls", "host: all but random calls", "host: quantised_test"]
RELAYOUTS = ["host: random relayouts", "host: relayout_test", "host: relayout_cut_test",
             "host: relayout_properties_test"]
AMX_FILES = ("attend_prefill_amx", "attend_decode_amx", "attend/tile_", "attend/split.h", "attend/byte_tiles",
             "attend/pair_tiles", "attend/digit_rows")
AMX = [stage.replace("host", "x86-64-v3+amx-emulated") for stage in CPU[:-1]] + ["x86-64-v3+amx-emulated: numerics"]


def usual_stages(mistake):
    """Names of the stages that may notice a mistake in the template that has it."""
    file = mistake["file"]
    if mistake["backend"] == "cuda":
        return WARPGROUPS if "wgmma" in file or "warpgroup" in file else CUDA
    if "relayout" in file:
        return RELAYOUTS
    return AMX if any(part in file for part in AMX_FILES) else CPU


def device_of_calls(mistake):
    """Where the recorded call that a mistake names is replayed."""
    return usual_stages(mistake)[0].partition(": ")[0]


def files_of(calls):
    files = {call: sorted((ROOT / "tests/golden").glob(call + "*")) for call in calls}
    for call, found in files.items():
        if not found:
            sys.exit(f"tests/golden has no call {call}")
    return [str(path) for found in files.values() for path in found]


def command_of(test, target, build):
    """What runs a test with kernels of a target; None where there is no such test."""
    if test == "recorded calls" or test.startswith("call "):
        calls = CALLS if test == "recorded calls" else [test.removeprefix("call ")]
        return [build / "kvjit", "replay", "--quiet", "--target", target] + files_of(calls)
    if test == "device tests":
        return [build / "tests/gpu/kvjit_gpu_test", "--target", target] + PLANS
    if test == "numerics":
        return [build / "tests/numerics/kvjit_numerics", target]
    conformance = [build / "tests/conformance/kvjit_conformance", "--abort-after=1", "--target", target]
    if test in CONFORMANCE:
        return conformance + CONFORMANCE[test]
    if (ROOT / "tests/conformance" / (test + ".cc")).exists():
        return conformance + [f"-sf=*/{test}.cc", "-tce=random*"]
    return None


def stage_of(name, build):
    device, _, test = name.partition(": ")
    gpu = GPUS.get(device, Gpu(device, None))
    command = command_of(test, gpu.target, build)
    if command is None:
        sys.exit(f"there is no test {test!r}, which the stage {name!r} is of: stages.py has a list")
    if gpu.machine is None:
        return Stage(name, [str(part) for part in command], {})
    on_ptx = [HERE.parent / "ptx/on_ptx.sh", "--libraries", build / "tests/ptx/lib"]
    return Stage(name, [str(part) for part in on_ptx + command], {"PTX_MACHINE": gpu.machine})


def stages_of(mistake, build):
    """The stages that may notice a mistake, in the order in which they are tried: what it names first."""
    named = [f"{device_of_calls(mistake)}: call {mistake['call']}"] if "call" in mistake else []
    named += [mistake["stage"]] if "stage" in mistake else []
    return [stage_of(name, build) for name in dict.fromkeys(named + usual_stages(mistake))]
