// `kvjit bundle` on the command line.
#pragma once

#include <CLI/CLI.hpp>

#include <span>
#include <string>

#include "bundle/options.h"
#include "result.h"

namespace kvjit::tool {

/// The error names the word in place of a command of `kvjit bundle`; `words` follow `kvjit bundle`.
Result<void> check_bundle_command(std::span<const std::string> words);

/// The subcommand `bundle` of `app`, with its own subcommands. Must live until the app is parsed.
class BundleCommand {
public:
    explicit BundleCommand(CLI::App& app);
    BundleCommand(const BundleCommand&) = delete;
    BundleCommand& operator=(const BundleCommand&) = delete;

    bool parsed() const { return command_->parsed(); }
    /// Runs the chosen subcommand and returns the exit status.
    int run() const;

private:
    CLI::App* add_create();
    CLI::App* add_list();
    CLI::App* add_verify();
    CLI::App* add_extract();
    CLI::App* add_merge();
    CLI::App* add_diff();
    CLI::App* add_sign();

    CLI::App* command_;
    CreateOptions create_;
    ListOptions list_;
    VerifyOptions verify_;
    ExtractOptions extract_;
    MergeOptions merge_;
    DiffOptions diff_;
    SignOptions sign_;
    CLI::App *creating_, *listing_, *verifying_, *extracting_, *merging_, *diffing_, *signing_;
};

}  // namespace kvjit::tool
