#include "command/options.h"

#include <algorithm>
#include <charconv>

#include "command/words.h"
#include "terminal.h"

namespace kvjit::tool {
namespace {

constexpr const char* kTargetHelp =
    "host, x86-64, -v2, -v3, -v4, -v4-vnni, -v4-bf16, -v4-fp16 or -v4-amx, also with features (x86-64-v3+avxvnni), "
    "cuda, cuda:N, sm_80, sm_90a, ... or cuda-emulated; kvjit targets lists them";

/// CLI11 puts the option's name and a colon before what a validator says.
std::string is_not(const std::string& value, const std::string& takes) {
    return "is " + in_quotes(value) + "; it takes " + takes;
}

CLI::Validator words_check(std::vector<std::string> words) {
    return CLI::Validator(
        [words = std::move(words)](const std::string& value) {
            if (std::ranges::find(words, value) != words.end()) return std::string();
            return is_not(value, joined(words)) + meant_of(value, words);
        },
        "");
}

/// A name that a script's variable left empty would leave a hole in every message.
CLI::Validator name_check(Offer offer) {
    const std::string takes = offer == Offer::kFolders ? "the name of a folder" : "the name of a file";
    return CLI::Validator([takes](const std::string& value) { return value.empty() ? is_not(value, takes) : ""; }, "");
}

/// `text` up to the first `end`, or all of it.
std::string before(const std::string& text, std::string_view end) {
    return text.substr(0, text.find(end));
}

}  // namespace

Options::Options(const Command& root, const Called& called) : root_(root), words_(called.words) {
    app_.set_help_flag("-h,--help");
}

CLI::Option* Options::keep(CLI::Option* option, Takes takes, std::string help, std::vector<std::string> words) {
    // A vector takes as many values as are left where it is a positional, and else one for each time that it is given.
    if (!option->get_positional()) option->allow_extra_args(false);
    const bool is_name = takes.offer == Offer::kFiles || takes.offer == Offer::kFolders;
    if (is_name && !takes.may_be_empty) option->check(name_check(takes.offer));
    all_.push_back({option, std::string(takes.what), std::move(help), takes.offer, std::move(words)});
    return option;
}

CLI::Option* Options::flag(const std::string& names, bool& value, std::string help) {
    return keep(app_.add_flag(names, value, ""), {""}, std::move(help), {});
}

CLI::Validator Options::number_check(std::int64_t least, std::int64_t most) {
    return CLI::Validator(
        [least, most](const std::string& value) {
            std::int64_t number = 0;
            const char* end = value.data() + value.size();
            const auto [stopped, error] = std::from_chars(value.data(), end, number);
            if (error == std::errc() && stopped == end && number >= least && number <= most) return std::string();
            return is_not(value, "a whole number from " + std::to_string(least) + " to " + std::to_string(most));
        },
        "");
}

CLI::Option* Options::choice(const std::string& names, std::string& value, std::vector<std::string> words,
                             std::string help) {
    CLI::Option* option = app_.add_option(names, value, "")->capture_default_str();
    option->check(words_check(words));
    return keep(option, {"WORD", Offer::kWords}, std::move(help), std::move(words));
}

CLI::Option* Options::choices(const std::string& names, std::vector<std::string>& values,
                              std::vector<std::string> words, std::string help) {
    CLI::Option* option = app_.add_option(names, values, "")->delimiter(',');
    option->check(words_check(words));
    return keep(option, {"WORD,...", Offer::kWords}, std::move(help), std::move(words));
}

CLI::Option* Options::target(std::string& value) {
    return text("--target", value, kTarget, kTargetHelp);
}

CLI::Option* Options::cache_folder(std::optional<std::string>& value) {
    return text("--cache-dir", value, kFolderOrNone, "Folder of compiled kernels; '' for none");
}

CLI::Option* Options::bundles(std::vector<std::string>& values) {
    return text("--bundle", values, kFile, "A bundle that is asked first, as engines ask it; may be repeated");
}

std::string Options::with_help(const std::string& message) const {
    return message + (message.ends_with('?') ? " kvjit help" : "; kvjit help") +
           words_.substr(std::min(words_.find(' '), words_.size())) + " says more";
}

/// The first argument that no option takes.
Result<void> Options::check_rest() const {
    const std::vector<std::string> rest = app_.remaining();
    const auto is_option = [](const std::string& word) { return word.size() > 1 && word.starts_with('-'); };
    const auto found = std::ranges::find_if(rest, is_option);
    if (found == rest.end()) {
        return rest.empty() ? Result<void>() : fail(with_help(in_quotes(rest.front()) + " is one word too many"));
    }
    const std::string name = before(*found, "=");
    std::vector<std::string> names;
    for (const Option& option : all_) {
        for (const std::string& known : option.parsed->get_lnames()) names.push_back("--" + known);
    }
    return fail(with_help(in_quotes(name) + " is no option of " + words_ + meant_of(name, names)));
}

/// CLI11's errors in kvjit's words.
std::string Options::message_of(const CLI::ParseError& error) const {
    std::string text = error.what();
    const std::string name = error.get_name();
    if (name == "ValidationError") return text.erase(std::min(text.find(": is '"), text.size() - 1), 1);
    if (name == "RequiredError") return with_help(before(text, " is required") + " is missing");
    if (name == "ExcludesError") {
        return text.replace(text.find(" excludes "), 10, " and ") + " can't be given together";
    }
    if (name != "ArgumentMismatch") return with_help(text);
    const std::string option = before(before(text, ":"), " was given");
    const bool too_few = text.contains(" missing") || text.contains("At least") || text.contains("received 1");
    return with_help(option + (too_few ? " lacks a value" : " is given more values than it takes"));
}

Result<bool> Options::parse(std::span<const std::string> arguments) {
    try {
        app_.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));  // in reverse, as CLI11 has it
    } catch (const CLI::CallForHelp&) {
        return false;
    } catch (const CLI::ParseError& error) {
        // A misspelt option may be why another one is missing.
        if (auto rest = check_rest(); !rest) return fail(rest.error());
        return fail(message_of(error));
    }
    for (const auto& check : checks_) {
        if (auto checked = check(); !checked) return fail(with_help(checked.error()));
    }
    return true;
}

}  // namespace kvjit::tool
