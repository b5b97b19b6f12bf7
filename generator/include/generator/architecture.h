// CUDA's architectures: their names, the known ones, and which GPUs run whose code. Queries no compiler and no GPU.
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
    int number = 0;   // ten times the compute capability; 0: not an architecture's name
    char letter = 0;  // 'a': for this number alone; 'f': for its family; 0: also for later ones of its generation

    std::string name() const;
    bool operator==(const Architecture&) const = default;
};
Architecture architecture_of(std::string_view name);

/// An architecture that kernels can be compiled for by some version of CUDA.
struct KnownArchitecture {
    int number;
    int cuda;       // the first version that supports it: 12080 for 12.8
    bool is_tegra;  // runs no other architecture's code, and its code runs nowhere else
    // Versions of CUDA from `renamed_by` on call it `new_number`, and compile for that name alone. 0: it kept its
    // number.
    int renamed_by = 0;
    int new_number = 0;
};
/// All known architectures, ascending.
std::span<const KnownArchitecture> known_architectures();
/// Null: the number isn't in the list.
const KnownArchitecture* find_architecture(int number);

/// "12.8" of 12080.
std::string cuda_version_text(int version);

/// What helps where an NVRTC of `version` doesn't compile for the architecture.
std::string unknown_architecture_help(const Architecture& wanted, int version);

/// Whether a GPU of architecture `number` runs `code`: code for the same number, and code without an 'a' for a lower
/// number of the same generation, except on Tegra ("CUDA C++ Programming Guide", "Binary Compatibility").
bool runs_code(int number, const Architecture& code);

/// The known architectures whose code a GPU of `own` runs: families, then plain ones, each in descending order.
std::vector<Architecture> runnable_code(const Architecture& own);

/// Parses a name. Its number must be in the list or in `further`, and have the letter. Errors: KVJIT_BAD_TARGET.
Result<Architecture> named_architecture(std::string_view name, std::span<const int> further);

/// The architectures that a compiler supports.
struct ArchitectureList {
    std::span<const int> numbers;
    bool has_families = true;  // names with an 'f'
};
/// `wanted`, if the compiler supports it; else the highest supported number, without a letter, whose code `wanted`'s
/// GPUs run; nullopt if there is none.
std::optional<Architecture> nearest_architecture(const Architecture& wanted, const ArchitectureList& list);

}  // namespace kvjit::gen
