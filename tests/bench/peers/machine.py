"""What is measured on: named beside every figure."""

import contextlib
import datetime
import glob
import os
import platform

_WORTH_NAMING = ("avx2", "avx512f", "avx512_bf16", "avx512_vnni", "avx512_fp16", "amx_bf16")
_LEAST_BEYOND_CACHE, _MANY_TIMES = 256e6, 5
_SHARE_OF_MEMORY = 0.4  # for what all peers hold at once


def _fields(path, separator=":"):
    """The first value of each key."""
    found = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            key, _, value = line.partition(separator)
            found.setdefault(key.strip(), value.strip().strip('"'))
    return found


def last_level_cache_bytes():
    """0 if Linux doesn't say."""
    sizes = [0]
    for path in glob.glob("/sys/devices/system/cpu/cpu0/cache/index*/size"):
        with open(path, encoding="utf-8") as file:
            sizes.append(int(file.read().strip().rstrip("K")) * 1024)
    return max(sizes)


def available_memory_bytes():
    return int(_fields("/proc/meminfo")["MemAvailable"].split()[0]) * 1024


def beyond_cache_bytes(holders):
    """What is read in turn and is this large comes from memory, where there is enough of it for all `holders`."""
    wanted = max(_LEAST_BEYOND_CACHE, _MANY_TIMES * last_level_cache_bytes())
    return min(wanted, _SHARE_OF_MEMORY * available_memory_bytes() / max(1, holders))


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")


def describe():
    cpu, system = _fields("/proc/cpuinfo"), _fields("/etc/os-release", "=")
    flags = cpu.get("flags", "").split()
    return {
        "processor": f"{cpu.get('model name')}, family {cpu.get('cpu family')}, model {cpu.get('model')}",
        "instructions": [flag for flag in _WORTH_NAMING if flag in flags],
        "cores": len(os.sched_getaffinity(0)),
        "last_level_cache_MB": last_level_cache_bytes() // 2**20,
        "memory_GB": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "system": f"{system.get('PRETTY_NAME')}, Linux {'.'.join(platform.release().split('.')[:2])}",
        "date": now(),
    }


def _ticks_of(pid):
    """Processor time of a process, in clock ticks; 0 once it has ended."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return 0
    return int(fields[11]) + int(fields[12])


def _busy_ticks():
    with open("/proc/stat", encoding="utf-8") as file:
        user, nice, system, _, _, interrupt, soft = (int(number) for number in file.readline().split()[1:8])
    return user + nice + system + interrupt + soft


def _set_niceness(pid, niceness):
    """Of all threads of a process: Linux has one for each."""
    for thread in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(ProcessLookupError):
            os.setpriority(os.PRIO_PROCESS, int(thread), niceness)


@contextlib.contextmanager
def niceness(pids, wanted):
    """Gives the processes this niceness for a while, and then their own again; None changes nothing. OSError where the
    user may not."""
    before = {pid: os.getpriority(os.PRIO_PROCESS, pid) for pid in pids} if wanted is not None else {}
    for pid in before:
        _set_niceness(pid, wanted)
    try:
        yield
    finally:
        for pid, own in before.items():
            with contextlib.suppress(OSError):
                _set_niceness(pid, own)


class Others:
    """How many cores other processes used since it was made."""

    def __init__(self, pids):
        self.pids = pids
        self.start = os.times().elapsed, self._foreign()

    def _foreign(self):
        return _busy_ticks() - sum(_ticks_of(pid) for pid in self.pids)

    def cores(self):
        seconds = max(1e-9, os.times().elapsed - self.start[0])
        ticks = self._foreign() - self.start[1]
        return max(0.0, round(ticks / os.sysconf("SC_CLK_TCK") / seconds, 2))
