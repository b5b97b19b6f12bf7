#include "ptx/machine/kernel.h"

namespace kvjit::ptx {

std::string LineTable::describe(SourcePlace place) const {
    constexpr int kDeepest = 8;
    std::string text;
    for (int depth = 0; depth < kDeepest && place.file != 0; ++depth) {
        const auto file = files.find(place.file);
        text += depth == 0 ? "" : ", inlined at ";
        text += (file == files.end() ? "file " + std::to_string(place.file) : file->second) + ":" +
                std::to_string(place.line);
        const auto outer = inlined_at.find(place);
        if (outer == inlined_at.end()) break;
        place = outer->second;
    }
    return text;
}

std::string LineTable::where(const std::string& kernel, const Origin& origin) const {
    const std::string source = describe(origin.source);
    return kernel + ", PTX line " + std::to_string(origin.line) + (source.empty() ? "" : " (" + source + ")");
}

}  // namespace kvjit::ptx
