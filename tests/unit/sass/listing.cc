#include "listing.h"

#include <cstdio>

namespace kvjit::tool::sass {

const Lines kDecode = {
    "MOV R1, RZ",
    "MOV R9, RZ",
    ".L_x_1:",
    "DEPBAR.LE SB0, 0x2",
    "LDG.E.U16 R4, desc[UR4][R2.64]",
    "STS.U16 [R5], R4",
    "BSSY B0, `(.L_x_3)",
    "@!P0 BRA `(.L_x_2)",
    "LDGSTS.E.BYPASS.128 [R6], desc[UR4][R2.64]",
    "LDGSTS.E.BYPASS.128 [R6+0x200], desc[UR4][R2.64]",
    ".L_x_2:",
    "BSYNC B0",
    ".L_x_3:",
    "LDGDEPBAR",
    "LDS.128 R12, [R8]",
    "HMMA.16816.F32 R16, R12, R20, R16",
    "HMMA.16816.F32 R16, R12, R22, R16",
    "@P1 BRA `(.L_x_4)",
    "FMUL R16, R16, R7",
    "FMUL R17, R17, R7",
    ".L_x_4:",
    "MUFU.EX2 R10, R10",
    "VIADD R9, R9, 0x1",
    "ISETP.GE.AND P2, PT, R9, R11, PT",
    "@!P2 BRA `(.L_x_1)",
    "LDL R3, [R1]",
    "EXIT",
};

std::string listing_of(const Lines& lines) {
    std::string text = "\t.section\t.text.kvjit_attend_decode,\"ax\",@progbits\n";
    int address = 0;
    for (const std::string& line : lines) {
        if (line.starts_with(".L_x_")) {
            text += line + "\n";
            continue;
        }
        const std::size_t guard = line.starts_with('@') ? line.find(' ') : 0;
        char begin[64];
        std::snprintf(begin, sizeof begin, "        /*%04x*/ %18s ", static_cast<unsigned>(address),
                      line.substr(0, guard).c_str());
        text += begin + line.substr(guard == 0 ? 0 : guard + 1) + " ;\n";
        address += 16;
    }
    return text;
}

Code code_of(const Lines& lines) {
    return read_code(listing_of(lines));
}

Instruction instruction_of(const std::string& line) {
    return code_of({line}).at(0).instructions.at(0);
}

Lines repeated(const Lines& lines, int times) {
    return joined(std::vector<Lines>(static_cast<std::size_t>(times), lines));
}

Lines joined(const std::vector<Lines>& parts) {
    Lines all;
    for (const Lines& part : parts) all.insert(all.end(), part.begin(), part.end());
    return all;
}

}  // namespace kvjit::tool::sass
