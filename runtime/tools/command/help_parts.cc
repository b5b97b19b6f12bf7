#include "command/help_parts.h"

#include <algorithm>

#include "command/options.h"
#include "command/words.h"

namespace kvjit::tool {
namespace {

constexpr std::string_view kStatus = "0 all well, 2 bad arguments, files, target or output";

/// Splits at empty lines.
std::vector<std::string> paragraphs_of(std::string_view text) {
    std::vector<std::string> paragraphs;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find("\n\n"), text.size());
        paragraphs.emplace_back(text.substr(0, end));
        text.remove_prefix(std::min(end + 2, text.size()));
    }
    return paragraphs;
}

bool takes_several(const Option& option) {
    return option.parsed->get_items_expected_max() > 1;
}

/// "-o, --output FILE"
std::string term_of(const Option& option) {
    if (option.is_positional()) return option.parsed->get_name(true) + (takes_several(option) ? "..." : "");
    std::string term;
    for (const std::string& name : option.parsed->get_snames()) term += "-" + name + ", ";
    for (const std::string& name : option.parsed->get_lnames()) term += "--" + name;
    return option.is_flag() ? term : term + " " + option.takes;
}

std::string text_of(const Option& option) {
    std::string text = option.help;
    if (option.offer == Offer::kWords) text += ": " + joined(option.words);
    const std::string value = option.parsed->get_default_str();
    if (!option.is_flag() && !value.empty()) text += " [" + value + "]";
    return text;
}

std::string usage_of(const std::string& words, const Options& options) {
    std::string usage = words + " [OPTION...]";
    for (const Option& option : options.all()) {
        const std::string term = term_of(option);
        if (option.is_positional()) {
            usage += option.parsed->get_required() ? " " + term : " [" + term + "]";
        } else if (option.parsed->get_required()) {
            usage += " " + term;
        }
    }
    return usage;
}

void add_rows(const Options& options, std::vector<HelpPart>& parts) {
    HelpPart arguments{"Arguments"}, named{"Options"};
    for (const Option& option : options.all()) {
        HelpPart& part = option.is_positional() ? arguments : named;
        part.rows.push_back({term_of(option), text_of(option)});
    }
    named.rows.push_back({"-h, --help", "This text"});
    if (!arguments.rows.empty()) parts.push_back(std::move(arguments));
    parts.push_back(std::move(named));
}

void add_commands(const Command& group, const std::string& words, std::vector<HelpPart>& parts) {
    HelpPart commands{"Commands"};
    for (const Command* command : group.commands) {
        commands.rows.push_back({std::string(command->name), std::string(command->summary)});
    }
    const std::string path = words.substr(std::min(words.find(' '), words.size()));
    commands.paragraphs = {"kvjit help" + path + " COMMAND says more about one of them."};
    parts.push_back(std::move(commands));
}

}  // namespace

HelpParts help_parts(const Command& root, const Called& called) {
    const Command& command = *called.command;
    HelpParts help{called.words + " COMMAND ...", std::string(command.summary) + ".", {}};
    if (command.is_group()) {
        add_commands(command, called.words, help.parts);
    } else {
        Options options(root, called);
        command.declare(options);
        help.usage = usage_of(called.words, options);
        add_rows(options, help.parts);
    }
    if (!command.about.empty()) help.parts.push_back({"Notes", paragraphs_of(command.about)});
    if (command.more != nullptr) help.parts.push_back({"Fields of a spec", {}, {}, command.more()});
    if (!command.examples.empty()) help.parts.push_back({"Examples", {}, {}, std::string(command.examples)});
    help.parts.push_back({"Exit status", {std::string(command.status.empty() ? kStatus : command.status) + "."}});
    return help;
}

}  // namespace kvjit::tool
