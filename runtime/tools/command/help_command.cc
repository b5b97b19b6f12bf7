// `kvjit help`.
#include <memory>

#include "command/find.h"
#include "command/help.h"
#include "command/options.h"
#include "commands.h"
#include "terminal.h"

namespace kvjit::tool {
namespace {

struct Request {
    std::vector<std::string> words;
    bool man = false;
};

Result<int> help(const Command& root, const Request& request) {
    if (request.man) {
        print(man_page(root));
        return kExitOk;
    }
    std::span<const std::string> rest = request.words;
    const Result<Called> called = find_called(root, rest);
    if (!called) return fail(called.error());
    if (!rest.empty()) {
        return fail(in_quotes(rest.front()) + " is one word too many after help" +
                    called->words.substr(root.name.size()));
    }
    print(help_text(root, *called));
    return kExitOk;
}

Action declare(Options& options) {
    auto request = std::make_shared<Request>();
    std::vector<std::string> names;
    for (const Command* command : options.root().commands) names.emplace_back(command->name);
    CLI::Option* words =
        options.text("COMMAND", request->words, {"COMMAND", Offer::kWords}, "The command's words", std::move(names));
    options.flag("--man", request->man, "A man page of all commands, for man")->excludes(words);
    return [request, &root = options.root()] { return help(root, *request); };
}

}  // namespace

constinit const Command kHelpCommand = {.name = "help",
                                        .summary = "Show what a command is for and what it takes",
                                        .declare = declare,
                                        .examples =
                                            "kvjit help inspect\n"
                                            "kvjit help bundle create\n"
                                            "kvjit help --man | man -l -\n"};

}  // namespace kvjit::tool
