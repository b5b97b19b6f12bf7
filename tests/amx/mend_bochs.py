#!/usr/bin/env python3
"""Mends what keeps Bochs 3.0 from running kernels with AMX under Linux: mend_bochs.py FOLDER, that of its source.

It lacks XFD (extended feature disable; Intel SDM, volume 1, section 13.14): CPUID.(EAX=0DH,ECX=1):EAX[4] says that a
processor has XFD, and ECX[2] of a component's own leaf that XFD governs this component. While the bit of a component is
set in the register IA32_XFD, instructions that need the component raise #NM (device not available), and IA32_XFD_ERR
has the bit. TILERELEASE raises none.

It knows STTILECFG with VEX.W 1 alone; volume 2 gives it W 0. It multiplies signed bytes as if they were unsigned. And a
thread loses its tiles when another takes its place: XSAVE and STTILECFG store rows where bytes a row belong, and bytes
where rows do (volume 2, LDTILECFG, has the format); XSAVE and XRSTOR take 8 of the 16 rows of a tile; XINUSE says the
opposite, so that just tiles without numbers are stored (while XFD is set, none may be); and XRSTOR of a compacted area
looks for them in the wrong place, if the area has a component before them that it does not ask for, as Linux does not
for the protection keys (volume 1, section 13.4.3, has the format).
"""

import pathlib
import re
import sys

TILE_DATA = 18  # the bit of XCR0
SIGNED_BYTES = r"Bit32u {0}\(Bit32u x, Bit32u y\)\n(?:.*\n){{1,2}}?  const (Bit8u) {1}byte\[4\]"

# File, a pattern that occurs in it once, and what follows the match.
INSERTIONS = [
    ("cpu/cpu.h", r"\bBit64u ia32_xss;", "\n  Bit64u ia32_xfd = 0, ia32_xfd_err = 0;"),
    (
        "cpu/cpuid.cc",
        r"// EAX\[4\] - support for XFD\n\s*leaf->eax = 0;",
        "\n    if (is_cpu_extension_supported(BX_ISA_AMX)) leaf->eax |= 1 << 4;",
    ),
    (
        "cpu/cpuid.cc",
        r"leaf->ecx = \(cpu->ia32_xss_suppmask .*;",
        f"\n      if (subfunction == {TILE_DATA}) leaf->ecx |= 1 << 2;",
    ),
    (
        "cpu/proc_ctrl.cc",
        r"BxNoAMX(?:.*\n)+?.*XTILEDATA_MASK\)\)\n.*exception\(BX_UD_EXCEPTION, 0\);",
        f"\n  if (BX_CPU_THIS_PTR msr.ia32_xfd & (1 << {TILE_DATA})) {{"
        f"\n    BX_CPU_THIS_PTR msr.ia32_xfd_err |= 1 << {TILE_DATA};"
        "\n    exception(BX_NM_EXCEPTION, 0);"
        "\n  }",
    ),
    (
        "cpu/msr.cc",
        r"\bbool .*BX_CPU_C::rdmsr\(.*\n\{",
        "\n  if (index == 0x1c4) { *msr = BX_CPU_THIS_PTR msr.ia32_xfd; return true; }"
        "\n  if (index == 0x1c5) { *msr = BX_CPU_THIS_PTR msr.ia32_xfd_err; return true; }",
    ),
    (
        "cpu/msr.cc",
        r"\bbool .*BX_CPU_C::wrmsr\(.*\n\{",
        "\n  if (index == 0x1c4) { BX_CPU_THIS_PTR msr.ia32_xfd = val_64; handleAvxModeChange(); return true; }"
        "\n  if (index == 0x1c5) { BX_CPU_THIS_PTR msr.ia32_xfd_err = val_64; return true; }",
    ),
]

# File, a pattern that occurs in it once, and what takes the place of its group.
REPLACEMENTS = [
    (
        "cpu/proc_ctrl.cc",
        r"xcr0\.val32 & \(BX_XCR0_XTILECFG_MASK \| BX_XCR0_XTILEDATA_MASK\)\) != 0(\))\n\s*clear_amx_ok",
        f" || (BX_CPU_THIS_PTR msr.ia32_xfd & (1 << {TILE_DATA})) != 0)",
    ),
    ("cpu/decoder/ia_opcodes.def", r"BX_IA_TILERELEASE,.*(BX_PREPARE_AMX)\)", "0"),
    ("cpu/decoder/fetchdecode_opmap_avx.cc", r"(ATTR_VEX_W1) .*, BX_IA_STTILECFG\)", "ATTR_VEX_W0"),
    ("cpu/avx/amx.cc", SIGNED_BYTES.format("DPBDSS", "x"), "Bit8s"),
    ("cpu/avx/amx.cc", SIGNED_BYTES.format("DPBDSS", "y"), "Bit8s"),
    ("cpu/avx/amx.cc", SIGNED_BYTES.format("DPBDSU", "x"), "Bit8s"),
    ("cpu/avx/amx.cc", SIGNED_BYTES.format("DPBDUS", "y"), "Bit8s"),
    ("cpu/xsave.cc", r"vmm16u\(8\+n\) .*tilecfg\[n\]\.(rows);", "bytes_per_row"),
    ("cpu/xsave.cc", r"vmmubyte\(48\+n\) .*tilecfg\[n\]\.(bytes_per_row);", "rows"),
    ("cpu/xsave.cc", r"row < (BX_TILE_REGISTERS); row\+\+\) \{\n\s*write_", "BX_TILE_MAX_ROWS"),
    ("cpu/xsave.cc", r"row < (BX_TILE_REGISTERS); row\+\+\) \{\n\s*read_", "BX_TILE_MAX_ROWS"),
    (
        "cpu/xsave.cc",
        r"tile_use_tracker (==) 0\);",
        f"!= 0 && (BX_CPU_THIS_PTR msr.ia32_xfd & (1 << {TILE_DATA})) ==",
    ),
    (
        "cpu/xsave.cc",
        r"(\n\s*if \(format & feature_mask\)\n\s*offset \+= xsave_restore\[feature\]\.len;\n\s*\})",
        "\n      }\n      if (format & feature_mask)\n        offset += xsave_restore[feature].len;",
    ),
    ("cpu/avx/amx.h", r"AMX\(\): palette_id\(0\), (start_row\(0\)) ", "start_row(0), tile_use_tracker(0)"),
]


def one_match(path, text, pattern):
    found = list(re.finditer(pattern, text))
    if len(found) != 1:
        sys.exit(f"mend_bochs.py: {path} has {len(found)} places of {pattern}, not 1: is this Bochs 3.0?")
    return found[0]


def main(folder):
    for name, pattern, added in INSERTIONS:
        path = folder / name
        text = path.read_text()
        end = one_match(path, text, pattern).end()
        path.write_text(text[:end] + added + text[end:])
    for name, pattern, other in REPLACEMENTS:
        path = folder / name
        text = path.read_text()
        begin, end = one_match(path, text, pattern).span(1)
        path.write_text(text[:begin] + other + text[end:])


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(pathlib.Path(sys.argv[1]))
