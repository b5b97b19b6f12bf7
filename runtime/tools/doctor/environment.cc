// The environment's variables, and what they name.
#include "environment.h"

#include <map>
#include <optional>

#include "cpu/host.h"
#ifdef KVJIT_CPU_JIT
#include "cpu/jit_collector.h"
#endif
#include "doctor/finding.h"
#include "doctor/trial.h"
#include "generator/render.h"
#include "record/setting.h"

namespace kvjit::tool {
namespace {

/// What is wrong with a folder of templates; nothing: each program's can be read, and the default spec's are whole.
std::optional<std::string> why_no_templates(const std::string& folder) {
    const gen::TemplateReader read = gen::templates_of(folder).read;
    for (const gen::ProgramInfo& program : gen::programs()) {
        for (const auto& variants : {program.cpu.variants, program.cuda.variants}) {
            for (const gen::Variant& variant : variants) {
                if (const auto text = read(variant.template_path); !text) return text.error().message;
            }
        }
    }
    const gen::Target& target = rt::host_target();
    const auto programs = gen::lower(gen::default_spec(), target);
    if (!programs) return programs.error().message;
    for (const gen::Program& program : *programs) {
        if (const auto source = gen::render(program, target, read); !source) return source.error().message;
    }
    return std::nullopt;
}

std::optional<std::string> why_no_recording(const std::string& setting) {
    const auto parsed = rt::parse_record_setting(setting);
    if (!parsed) return std::nullopt;  // report_environment says why
    return why_no_folder({.path = parsed->folder, .home = "", .called = "the folder", .follows_link = false});
}

/// A variable whose value names something that the other parts of this command don't look at.
struct Named {
    rt::Variable variable;
    std::optional<std::string> (*why_not)(const std::string& value);
    const char* fix;
};
constexpr Named kNamed[] = {
    {rt::Variable::kTemplateDir, why_no_templates,
     "unset KVJIT_TEMPLATE_DIR, or set it to the folder templates of this version's source"},
    {rt::Variable::kRecord, why_no_recording,
     "set KVJIT_RECORD to a folder of this user that has room and that others can't write to, or unset it"},
    {rt::Variable::kTraceSpecs, why_no_appending,
     "set KVJIT_TRACE_SPECS to a file that this user can write, or unset it"},
};

/// Findings by their variables' names.
using Problems = std::multimap<std::string, Finding>;

void add(Problems& problems, const std::string& variable, const std::string& text, const std::string& fix) {
    problems.emplace(variable, Finding{Health::kProblem, "environment", text, fix});
}

void add_named(Problems& problems, const std::map<std::string, std::string>& given) {
    for (const Named& named : kNamed) {
        const auto& row = rt::environment_variables()[static_cast<std::size_t>(named.variable)];
        const auto value = given.find(row.name);
        if (value == given.end()) continue;
        const auto why = named.why_not(value->second);
        if (why) add(problems, row.name, value->first + " is " + value->second + ": " + *why, named.fix);
    }
}

#ifdef KVJIT_CPU_JIT
/// Not a variable of kvjit's own.
void add_collector(Problems& problems) {
    if (const auto& collector = rt::JitCollector::get(); !collector)
        add(problems, "INTEL_JIT_PROFILER64", collector.error(),
            "unset INTEL_JIT_PROFILER64, which a profiler sets for the programs that it starts");
}
#else
void add_collector(Problems&) {}
#endif

}  // namespace

Findings examine_environment() {
    std::map<std::string, std::string> given;
    for (const rt::VariableInfo& variable : rt::environment_variables()) {
        const auto value = rt::environment_text(variable.variable);
        if (value && !value->empty()) given.emplace(variable.name, *value);
    }
    Problems problems;
    rt::report_environment([&](kvjit_log_level, const std::string& message) {
        const std::string name = message.substr(0, message.find_first_of(" :"));
        add(problems, name, message, "unset " + name + ", or correct it");
    });
    add_named(problems, given);
    add_collector(problems);
    std::string good;
    for (const auto& [name, value] : given) {
        if (!problems.contains(name)) good += (good.empty() ? "" : ", ") + name + "=" + value;
    }
    if (good.empty()) good = problems.empty() ? "no variable of kvjit's is set" : "no other variable of kvjit's is set";
    Findings findings = {{Health::kGood, "environment", good}};
    for (const auto& [name, problem] : problems) findings.push_back(problem);
    return findings;
}

}  // namespace kvjit::tool
