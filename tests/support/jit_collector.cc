// A library that collects by Intel's JIT profiling interface, as VTune's does: what it is told goes to the file that
// KVJIT_TEST_COLLECTED names, a line each:
//     load ID ADDRESS BYTES NAME<tab>FILE     ADDRESS in hexadecimal; "-" for no file
//     code ID BYTE...                     the function's first bytes, in hexadecimal
//     line ID END NUMBER
//     unload ID
// Its declarations are its own.
#include <cstdio>
#include <cstdlib>

namespace {

struct Line {
    unsigned offset, number;
};
struct Method {
    unsigned id;
    char* name;
    unsigned char* address;
    unsigned size;
    unsigned line_count;
    Line* lines;
    unsigned class_id;
    char* class_file;
    char* source_file;
};

constexpr unsigned kShown = 4;

void tell_loaded(std::FILE* to, const Method& method) {
    std::fprintf(to, "load %u %lx %u %s\t%s\n", method.id, reinterpret_cast<unsigned long>(method.address), method.size,
                 method.name, method.source_file != nullptr ? method.source_file : "-");
    std::fprintf(to, "code %u", method.id);
    for (unsigned i = 0; i < kShown && i < method.size; ++i) std::fprintf(to, " %02x", method.address[i]);
    std::fputc('\n', to);
    for (unsigned i = 0; i < method.line_count; ++i) {
        std::fprintf(to, "line %u %u %u\n", method.id, method.lines[i].offset, method.lines[i].number);
    }
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): the interface's names

/// KVJIT_TEST_COLLECTED=off: nothing is collected.
extern "C" __attribute__((visibility("default"))) unsigned Initialize() {
    const char* name = std::getenv("KVJIT_TEST_COLLECTED");
    return name != nullptr && name[0] == '/' ? 1 : 0;
}

extern "C" __attribute__((visibility("default"))) unsigned NotifyEvent(unsigned event, void* data) {
    constexpr unsigned kLoadFinished = 13, kUnloadStart = 14;
    std::FILE* file = std::fopen(std::getenv("KVJIT_TEST_COLLECTED"), "a");
    if (file == nullptr) return 0;
    if (event == kLoadFinished) tell_loaded(file, *static_cast<Method*>(data));
    if (event == kUnloadStart) std::fprintf(file, "unload %u\n", static_cast<Method*>(data)->id);
    std::fclose(file);
    return 1;
}

// NOLINTEND(readability-identifier-naming)
