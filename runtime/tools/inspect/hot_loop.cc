#include "inspect/hot_loop.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <utility>

namespace kvjit::tool {
namespace {

/// Multiply-adds, weighed by their share of the instructions.
double product_rank(const InstructionCounts& counts) {
    constexpr int kTileWeight = 64;
    const double products = counts.fmas + counts.multiplies + kTileWeight * counts.tile_products;
    return products * products / std::max(counts.instructions, 1);
}

int traffic_rank(const InstructionCounts& counts) {
    return counts.vector_bytes != 0 ? counts.loads + counts.stores : 0;
}

/// "kvjit::store_run<kvjit::StoreStream>" of "void kvjit::store_run<kvjit::StoreStream>(kvjit::Run const&)".
std::string without_parameters(std::string_view name) {
    int depth = 0;
    for (std::size_t i = 0; i < name.size(); ++i) {
        if (name[i] == '<') ++depth;
        if (name[i] == '>') --depth;
        if (depth == 0 && name[i] == '(') {
            name = name.substr(0, i);
            break;
        }
    }
    return std::string(name.starts_with("void ") ? name.substr(5) : name);
}

}  // namespace

bool find_hot_loop(const std::vector<AssemblyFunction>& functions, HotLoop& found) {
    std::pair best = {-1.0, -1};
    for (const AssemblyFunction& function : functions) {
        for (const AssemblyLoop& loop : function.loops) {
            const std::pair rank = {product_rank(loop.counts), traffic_rank(loop.counts)};
            if (!loop.is_innermost || rank <= best) continue;
            best = rank;
            found = {demangled(function.name), loop};
        }
    }
    return best.second >= 0;
}

std::string demangled(const std::string& name) {
    int status = 0;
    const std::unique_ptr<char, decltype(&std::free)> text(abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status),
                                                           std::free);
    return text ? without_parameters(text.get()) : name;
}

}  // namespace kvjit::tool
