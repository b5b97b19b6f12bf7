"""./dev sass: What ptxas makes of kvjit's CUDA kernels, held to recorded budgets. Takes no GPU."""

import argparse
import os
import signal
import sys
import tempfile

import budgets
import figures
import kernels
import measured
import model

_ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
_DOCUMENT = os.path.join(_ROOT, "docs", "gpu_model.md")
_SKIPPED = 77

_MORE = """\
Compiles the kernels of tests/sass/specs.txt by NVRTC (what the disk cache has is not compiled again), takes the figures
that kvjit inspect shows of their machine code, and holds them to tests/sass/budgets.txt: no program may load or store
local memory, nor wait for a copy through registers, but for two that are named in budgets.py; and if NVRTC is the recorded
one, every figure is the recorded one. With another NVRTC figures aren't compared, and the exit status is 77.
docs/gpu_model.md says what the figures mean.

examples:
  ./dev sass                                all specs, five architectures: a quarter of an hour of two cores
  ./dev sass --only int8 --target sm_90a    specs whose names have "int8" in them
  ./dev sass --lines int8g8-d128.decode --target sm_90a
  ./dev sass --record                       writes budgets.txt, and the tables of docs/gpu_model.md
  ./dev sass --model                        prints the predicted shares of the recorded figures, and those that GPUs
                                            reached (tests/sass/measured/); compiles no kernel
  ./dev sass --document                     writes these tables into docs/gpu_model.md
"""


