// The options of one command: declared once, for CLI11 to parse, and for help, man page and completion to show.
#pragma once

#include <CLI/CLI.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "command/command.h"
#include "result.h"

namespace kvjit::tool {

/// What shells offer for a value.
enum class Offer { kNothing, kWords, kFiles, kFolders, kTargets, kSpec };

/// What a value is called in the help, and how it is completed. Names of files and folders are not empty, unless that
/// means something.
struct Takes {
    std::string_view what;
    Offer offer = Offer::kNothing;
    bool may_be_empty = false;
};
inline constexpr Takes kFile{"FILE", Offer::kFiles};
inline constexpr Takes kFolder{"FOLDER", Offer::kFolders};
inline constexpr Takes kFolderOrNone{"FOLDER", Offer::kFolders, true};
inline constexpr Takes kTarget{"TARGET", Offer::kTargets};
inline constexpr Takes kSpec{"SPEC", Offer::kSpec};

/// A declared option, flag or positional.
struct Option {
    CLI::Option* parsed;
    std::string takes;  // "FILE", "N"; "": a flag
    std::string help;
    Offer offer = Offer::kNothing;
    std::vector<std::string> words = {};  // that it takes, or that may be offered

    bool is_flag() const { return takes.empty(); }
    bool is_positional() const { return parsed->get_positional(); }
};

class Options {
public:
    /// `root`: the whole command, which help and completion are about.
    Options(const Command& root, const Called& called);
    Options(const Options&) = delete;
    Options& operator=(const Options&) = delete;

    /// Names as CLI11 has them: "-o,--output", or "FILE" for a positional. Of an option with a default, the bound value
    /// is that. `words`: to offer, of kWords; others are taken, too. A vector takes one value for each time that an
    /// option is given, and all that is left as a positional.
    CLI::Option* flag(const std::string& names, bool& value, std::string help);
    template <class Text>
    CLI::Option* text(const std::string& names, Text& value, Takes takes, std::string help,
                      std::vector<std::string> words = {}) {
        CLI::Option* option = app_.add_option(names, value, "");
        if constexpr (std::is_same_v<Text, std::string>) option->capture_default_str();
        return keep(option, takes, std::move(help), std::move(words));
    }
    /// A whole number from `least` to `most`.
    template <class Number>
    CLI::Option* number(const std::string& names, Number& value, std::int64_t least, std::int64_t most,
                        std::string help) {
        CLI::Option* option = app_.add_option(names, value, "")->capture_default_str();
        return keep(option, {"N"}, std::move(help), {})->check(number_check(least, most));
    }
    /// One of some words; of a vector, any of them, with commas between.
    CLI::Option* choice(const std::string& names, std::string& value, std::vector<std::string> words, std::string help);
    CLI::Option* choices(const std::string& names, std::vector<std::string>& values, std::vector<std::string> words,
                         std::string help);

    /// Options that several commands have.
    CLI::Option* target(std::string& value);
    CLI::Option* cache_folder(std::optional<std::string>& value);
    CLI::Option* bundles(std::vector<std::string>& values);
    CLI::Option* json(bool& value) { return flag("--json", value, "As JSON, for programs"); }

    /// A check after all options are parsed. Its error is the command's.
    void check(std::function<Result<void>()> check) { checks_.push_back(std::move(check)); }

    /// `arguments`: those after the command's words. False: help is asked for. Errors: "--emit is 'wasm'; it takes
    /// ...".
    Result<bool> parse(std::span<const std::string> arguments);

    const Command& root() const { return root_; }
    const std::vector<Option>& all() const { return all_; }

private:
    CLI::Option* keep(CLI::Option* option, Takes takes, std::string help, std::vector<std::string> words);
    static CLI::Validator number_check(std::int64_t least, std::int64_t most);
    /// The message, and where to read more.
    std::string with_help(const std::string& message) const;
    std::string message_of(const CLI::ParseError& error) const;
    Result<void> check_rest() const;

    const Command& root_;
    std::string words_;  // that call the command
    CLI::App app_;
    std::vector<Option> all_;
    std::vector<std::function<Result<void>()>> checks_;
};

}  // namespace kvjit::tool
