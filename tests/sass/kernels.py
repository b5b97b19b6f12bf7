"""The kernels that are measured: made and shown by the kvjit command, which takes NVIDIA's nvdisasm for it."""

import glob
import json
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

_HERE = os.path.dirname(os.path.abspath(__file__))
ARCHITECTURES = ("sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a")
_TOOLKIT = "/usr/local/cuda/bin/nvdisasm"


class Missing(Exception):
    """Something that measuring takes isn't on this machine."""


class Failed(Exception):
    """kvjit refused, or the code is not understood."""


class Spec(NamedTuple):
    name: str
    text: str
    is_quick: bool  # the test compiles it, too


class Kernel(NamedTuple):
    """One program of a spec for an architecture."""
    name: str  # "int8g8-d128.decode"
    program: str
    architecture: str
    summary: dict  # of kvjit inspect --emit summary --json
    maker: str     # NVRTC's build ids and flags


def read_specs():
    with open(os.path.join(_HERE, "specs.txt"), encoding="utf-8") as lines:
        words = [line.split() for line in lines if line.strip() and not line.startswith("#")]
    return [Spec(each[0], each[-1], each[1] == "*") for each in words]


def offer_nvdisasm(given, folder):
    """Puts into `folder`, and that first into $PATH, where kvjit looks for it: nvdisasm of --nvdisasm, $PATH, the
    toolkit, or Python's package nvidia-cuda-nvdisasm."""
    inside = os.path.join("nvidia", "*", "bin", "nvdisasm")
    packaged = [path for place in sys.path for path in glob.glob(os.path.join(place, inside))]
    for path in (given, shutil.which("nvdisasm"), _TOOLKIT, *packaged):
        if path and os.access(path, os.X_OK):
            os.symlink(os.path.abspath(path), os.path.join(folder, "nvdisasm"))
            os.environ["PATH"] = folder + os.pathsep + os.environ["PATH"]
            return
    raise Missing("nvdisasm is neither in $PATH nor in the CUDA toolkit nor in Python's packages: install NVIDIA's "
                  "package cuda-nvdisasm-13-0, or pip install nvidia-cuda-nvdisasm, or give --nvdisasm FILE")


def _run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failed(f"{' '.join(command[:3])} ...: {done.stderr.strip()}")
    return done.stdout


class Nvrtc(NamedTuple):
    version: str  # "13.0"
    known: list   # architectures, without suffixes

    def knows(self, architecture):
        return architecture.rstrip("a") in self.known


def find_nvrtc(kvjit):
    """What kvjit compiles with, as its doctor tells: "13.0, FILE, for sm_80 sm_90"."""
    done = subprocess.run([kvjit, "doctor", "--json"], capture_output=True, text=True, check=False)
    for each in json.loads(done.stdout):
        if each["what"] == "NVRTC" and each["health"] == "ok":
            return Nvrtc(each["text"].partition(",")[0], each["text"].rpartition(", for ")[2].split())
        if each["what"] == "NVRTC":
            raise Missing(each["text"])
    raise Failed("kvjit doctor says nothing of NVRTC")


def _words(spec):
    return spec.text if spec.text.startswith("op=") else "op=MultiHeadCacheAttention," + spec.text


def _inspect(kvjit, spec, architecture, *what):
    return json.loads(_run(kvjit, "inspect", _words(spec), "--target", architecture, *what, "--json"))["programs"]


def _images(kvjit, architecture):
    """All specs' programs: (spec, program, image). Compiles nothing."""
    specs = read_specs()
    found = in_parallel(lambda each: _inspect(kvjit, each, architecture, "--images"), specs)
    return [(spec, each["program"], each["image"]) for spec, programs in zip(specs, found) for each in programs]


def make(kvjit, specs, architectures, folder):
    """Compiles what the disk cache lacks; each program once. A program goes by the name of the first of all specs that
    have it."""
    bundle = os.path.join(folder, "kernels.kvjb")
    _run(kvjit, "bundle", "create", bundle, *map(_words, specs), "--targets", ",".join(architectures), "--quiet")
    made = []
    for architecture in architectures:
        names, chosen = {}, {}
        for spec, program, image in _images(kvjit, architecture):
            names.setdefault(image, f"{spec.name}.{program}")
            if spec in specs:
                chosen.setdefault(image, (spec, program))

        def shown(image, architecture=architecture, chosen=chosen):
            spec, program = chosen[image]
            return _inspect(kvjit, spec, architecture, "--program", program, "--bundle", bundle,
                            "--emit", "summary,identity")[0]

        made += [_kernel(architecture, names[image], each) for image, each in zip(chosen, in_parallel(shown, chosen))]
    return made


def _kernel(architecture, name, shown):
    maker = " ".join(re.search(r"source=\w+;(.*)", shown["identity"], re.DOTALL).group(1).split())
    return Kernel(name, shown["program"], architecture, shown["summary"], maker)


def in_parallel(function, items):
    """Results in the order of the items; a thread a core, for work that other processes do."""
    with ThreadPoolExecutor(max_workers=len(os.sched_getaffinity(0))) as pool:
        return list(pool.map(function, items))
