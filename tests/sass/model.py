"""The tables of docs/gpu_model.md: what share of a GPU's bandwidth, or of its arithmetic, programs may reach by kvjit's
model, and what bounds them."""

import json
import subprocess
from typing import NamedTuple

from figures import tile_json


class Model(NamedTuple):
    gpus: list    # of dictionaries: what is assumed of each
    shares: dict  # {(GPU's name, program's name): "0.90 memory"}


def predict(predictor, figures):
    """A Model of {(architecture, name): Figures}. predictor: the program of predict.cc."""
    keys = [key for key, each in figures.items() if each.tile]
    asked = [{"program": name.rpartition(".")[2], "architecture": architecture,
              "warps": figures[architecture, name].warps, **tile_json(figures[architecture, name].tile)}
             for architecture, name in keys]
    done = subprocess.run([predictor], input=json.dumps(asked), check=True, capture_output=True, text=True)
    told = json.loads(done.stdout)
    shares = {(each["gpu"], name): f"{each['share']:.2f} {each['bound']}"
              for (_, name), found in zip(keys, told["shares"]) for each in found}
    return Model(told["gpus"], shares)


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


def table(model, program, names):
    """Markdown: a row a program, a column a GPU, and one for what is measured."""
    gpus = [gpu["name"] for gpu in model.gpus]
    lines = [_line(program, *gpus, "measured"), "|" + "---|" * (len(gpus) + 2)]
    return lines + [_line(name.removesuffix("." + program), *(model.shares.get((gpu, name), "–") for gpu in gpus), "")
                    for name in names if name.endswith("." + program)]


def document(model, figures):
    """The tables of docs/gpu_model.md."""
    names = list(dict.fromkeys(name for _, name in figures))
    return "\n".join([*gpu_table(model.gpus), "", *table(model, "decode", names), "",
                      *table(model, "prefill", names)]) + "\n"
