#include "command/command.h"

#include <algorithm>
#include <vector>

#include "command/find.h"
#include "command/help.h"
#include "command/options.h"
#include "command/words.h"
#include "terminal.h"

namespace kvjit::tool {
namespace {

bool asks_for_help(const std::string& word) {
    return word == "--help" || word == "-h";
}

std::vector<std::string> names_of(const Command& group) {
    std::vector<std::string> names;
    for (const Command* command : group.commands) names.emplace_back(command->name);
    return names;
}

std::unexpected<std::string> no_command(const Called& group, const std::string& given) {
    const std::vector<std::string> names = names_of(*group.command);
    const std::string meant = meant_of(given, names);
    return fail(in_quotes(given) + " is no command of " + group.words + "; it takes " + joined(names) + meant);
}

std::unexpected<std::string> no_option(const Command& root, const Called& group, const std::string& given) {
    const std::string name = given.substr(0, given.find('='));
    std::vector<std::string> options = {"--help"};
    if (group.command == &root) options.emplace_back("--version");
    return fail(in_quotes(name) + " is no option of " + group.words + "; it takes " + joined(options) +
                ", or a command: " + joined(names_of(*group.command)) + meant_of(name, options));
}

/// `words`: those that are left after a group's own. Prints what was asked for.
Result<int> run_group(const Command& root, const Called& group, std::span<const std::string> words) {
    if (words.empty()) {
        return fail("a command of " + group.words + " is missing; it takes " + joined(names_of(*group.command)));
    }
    if (asks_for_help(words[0])) {
        print(help_text(root, group));
    } else if (words[0] == "--version" && group.command == &root) {
        print(version_text() + "\n");
    } else {
        return words[0].starts_with('-') ? no_option(root, group, words[0]) : no_command(group, words[0]);
    }
    return kExitOk;
}

Result<int> run_words(const Command& root, const std::vector<std::string>& words) {
    std::span<const std::string> rest = words;
    const Result<Called> called = find_called(root, rest);
    if (!called) return fail(called.error());
    if (called->command->is_group()) return run_group(root, *called, rest);
    Options options(root, *called);
    const Action action = called->command->declare(options);
    const Result<bool> parsed = options.parse(rest);
    if (!parsed) return fail(parsed.error());
    if (*parsed) return action();
    print(help_text(root, *called));
    return kExitOk;
}

}  // namespace

const Command* Command::find(std::string_view given) const {
    const auto found = std::ranges::find(commands, given, [](const Command* command) { return command->name; });
    return found != commands.end() ? *found : nullptr;
}

Result<Called> find_called(const Command& root, std::span<const std::string>& words) {
    Called called{&root, std::string(root.name)};
    while (called.command->is_group() && !words.empty() && !words[0].starts_with('-')) {
        const Command* command = called.command->find(words[0]);
        if (command == nullptr) return no_command(called, words[0]);
        called = {command, called.words + " " + words[0]};
        words = words.subspan(1);
    }
    return called;
}

int run_command(const Command& root, std::span<char* const> arguments) {
    const Result<int> status = run_words(root, {arguments.begin(), arguments.end()});
    if (status) return *status;
    complain(status.error());
    return kExitBadInput;
}

}  // namespace kvjit::tool
