#include "inspect/sass/disassembler.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "environment.h"
#include "terminal.h"

namespace kvjit::tool {
namespace {

constexpr const char* kToolkit = "/usr/local/cuda/bin";

/// The file of this name in a folder of $PATH, or in the toolkit's.
std::optional<std::string> find_tool(const char* name) {
    std::istringstream folders(rt::environment_text("PATH").value_or("") + ":" + kToolkit);
    for (std::string folder; std::getline(folders, folder, ':');) {
        std::string path = folder + "/" + name;
        if (!folder.empty() && access(path.c_str(), X_OK) == 0) return path;
    }
    return std::nullopt;
}

/// A file that lives as long as this object.
class TemporaryFile {
public:
    explicit TemporaryFile(const std::string& bytes) : path_(std::filesystem::temp_directory_path() / "kvjit-XXXXXX") {
        const int file = mkstemp(path_.data());
        if (file < 0) return;
        is_written_ = write(file, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
        close(file);
        if (!is_written_) unlink(path_.c_str());
    }
    ~TemporaryFile() {
        if (is_written_) unlink(path_.c_str());
    }
    TemporaryFile(const TemporaryFile&) = delete;
    TemporaryFile& operator=(const TemporaryFile&) = delete;

    bool is_written() const { return is_written_; }
    const std::string& path() const { return path_; }

private:
    std::string path_;
    bool is_written_ = false;
};

/// What the program prints, with its errors.
Result<std::string> output_of(std::vector<std::string> words) {
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    int ends[2];
    if (pipe(ends) != 0) return fail(words[0] + " can't be run: " + std::strerror(errno));
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    posix_spawn_file_actions_addclose(&actions, ends[1]);
    pid_t child = 0;
    const int error = posix_spawn(&child, words[0].c_str(), &actions, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    std::string text;
    char block[4096];
    for (ssize_t bytes = 0; error == 0 && (bytes = read(ends[0], block, sizeof block)) > 0;) {
        text.append(block, static_cast<std::size_t>(bytes));
    }
    close(ends[0]);
    if (error != 0) return fail(words[0] + " can't be run: " + std::strerror(error));
    int status = 0;
    if (waitpid(child, &status, 0) != child || status != 0) {
        text.resize(std::min<std::size_t>(text.size(), 500));
        return fail(words[0] + " failed: " + text.substr(0, text.find_last_not_of('\n') + 1));
    }
    return text;
}

/// What the tool prints of the cubin.
Result<std::string> print_cubin(std::vector<std::string> words, const std::string& cubin) {
    const TemporaryFile file(cubin);
    if (!file.is_written()) return fail(file.path() + " can't be written: " + std::strerror(errno));
    words.push_back(file.path());
    return output_of(std::move(words));
}

}  // namespace

Result<std::string> disassemble_cubin(const std::string& cubin) {
    if (const auto nvdisasm = find_tool("nvdisasm")) return print_cubin({*nvdisasm, "-c"}, cubin);
    if (const auto cuobjdump = find_tool("cuobjdump")) return print_cubin({*cuobjdump, "-sass"}, cubin);
    return fail(
        std::string("sass takes nvdisasm or cuobjdump, which are neither in $PATH nor in ") + kToolkit +
        ": install NVIDIA's package cuda-nvdisasm-13-0 or cuda-cuobjdump-13-0, or --emit cubin and disassemble it "
        "elsewhere");
}

Result<std::string> list_instructions(const std::string& cubin) {
    if (const auto nvdisasm = find_tool("nvdisasm")) return print_cubin({*nvdisasm, "-c", "-gi"}, cubin);
    return fail(std::string("nvdisasm is neither in $PATH nor in ") + kToolkit +
                ": install NVIDIA's package cuda-nvdisasm-13-0, or pip's nvidia-cuda-nvdisasm with its folder "
                "nvidia/cu13/bin in $PATH");
}

}  // namespace kvjit::tool
