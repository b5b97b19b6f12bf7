// `kvjit doctor`.
#include <iterator>
#include <memory>

#include "command/help.h"
#include "command/options.h"
#include "commands.h"
#include "doctor/finding.h"
#include "json.h"
#include "terminal.h"

namespace kvjit::tool {
namespace {

struct Request {
    std::vector<std::string> bundles;
    bool json = false;
};

const char* word_of(Health health) {
    switch (health) {
        case Health::kGood:
            return "ok";
        case Health::kNote:
            return "note";
        case Health::kProblem:
            return "problem";
    }
    return "";
}

Findings examine(const Request& request) {
    Findings all = {{Health::kGood, "kvjit", version_text().substr(version_text().find(' ') + 1)}};
    for (const auto& part : {examine_cpu, examine_compiler, examine_cuda, examine_cache, examine_environment}) {
        std::ranges::move(part(), std::back_inserter(all));
    }
    for (const std::string& path : request.bundles) std::ranges::move(examine_bundle(path), std::back_inserter(all));
    return all;
}

void print_text(const Findings& findings) {
    constexpr std::size_t kWord = 9, kWhat = 13;
    for (const Finding& finding : findings) {
        const std::string word = word_of(finding.health);
        const Colour colour = finding.health == Health::kGood   ? Colour::kGreen
                              : finding.health == Health::kNote ? Colour::kDim
                                                                : Colour::kRed;
        print(coloured(word, colour) + std::string(kWord - word.size(), ' ') + finding.what +
              std::string(std::max<std::size_t>(kWhat, finding.what.size() + 1) - finding.what.size(), ' ') +
              escaped(finding.text) + "\n");
        if (!finding.fix.empty()) print(std::string(kWord, ' ') + "fix: " + escaped(finding.fix) + "\n");
    }
}

Json json_of(const Findings& findings) {
    Json all = Json::array();
    for (const Finding& finding : findings) {
        all.push_back({{"health", word_of(finding.health)},
                       {"what", finding.what},
                       {"text", finding.text},
                       {"fix", finding.fix}});
    }
    return all;
}

Result<int> run(const Request& request) {
    const Findings findings = examine(request);
    request.json ? print(dump(json_of(findings))) : print_text(findings);
    const auto is_problem = [](const Finding& finding) { return finding.health == Health::kProblem; };
    return std::ranges::any_of(findings, is_problem) ? kExitMismatch : kExitOk;
}

Action declare(Options& options) {
    auto request = std::make_shared<Request>();
    options.text("--bundle", request->bundles, kFile, "A bundle to look at, too; may be repeated");
    options.json(request->json);
    return [request] { return run(*request); };
}

}  // namespace

constinit const Command kDoctorCommand = {
    .name = "doctor",
    .summary = "Look whether everything that kvjit uses is there and works",
    .declare = declare,
    .about =
        "CPU and its features, compiler, NVRTC, driver and GPUs, disk cache, environment variables, bundles. A "
        "problem is what is there and doesn't work; a note is what is absent, which another machine's kernels may "
        "not need. Each has a fix in a line. Nothing of kvjit's kernels is loaded, and AMX is not asked for. A folder "
        "or "
        "file that a variable names and that is missing is made, to see whether it can be, and removed again.",
    .examples =
        "kvjit doctor\n"
        "kvjit doctor --bundle kernels.kvjb --json\n",
    .status = "0 no problem, 1 a problem, 2 bad arguments"};

}  // namespace kvjit::tool
