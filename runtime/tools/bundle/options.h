// Options of the commands of `kvjit bundle`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kvjit/kvjit.h"

namespace kvjit::tool {

struct CreateOptions {
    std::string out;
    std::vector<std::string> specs;                          // each a list of its own
    std::vector<std::string> spec_files;                     // of lists; "-": standard input
    std::int64_t max_combinations = KVJIT_MAX_COMBINATIONS;  // of one list
    std::vector<std::string> targets;                        // each with commas between names
    std::optional<std::string> cache_dir;                    // nothing: kvjit's own
    std::optional<std::string> key_file;                     // nothing: not signed
    int jobs = 0;                                            // 0: as many as cores
    bool without_sources = false;
    bool quiet = false;
};

struct ListOptions {
    std::string bundle;
    bool json = false;
};

struct VerifyOptions {
    std::vector<std::string> bundles;
    std::optional<std::string> key;  // hexadecimal digits; nothing: any signature or none
    bool json = false;
};

struct ExtractOptions {
    std::string bundle;
    std::string folder = ".";
    std::string match;  // part of the identity; "": all
};

struct MergeOptions {
    std::string out;
    std::vector<std::string> bundles;
    std::optional<std::string> key_file;  // nothing: not signed
};

struct DiffOptions {
    std::string one, other;
};

struct SignOptions {
    std::string bundle;
    std::string key_file;
};

/// Each prints its results and returns the exit status.
int create_bundle(const CreateOptions& options);
int list_bundle(const ListOptions& options);
int verify_bundles(const VerifyOptions& options);
int extract_bundle(const ExtractOptions& options);
int merge_bundles(const MergeOptions& options);
int diff_bundles(const DiffOptions& options);
int sign_bundle(const SignOptions& options);

}  // namespace kvjit::tool