def _parse():
    parser = argparse.ArgumentParser(prog="./dev sass", description=__doc__.partition(": ")[2], epilog=_MORE,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true", help="write what is measured to budgets.txt, on purpose")
    parser.add_argument("--model", action="store_true", help="print the tables of predicted and measured shares")
    parser.add_argument("--document", action="store_true", help="write these tables into docs/gpu_model.md")
    parser.add_argument("--lines", metavar="PROGRAM", help="print the templates' lines that the instructions of this "
                        "program's tile are from, for one --target")
    parser.add_argument("--only", metavar="TEXT", default="", help="specs whose names have TEXT in them")
    parser.add_argument("--quick", action="store_true", help="the specs with a star: what the test measures")
    parser.add_argument("--target", metavar="ARCH", action="append", choices=kernels.ARCHITECTURES,
                        help=f"one of {', '.join(kernels.ARCHITECTURES)}; may be repeated")
    parser.add_argument("--nvdisasm", metavar="FILE", help="the disassembler, else that of $PATH, of the toolkit or of "
                        "Python's package nvidia-cuda-nvdisasm")
    parser.add_argument("--kvjit", default=os.path.join(_ROOT, "build", "kvjit"), help=argparse.SUPPRESS)
    parser.add_argument("--predictor", default=os.path.join(_ROOT, "build", "tests", "sass", "sass_predict"),
                        help=argparse.SUPPRESS)
    parser.add_argument("--check-document", metavar="FILE", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.record and (options.only or options.quick or options.target):
        parser.error("--record takes all specs and architectures")
    if options.lines and len(options.target or []) != 1:
        parser.error("--lines takes one --target")
    if not _chosen(options):
        parser.error(f"no spec has '{options.only}' in its name")
    return options


def _chosen(options):
    return [spec for spec in kernels.read_specs() if options.only in spec.name and (spec.is_quick or not options.quick)]


def _architectures(options, nvrtc):
    """Those asked for, else all, as far as NVRTC knows them."""
    asked = options.target or kernels.ARCHITECTURES
    for each in asked:
        if not nvrtc.knows(each):
            print(f"left out: {each}, which NVRTC {nvrtc.version} doesn't know")
    known = [each for each in asked if nvrtc.knows(each)]
    if options.record and len(known) < len(asked):
        raise kernels.Failed("--record takes an NVRTC that knows all architectures")
    if not known:
        raise kernels.Missing(f"NVRTC {nvrtc.version} knows none of {', '.join(asked)}")
    return known


def _made(options, specs, architectures):
    with tempfile.TemporaryDirectory(prefix="kvjit-sass-") as folder:
        kernels.offer_nvdisasm(options.nvdisasm, folder)
        return kernels.make(options.kvjit, specs, architectures, folder)


def _measured(options, architectures):
    """{(architecture, name): Figures} of what is chosen, and what compiled it."""
    made = _made(options, _chosen(options), architectures)
    if not made:
        raise kernels.Failed(f"{', '.join(architectures)} has no kernel of its own of these specs")
    return {(each.architecture, each.name): _figures(each) for each in made}, made[0].maker


def _figures(kernel):
    try:
        return figures.of_summary(kernel.program, kernel.summary)
    except figures.Unclear as unclear:
        raise kernels.Failed(f"{kernel.name} for {kernel.architecture}: {unclear}") from unclear


def _print_lines(options, architectures):
    """Of a program, which is compiled with line numbers."""
    os.environ["KVJIT_LINE_INFO"] = "1"
    name = options.lines.rpartition(".")[0]
    named = [spec for spec in kernels.read_specs() if spec.name == name]
    for kernel in _made(options, named, architectures) if named else []:
        if kernel.name == options.lines and _figures(kernel).tile:
            for each in kernel.summary["hot_loop"]["lines"]:
                named = ", ".join(f"{times} {opcode}" for opcode, times in each["opcodes"].items())
                print(f"{each['instructions']:5}  {each['line']:40} {named}")
            return
    raise kernels.Failed(f"{options.lines} is no program of attention in budgets.txt")


# ---- Comparing -----------------------------------------------------------------------------------------------------


def _compare(found, maker, all_found):
    recorded, recorded_maker = budgets.read()
    same_maker = maker == recorded_maker
    wrong = budgets.spilling(found) + budgets.waiting(found)
    if same_maker:
        wrong += budgets.crowded(found) + budgets.differing(recorded, found, all_found)
    for line in wrong:
        print(line)
    if wrong:
        print(f"{len(wrong)} spills, waits, crowded loops and differences from {budgets.FILE}; where the latter are meant: "
              "./dev sass --record")
        return 1
    if not same_maker:
        print(f"SKIP: no program spills, and none but the named two waits for copies; figures are not compared, as they are of another compiler:\n"
              f"recorded {recorded_maker}\nhere     {maker}")
        return _SKIPPED
    print(f"{len(found)} programs have the recorded figures")
    return 0


# ---- The document --------------------------------------------------------------------------------------------------


def _split(text):
    """What stands before, in and after the tables."""
    begin, end = text.index("|  | architecture | "), text.index("\n\n", text.index("| prefill | ")) + 1
    return text[:begin], text[begin:end], text[end:]


def _document(options, recorded):
    return model.document(model.predict(options.predictor, recorded), recorded)


def _write_document(options, recorded):
    tables = _document(options, recorded)
    with open(_DOCUMENT, encoding="utf-8") as file:
        before, _, after = _split(file.read())
    with open(_DOCUMENT, "w", encoding="utf-8") as file:
        file.write(before + tables + after)
    print(f"{_DOCUMENT}: its tables are written")
    return 0


def _record(options, found, maker):
    with open(budgets.FILE, "w", encoding="utf-8") as file:
        file.write(budgets.text_of(found, maker))
    print(f"{budgets.FILE}: {len(found)} programs")
    return _write_document(options, found)


def _check_document(options):
    path = options.check_document
    with open(path, encoding="utf-8") as file:
        shown = _split(file.read())[1]
    if shown == _document(options, budgets.read()[0]):
        return 0
    print(f"{path} shows other tables than ./dev sass --model prints")
    return 1


def _show_model(options):
    if options.check_document:
        return _check_document(options)
    if options.document:
        return _write_document(options, budgets.read()[0])
    print(_document(options, budgets.read()[0]), end="")
    return 0


def main():
    options = _parse()
    try:
        if options.check_document or options.document or options.model:
            return _show_model(options)
        nvrtc = kernels.find_nvrtc(options.kvjit)
        architectures = _architectures(options, nvrtc)
        if options.lines:
            _print_lines(options, architectures)
            return 0
        found, maker = _measured(options, architectures)
    except kernels.Missing as missing:
        print(f"SKIP: {missing}")
        return _SKIPPED
    except (kernels.Failed, measured.Wrong) as failed:
        print(f"sass: {failed}", file=sys.stderr)
        return 2
    maker = f"NVRTC {nvrtc.version}: {maker}"
    if options.record:
        return _record(options, found, maker)
    return _compare(found, maker, not (options.only or options.quick or options.target))


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # a reader such as head may have enough
    sys.exit(main())
