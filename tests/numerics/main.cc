// kvjit_numerics [TARGET...]: the tables of docs/numerics.md, a line for each kind of kernel and target (default:
// host). Fails where an error is beyond what that page promises, or a target can't run here.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "attention.h"

namespace {

using namespace kvjit::test;

constexpr Difficulty kDifficulties[] = {{5, 1}, {27, 1}, {80, 1}, {27, 30}, {80, 100}};
constexpr std::uint64_t kSeeds[] = {1, 2, 3};

std::vector<Kind> kinds() {
    struct Cache {
        const char* name;
        kvjit_dtype type;
        int bits, group;
    };
    std::vector<Kind> all;
    for (const auto& [t1_name, t1] :
         {std::pair{"float32", KVJIT_F32}, {"float16", KVJIT_F16}, {"bfloat16", KVJIT_BF16}}) {
        for (const Cache& cache :
             {Cache{t1_name, t1, 0, 0}, {"int8 g32", KVJIT_I8, 8, 32}, {"int4 g32", KVJIT_I8, 4, 32}}) {
            for (const std::int64_t tokens : {1, 64}) {
                const std::string over = cache.bits == 0 ? "" : std::string(" over ") + cache.name;
                all.push_back({std::string(t1_name) + over + (tokens == 1 ? ", decode" : ", prefill"), t1, cache.type,
                               cache.bits, cache.group, tokens});
            }
        }
    }
    return all;
}

/// The promise. Prefill's sums of float32 are themselves off by more where scores are large, and so are GPUs'
/// exponents, which are powers of 2 of a rounded product.
double most(const Kind& kind, const Difficulty& data, bool on_gpu) {
    const bool decodes_on_cpu = kind.tokens == 1 && !on_gpu;
    if (kind.t1 == KVJIT_F32) return decodes_on_cpu ? 1e-5 : 1e-5 * std::max(on_gpu ? 2.0 : 1.0, data.score / 30);
    return kind.t1 == KVJIT_F16 ? 1e-3 : 8e-3;
}

/// The worst over all seeds.
struct Errors {
    double error = 0, rounding = 0;

    void add(const Attention& attention) {
        error = worse(error, attention.error());
        rounding = std::max(rounding, attention.rounding());
    }
};

/// For each difficulty.
kvjit::Result<std::vector<Errors>> measure(const kvjit::Engine& engine, const kvjit::Target& target, const Kind& kind) {
    std::vector<Errors> errors(std::size(kDifficulties));
    for (const std::uint64_t seed : kSeeds) {
        Attention attention(kind, seed);
        for (std::size_t i = 0; i < errors.size(); ++i) {
            attention.draw_queries(kDifficulties[i], seed + 1);
            if (const auto ran = attention.run(engine, target); !ran) return ran.error();
            errors[i].add(attention);
        }
    }
    return errors;
}

/// Prints the kind's line. Returns whether all is as promised.
bool print_line(const kvjit::Engine& engine, const kvjit::Target& target, const std::string& name, const Kind& kind) {
    const auto errors = measure(engine, target, kind);
    if (!errors) {
        std::fprintf(stderr, "kvjit_numerics: %s: %s\n", kind.name.c_str(), errors.error().message());
        return false;
    }
    const bool on_gpu = name.starts_with("cuda");
    std::string line = "| " + kind.name + " | " + name + " |";
    bool good = true;
    for (std::size_t i = 0; i < errors->size(); ++i) {
        const Errors& found = (*errors)[i];
        char cell[64];
        std::snprintf(cell, sizeof cell, " %.1e (%.1e) |", found.error, found.rounding);
        line += cell;
        const double allowed = most(kind, kDifficulties[i], on_gpu);
        if (found.error <= allowed) continue;
        std::fprintf(stderr, "kvjit_numerics: %s, %s: more than %g\n", kind.name.c_str(), name.c_str(), allowed);
        good = false;
    }
    std::printf("%s\n", line.c_str());
    return good;
}

bool print_target(const kvjit::Engine& engine, const std::string& name) {
    if (name.starts_with("sm_") || (name.starts_with("cuda") && !name.starts_with("cuda-emulated")))
        return std::fprintf(stderr, "kvjit_numerics: %s: a GPU doesn't reach these tensors; cuda-emulated does\n",
                            name.c_str()),
               false;
    const auto target = kvjit::Target::cpu(name);
    if (!target) return std::fprintf(stderr, "kvjit_numerics: %s\n", target.error().message()), false;
    bool good = true;
    for (const Kind& kind : kinds()) good = print_line(engine, *target, name, kind) && good;
    return good;
}

std::string words(const Difficulty& data) {
    const std::string scores = "scores to " + std::to_string(static_cast<int>(data.score));
    return data.outlier == 1 ? scores : scores + ", outlier x" + std::to_string(static_cast<int>(data.outlier));
}

void print_head() {
    std::string head = "| kernel | target |", line = "|---|---|";
    for (const Difficulty& data : kDifficulties) {
        head += " " + words(data) + " |";
        line += "---|";
    }
    std::printf("%s\n%s\n", head.c_str(), line.c_str());
}

}  // namespace

int main(int argc, char** argv) {
    std::vector<std::string> targets(argv + 1, argv + argc);
    if (targets.empty()) targets = {"host"};
    const auto engine = kvjit::Engine::create();
    if (!engine) return std::fprintf(stderr, "kvjit_numerics: %s\n", engine.error().message()), 1;
    print_head();
    bool good = true;
    for (const std::string& target : targets) good = print_target(*engine, target) && good;
    return good ? 0 : 1;
}
