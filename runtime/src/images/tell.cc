// What the engine's log says of images: taken, compiled, refused.
#include "check/fault.h"
#include "images/images.h"
#include "spec_trace.h"

namespace kvjit::rt {
namespace {

/// Which program, of which spec, for which target, as `kvjit inspect` takes them.
LogLine line_about(std::string_view event, const Wanted& wanted) {
    LogLine line(event);
    line.add("program", wanted.program().info->label);
    if (wanted.spec() != nullptr) line.add("spec", gen::print_spec(*wanted.spec()));
    line.add("target", target_option(wanted.target()));
    return line;
}

const char* kind_name(kvjit_origin kind) {
    return kind == KVJIT_ORIGIN_BUNDLE ? "bundle" : "disk";
}

}  // namespace

void Images::tell_known(const Wanted& wanted) const {
    if (!log().takes(KVJIT_LOG_DEBUG)) return;
    log()(KVJIT_LOG_DEBUG, line_about("took", wanted).add("from", "memory").add("image", wanted.name()).text());
}

void Images::tell_taken(const Wanted& wanted, const Origin& origin, double seconds) const {
    if (!log().takes(KVJIT_LOG_DEBUG)) return;
    LogLine line = line_about("took", wanted);
    line.add("from", kind_name(origin.kind)).add("place", origin.stored.place);
    line.add_ms(seconds).add("bytes", origin.object_bytes).add("image", wanted.name());
    log()(KVJIT_LOG_DEBUG, line.text());
}

void Images::tell_compiled(Wanted& wanted, const CompileOutput& output, double seconds, bool late) const {
    if (!log().takes(KVJIT_LOG_INFO)) return;
    LogLine line = line_about("compiled", wanted);
    line.add("why", why_missing(wanted)).add("late", late ? "yes" : "no");
    line.add_ms(seconds).add("bytes", output.object.size()).add("image", wanted.name());
    log()(KVJIT_LOG_INFO, line.text());
}

void Images::tell_refused(const Wanted& wanted, const gen::Error& error) const {
    if (!log().takes(KVJIT_LOG_INFO)) return;
    LogLine line = line_about("refused", wanted);
    line.add("why", error.message).add("late", sealed_ ? "yes" : "no").add("image", wanted.name());
    log()(KVJIT_LOG_INFO, line.text());
}

std::string Images::why_missing(Wanted& wanted) const {
    std::string why;
    const auto add = [&why](const std::string& clause) { why += (why.empty() ? "" : "; ") + clause; };
    const std::vector<std::shared_ptr<Store>> bundles = this->bundles();
    for (const std::shared_ptr<Store>& bundle : bundles) {
        if (const std::string near = bundle->near_miss(wanted); !near.empty()) add(near);
    }
    if (why.empty() && !bundles.empty()) add("no entry in any bundle");
    if (!options_.disk) {
        add("there is no disk cache");
        return why;
    }
    const std::string near = options_.disk->near_miss(wanted);
    add(near.empty() ? "no entry in the disk cache" : near);
    return why;
}

}  // namespace kvjit::rt
