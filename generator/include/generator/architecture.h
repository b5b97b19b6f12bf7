// CUDA's architectures: their names, which there are, whose code runs where. Nothing here asks a compiler or a GPU.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "generator/error.h"

namespace kvjit::gen {

/// "sm_90a" is 90 and 'a'.
struct Architecture {
    int number = 0;   // ten times the compute capability; 0: the name is no architecture's
    char letter = 0;  // 'a': for this number alone; 'f': for its family; 0: for later numbers of its generation too

    std::string name() const;
    bool operator==(const Architecture&) const = default;
};
Architecture architecture_of(std::string_view name);

/// An architecture that kernels can be compiled for by some version of CUDA.
struct KnownArchitecture {
    int number;
    int cuda;       // the first version that knows it: 12080 for 12.8
    bool is_tegra;  // runs no other architecture's code, and its code runs nowhere else
};
/// Ascending. The one list of them.
std::span<const KnownArchitecture> known_architectures();
/// Null: the number isn't in the list.
const KnownArchitecture* find_architecture(int number);

/// Whether a GPU of architecture `number` runs `code`: its own; without an 'a' also that of lower numbers of its
/// generation, Tegra apart ("CUDA C++ Programming Guide", "Binary Compatibility").
bool runs_code(int number, const Architecture& code);

/// The architectures in the list whose code a GPU of `own` runs: families, then plain ones, each from the highest on.
std::vector<Architecture> runnable_code(const Architecture& own);

/// Whether there is such an architecture: its number in the list or in `further`, its letter one that the number has.
/// Errors: KVJIT_BAD_TARGET.
Result<Architecture> named_architecture(std::string_view name, std::span<const int> further);

/// What a compiler knows.
struct ArchitectureList {
    std::span<const int> numbers;
    bool has_families = true;  // names with an 'f'
};
/// `wanted`, if the compiler knows it; else, without a letter, its number, or the highest below it whose code its GPUs
/// run. Nothing: there is none.
std::optional<Architecture> nearest_architecture(const Architecture& wanted, const ArchitectureList& list);

}  // namespace kvjit::gen
