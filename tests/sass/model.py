"""The tables of docs/gpu_model.md: what share of a GPU's bandwidth, or of its arithmetic, programs may reach by kvjit's
model, and what bounds them; and which share they were measured to reach."""

import json
import subprocess
from typing import NamedTuple

import measured
from figures import tile_json


class Model(NamedTuple):
    gpus: list       # of dictionaries: what is assumed of each
    shares: dict     # {(GPU's name, program's name): "0.90 memory"}
    published: dict  # by the same keys: the bytes or operations a second that they are shares of


def predict(predictor, figures):
    """A Model of {(architecture, name): Figures}. predictor: the program of predict.cc."""
    keys = [key for key, each in figures.items() if each.tile]
    asked = [{"program": name.rpartition(".")[2], "architecture": architecture,
              "warps": figures[architecture, name].warps, **tile_json(figures[architecture, name].tile)}
             for architecture, name in keys]
    done = subprocess.run([predictor], input=json.dumps(asked), check=True, capture_output=True, text=True)
    told = json.loads(done.stdout)
    predicted = {(each["gpu"], name): each for (_, name), found in zip(keys, told["shares"]) for each in found}
    return Model(told["gpus"], {key: f"{each['share']:.2f} {each['bound']}" for key, each in predicted.items()},
                 {key: each["published"] for key, each in predicted.items()})


# ---- Tables --------------------------------------------------------------------------------------------------------


def _line(*cells):
    return "| " + " | ".join(cells) + " |"


def gpu_table(gpus):
    """Markdown: what is assumed of each."""
    columns = ("architecture", "multiprocessors", "clock, GHz", "memory, TB/s", "tensor cores, TFLOP/s",
               "cycles of a product m16n8k16", "of a float32 instruction")
    rows = [(gpu["name"], gpu["architecture"], gpu["multiprocessors"], gpu["clock"] / 1e9, gpu["bandwidth"] / 1e12,
             gpu["tensor"] / 1e12, gpu["product_cycles"], gpu["float_cycles"]) for gpu in gpus]
    return [_line("", *columns), "|" + "---|" * (len(columns) + 1),
            *(_line(*(each if isinstance(each, str) else f"{each:g}" for each in row)) for row in rows)]


def _names(gpus):
    return [gpu["name"] for gpu in gpus]


def _measured_shares(model, calls, name):
    """"H100 0.85, H200 0.91": of the GPUs that it was measured on."""
    shares = {gpu: calls[gpu, name].rate(name.rpartition(".")[2]) / model.published[gpu, name]
              for gpu in _names(model.gpus) if (gpu, name) in calls and (gpu, name) in model.published}
    return ", ".join(f"{gpu} {share:.2f}" for gpu, share in shares.items())


def table(model, calls, program, names):
    """Markdown: a row a program, a column a GPU, and one for what is measured. calls: {(GPU, program's name): Call}."""
    gpus = _names(model.gpus)
    lines = [_line(program, *gpus, "measured"), "|" + "---|" * (len(gpus) + 2)]
    return lines + [_line(name.removesuffix("." + program), *(model.shares.get((gpu, name), "–") for gpu in gpus),
                          _measured_shares(model, calls, name))
                    for name in names if name.endswith("." + program)]


def document(model, figures):
    """The tables of docs/gpu_model.md."""
    names = list(dict.fromkeys(name for _, name in figures))
    calls = measured.read(_names(model.gpus))
    return "\n".join([*gpu_table(model.gpus), "", *table(model, calls, "decode", names), "",
                      *table(model, calls, "prefill", names)]) + "\n"
