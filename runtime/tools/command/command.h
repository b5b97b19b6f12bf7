// A command of `kvjit`: its texts, its options, what it does. main.cc has the tree of them; parsing, errors, help, the
// man page and completion follow from it.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "result.h"

namespace kvjit::tool {

class Options;

/// Runs a command whose options are parsed. The value is the exit status; an error is printed, and is status 2.
using Action = std::function<Result<int>()>;

struct Command {
    std::string_view name;
    std::string_view summary;  // for lists of commands: a sentence without its full stop
    /// Declares the options; what it returns owns their values. Null: a group, which has commands.
    Action (*declare)(Options&) = nullptr;
    std::span<const Command* const> commands = {};
    std::string_view about = "";  // paragraphs with empty lines between; one that begins with a blank is kept as it is
    std::string (*more)() = nullptr;  // a part of the help that is made when it is asked for; may be null
    std::string_view examples = "";   // a line each
    std::string_view status = "";     // "0 all passed, 1 some result was wrong, 2 ..."; "": the usual ones

    bool is_group() const { return declare == nullptr; }
    /// Null: it has no such command.
    const Command* find(std::string_view name) const;
};

/// A command with the words that call it.
struct Called {
    const Command* command;
    std::string words;  // "kvjit bundle create"
};

/// Parses `arguments`, those after the program's name, and runs the command of `root` that they call. Prints errors.
/// Returns the exit status.
int run_command(const Command& root, std::span<char* const> arguments);

}  // namespace kvjit::tool
