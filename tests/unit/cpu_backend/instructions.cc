#include "instructions.h"

#include <doctest/doctest.h>

#include <cstdio>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "support/temporary_folder.h"

namespace kvjit::test {
namespace {

bool names(const Instruction& i, std::string_view text) {
    return i.operands.find(text) != std::string::npos;
}

bool is_one_of(std::string mnemonic, const std::set<std::string>& set) {
    if (set.contains(mnemonic)) return true;
    mnemonic.pop_back();  // the operand size
    return set.contains(mnemonic);
}

struct Family {
    std::string_view feature;
    const char* mnemonics;  // a regular expression
};
/// From the instruction set reference of Intel (and AMD's, for sse4a): the families that compilers choose by
/// themselves.
constexpr Family kFamilies[] = {
    {"fma", "vfn?m(add|sub|addsub|subadd)[0-9].*"},
    {"f16c", "vcvtph2ps|vcvtps2ph"},
    {"avx512vnni", "vpdp(bu|ws)sds?"},
    {"avxvnni", "\\{vex\\} vpdp(bu|ws)sds?"},
    {"avxvnniint8", "vpdpb(ss|su|uu)ds?"},
    {"avxifma", "\\{vex\\} vpmadd52[lh]uq"},
    {"avx512vbmi", "vperm(i2|t2)?b|vpmultishiftqb"},
    {"avx512bf16", "vdpbf16ps|vcvtne2?ps2?bf16.*|vcvtneps2bf16.*"},
    {"avx512fp16",
     "v(add|sub|mul|div|sqrt|min|max|cmp[a-z_]*|fma|fmadd|fnmadd|fmsub|rcp|rsqrt|scalef|reduce|getexp)[0-9]*[ps]h.*|"
     "vcvt(t?ph2(dq|udq|qq|uqq|w|uw|pd|psx)|(dq|udq|qq|uqq|w|uw|pd)2ph|psx?2phx).*|vmovw|vmovsh"},
    {"avx512vbmi2", "vp(shld|shrd)v?[wdq]|vp(compress|expand)[bw]"},
    {"avx512bitalg", "vpopcnt[bw]|vpshufbitqmb"},
    {"avx512vpopcntdq", "vpopcnt[dq]"},
    {"avx512ifma", "vpmadd52[lh]uq"},
    {"avx512vp2intersect", "vp2intersect[dq]"},
    {"avxneconvert", "vbcstneb?f?sh2ps|vcvtnee[bo].*|vcvtneo[bo].*|\\{vex\\} vcvtneps2bf16.*"},
    {"gfni", "v?gf2p8.*"},
    {"pclmul", "v?pclmul.*"},
    {"aes", "v?aes.*"},
    {"sha", "sha(1|256).*"},
    {"amx-tile", "tile.*|ldtilecfg|sttilecfg"},
    {"amx-bf16", "tdpbf16ps"},
    {"amx-fp16", "tdpfp16ps"},
    {"amx-int8", "tdpb[su][su]d"},
    {"sse4a", "extrq|insertq|movnts[ds]"},
};

constexpr std::size_t kFewest = 20;

bool is_prefix(std::string_view word) {
    static const std::set<std::string_view> known = {"rep", "repz", "repnz",   "lock",   "bnd", "cs", "ds",
                                                     "es",  "fs",   "notrack", "data16", "gs",  "ss", "addr32"};
    return word.starts_with('{') || word.starts_with("rex") || known.contains(word);
}

/// "{vex} vpdpbusd %ymm0,%ymm1,%ymm2"
Instruction parse(const std::string& text) {
    std::istringstream words(text);
    Instruction found;
    for (std::string word; words >> word;) {
        if (!is_prefix(word)) {
            found.mnemonic = word;
            break;
        }
        found.prefixes += word + " ";
    }
    std::getline(words >> std::ws, found.operands);
    return found;
}

std::string output_of(const std::string& command) {
    FILE* const pipe = popen(command.c_str(), "r");
    REQUIRE(pipe != nullptr);
    std::string text;
    char part[4096];
    for (std::size_t count; (count = std::fread(part, 1, sizeof part, pipe)) > 0;) text.append(part, count);
    REQUIRE_MESSAGE(pclose(pipe) == 0, command);
    return text;
}

}  // namespace

std::vector<Instruction> instructions(const std::string& text) {
    std::vector<Instruction> found;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        if (!line.starts_with('\t') || line[1] == '.') continue;
        found.push_back(parse(line));
    }
    REQUIRE(found.size() >= kFewest);
    return found;
}

