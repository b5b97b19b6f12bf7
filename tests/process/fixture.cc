#include "fixture.h"

#include <doctest/doctest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "call.h"

namespace kvjit::test {
namespace {

std::string quoted(const std::string& text) {
    return "'" + text + "'";
}

}  // namespace

std::string Report::operator[](const std::string& name) const {
    const auto line = lines.find(name);
    return line == lines.end() ? "" : line->second;
}

std::int64_t Report::number(const std::string& name) const {
    const std::string text = (*this)[name];
    return text.empty() ? -1 : std::stoll(text);
}

Child::Child(const std::string& cache_folder, const std::vector<std::string>& environment) {
    std::string command =
        "env -u KVJIT_JIT -u KVJIT_TEMPLATE_DIR -u KVJIT_COMPILER -u KVJIT_TRACE_SPECS -u KVJIT_RECORD -u KVJIT_LOG";
    for (const std::string& variable : environment) command += ' ' + quoted(variable);
    command += ' ' + quoted(KVJIT_CHILD) + ' ' + quoted(cache_folder);
    output_ = popen(command.c_str(), "r");
    if (output_ == nullptr) throw std::runtime_error("popen " + command);
}

Child::~Child() {
    if (output_ != nullptr) pclose(output_);
}

Report Child::finish() {
    Report report;
    std::string text;
    char buffer[4096];
    while (const std::size_t got = std::fread(buffer, 1, sizeof buffer, output_)) text.append(buffer, got);
    const int status = pclose(std::exchange(output_, nullptr));
    report.lines["exit"] = std::to_string(WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    std::istringstream lines(text);
    for (std::string name, value; lines >> name && std::getline(lines >> std::ws, value);) report.lines[name] = value;
    return report;
}

Report run_child(const std::string& cache_folder, const std::vector<std::string>& environment) {
    return Child(cache_folder, environment).finish();
}

void write_file(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
}

void create_bundle(const std::string& path, const std::string& arguments, const std::string& before) {
    const std::string command = before + " '" KVJIT_TOOL "' bundle create '" + path + "' -q op=Merge,head_dim=64 '" +
                                kCallSpec + "' op=KeyValueCache,head_dim=64 " + arguments;
    INFO(command);
    REQUIRE(std::system(command.c_str()) == 0);
}

Shipped::Shipped(const std::string& targets) {
    create_bundle(bundle(), " --targets " + targets + cache());
}

TemplateFolder::TemplateFolder() {
    std::filesystem::copy(KVJIT_TEMPLATES, path(), std::filesystem::copy_options::recursive);
}

}  // namespace kvjit::test
