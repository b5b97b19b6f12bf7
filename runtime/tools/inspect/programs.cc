#include "inspect/programs.h"

#include "kvjit/kvjit.h"

namespace kvjit::tool {
namespace {

void collect_program(void* programs, std::uint32_t program, const char* name) {
    static_cast<std::map<std::string, std::uint32_t>*>(programs)->emplace(name, program);
}

}  // namespace

std::map<std::string, std::uint32_t> program_names() {
    std::map<std::string, std::uint32_t> programs{{"all", KVJIT_ALL_PROGRAMS}};
    kvjit_program_list(collect_program, &programs);
    return programs;
}

std::string names_of(std::uint32_t programs) {
    std::string names;
    for (const auto& [name, bit] : program_names()) {
        if (bit != KVJIT_ALL_PROGRAMS && (bit & programs) != 0) names += (names.empty() ? "" : ", ") + name;
    }
    return names;
}

}  // namespace kvjit::tool