std::vector<Instruction> disassembled(const std::string& object) {
    const TemporaryFolder folder;
    const std::string file = folder.write("program.o", object);
    REQUIRE(
        output_of("'" KVJIT_TEST_OBJDUMP "' --version").starts_with("GNU "));  // LLVM's guesses what it doesn't know
    std::istringstream lines(output_of("'" KVJIT_TEST_OBJDUMP "' -d --no-show-raw-insn '" + file + "'"));
    std::vector<Instruction> found;
    for (std::string line; std::getline(lines, line);) {  // "  2a:\tvmovups %zmm0,(%rdi)"
        const std::size_t colon = line.find(':');
        REQUIRE(!line.starts_with('\t'));  // "\t..." are zeros
        if (!line.starts_with(' ') || colon == std::string::npos) continue;
        found.push_back(parse(line.substr(colon + 1)));
        const std::string& mnemonic = found.back().mnemonic;
        REQUIRE_MESSAGE((!mnemonic.empty() && mnemonic != "(bad)"), line);
    }
    REQUIRE(found.size() >= kFewest);
    return found;
}

bool is_fma(const Instruction& i) {
    return i.mnemonic.starts_with("vfm") || i.mnemonic.starts_with("vfnm");
}
bool is_wide(const Instruction& i) {
    return names(i, "%zmm");
}
bool is_ymm(const Instruction& i) {
    return names(i, "%ymm");
}

// Also the upper sixteen registers, the masks, and what has AVX-512's encoding for no such reason.
bool needs_avx512(const Instruction& i) {
    if (i.prefixes.contains("{evex}")) return true;
    for (int r = 16; r < 32; ++r) {
        if (names(i, "%xmm" + std::to_string(r)) || names(i, "%ymm" + std::to_string(r))) return true;
    }
    for (int k = 0; k < 8; ++k) {
        if (names(i, "%k" + std::to_string(k))) return true;
    }
    return is_wide(i);
}

// But tzcnt, whose bytes older machines execute as bsf: compilers choose it where both give the same.
bool needs_v3(const Instruction& i) {
    static const std::set<std::string> scalar = {"rorx", "shlx", "sarx", "shrx", "andn",  "bextr", "blsi",
                                                 "blsr", "pdep", "pext", "mulx", "lzcnt", "movbe", "bzhi"};
    return i.mnemonic.starts_with('v') || is_ymm(i) || is_one_of(i.mnemonic, scalar);
}

bool needs_v2(const Instruction& i) {
    static const std::set<std::string> of_v2 = {
        "pshufb",   "pmulld",    "pminsd",   "pminud",   "pmaxsd",   "pmaxud",   "pminuw",   "pmaxuw",   "pminsb",
        "pmaxsb",   "roundps",   "roundpd",  "roundss",  "roundsd",  "popcnt",   "pblendw",  "pblendvb", "blendps",
        "blendpd",  "blendvps",  "blendvpd", "pextrb",   "pextrd",   "pextrq",   "pinsrb",   "pinsrd",   "pinsrq",
        "insertps", "extractps", "haddps",   "haddpd",   "hsubps",   "hsubpd",   "movshdup", "movsldup", "movddup",
        "lddqu",    "ptest",     "packusdw", "palignr",  "pabsb",    "pabsw",    "pabsd",    "phaddw",   "phaddd",
        "psignd",   "pmuldq",    "pmovsxbw", "pmovsxbd", "pmovsxwd", "pmovzxbw", "pmovzxbd", "pmovzxwd", "crc32"};
    return is_one_of(i.mnemonic, of_v2);
}

std::vector<Excess> excess(const std::vector<Instruction>& code, const std::function<bool(std::string_view)>& has) {
    std::map<std::string, const Instruction*> first_of;  // by mnemonic: there are few
    for (const Instruction& i : code) {
        const bool is_vex = i.prefixes.contains("{vex}");
        first_of.try_emplace((is_vex ? "{vex} " : "") + i.mnemonic, &i);
    }
    std::vector<Excess> found;
    for (const Family& family : kFamilies) {
        if (has(family.feature)) continue;
        const std::regex mnemonics(family.mnemonics);
        const auto at =
            std::ranges::find_if(first_of, [&](const auto& entry) { return std::regex_match(entry.first, mnemonics); });
        if (at != first_of.end()) found.push_back({family.feature, at->second->mnemonic + " " + at->second->operands});
    }
    return found;
}

}  // namespace kvjit::test
