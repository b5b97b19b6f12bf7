// `kvjit completion`.
#include <memory>

#include "command/completion.h"
#include "command/options.h"
#include "commands.h"
#include "terminal.h"

namespace kvjit::tool {
namespace {

Action declare(Options& options) {
    auto shell = std::make_shared<std::string>();
    options.choice("SHELL", *shell, {"bash", "zsh"}, "The shell")->required();
    return [shell, &root = options.root()] {
        print(*shell == "bash" ? bash_completion(root) : zsh_completion(root));
        return Result<int>(kExitOk);
    };
}

}  // namespace

constinit const Command kCompletionCommand = {
    .name = "completion",
    .summary = "Print a script that completes kvjit's commands, options, values and specs in a shell",
    .declare = declare,
    .about = "An installed kvjit has the scripts where bash-completion and zsh look for them.",
    .examples =
        "source <(kvjit completion bash)\n"
        "kvjit completion zsh > ~/.zfunc/_kvjit\n"};

}  // namespace kvjit::tool
