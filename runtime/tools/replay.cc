#include "replay.h"

#include <sys/stat.h>

#include <algorithm>
#include <new>

#include "bundle/files.h"
#include "case_format.h"
#include "gpu_access.h"
#include "handles.h"
#include "recorded_call.h"
#include "recording/judge.h"
#include "recording/oracle.h"
#include "recording/recording.h"
#include "recording/with_oracle.h"
#include "replay_call.h"
#include "replay_table.h"
#include "terminal.h"

namespace kvjit::tool {
namespace {

constexpr mode_t kOwnersMode = 0600;  // as recordings have: they hold what users wrote

struct Tally {
    int passed = 0;
    int failed = 0;
    int refused = 0;

    int exit_code() const { return refused ? kExitBadInput : failed ? kExitMismatch : kExitOk; }
};

const char* op_name(kvjit_op op) {
    switch (op) {
        case KVJIT_OP_KEY_VALUE_CACHE:
            return "KeyValueCache";
        case KVJIT_OP_MULTI_HEAD_ATTENTION:
            return "MultiHeadAttention";
        case KVJIT_OP_MULTI_HEAD_CACHE_ATTENTION:
            return "MultiHeadCacheAttention";
        case KVJIT_OP_MERGE:
            return "Merge";
        case KVJIT_OP_RELAYOUT:
            return "Relayout";
    }
    return "";
}

class Replay {
public:
    Replay(const ReplayOptions& options, const Machine& machine)
        : options_(options), machine_(machine), table_(options.files), progress_(operations()) {}

    int run() {
        if (!options_.quiet) table_.header();
        for (const std::string& file : options_.files) replay_file(file);
        progress_.clear();
        print(std::to_string(tally_.passed) + " passed, " + std::to_string(tally_.failed) + " failed, " +
              std::to_string(tally_.refused) + " could not run\n");
        if (tally_.passed + tally_.failed + tally_.refused == 0) {
            complain("no file has a call of the operator that --op asks for");
            return kExitBadInput;
        }
        if (held_to_recorded_ && !options_.quiet) {
            print("Recordings are held to what was recorded, right or wrong; --oracle computes what is right.\n");
        }
        return tally_.exit_code();
    }

private:
    std::int64_t operations() const { return static_cast<std::int64_t>(options_.files.size() * options_.ops.size()); }

    void replay_file(const std::string& file) {
        try {
            replay_contents(file);
        } catch (const std::bad_alloc&) {
            refuse(escaped(file) + ": out of memory");
        }
    }

    void replay_contents(const std::string& file) {
        const auto contents = SafetensorsFile::open(file);
        if (!contents) return refuse(contents.error());
        const auto format = case_format(*contents);
        if (!format) return refuse(escaped(file) + ": " + format.error());
        if (*format == CaseFormat::kRecording) return replay_recording(file, *contents);
        if (options_.output) return refuse(escaped(file) + ": it is a reference case, which has out.* already");
        const auto call = read_recorded_call(*contents);
        if (!call) return refuse(call.error());
        std::vector<Refusal> refusals;
        for (const kvjit_op op : options_.ops) {
            if (op != KVJIT_OP_MERGE) judge(file, *call, op, refusals);
            progress_.advance(name_in_table(file));
        }
        for (const Refusal& one : refusals) refuse(escaped(file) + ": " + one.text(), static_cast<int>(one.ops.size()));
    }

    /// One call of one operator. The run is held to the oracle where there is one, and then so is what was recorded;
    /// else the run is held to what was recorded.
    void replay_recording(const std::string& file, const SafetensorsFile& contents) {
        const auto call = read_recording(contents);
        if (!call) return refuse(call.error());
        if (std::ranges::find(options_.ops, call->op()) == options_.ops.end()) return;
        const auto spec = spec_text(call->spec);
        if (!spec) return refuse(escaped(file) + ": " + spec.error());
        const auto refuse_call = [&](const std::string& why) {
            refuse(escaped(file) + ": " + op_name(call->op()) + ": " + why + " [" + *spec + "]");
        };
        const auto ran = run_recording(machine_, *call);
        if (!ran && ran.error().found_wrong) return tell(file, op_name(call->op()), stopped(ran.error()), *spec);
        if (!ran) return refuse_call(ran.error().why);
        Results expected = recorded_results(*call, call->out);
        if (options_.oracle) {
            auto computed = compute_results(*call);
            if (!computed) return refuse_call(computed.error());
            if (auto kept = keep(contents, *call, *ran, *computed); !kept) return refuse_call(kept.error());
            expected = *std::move(computed);
        }
        const Results recorded = recorded_results(*call, call->got);
        const std::string op = op_name(call->op());
        if (expected.empty() && recorded.empty())
            return refuse_call("the file has no got.* and no out.*; try --oracle");
        if (ran->contains("attn_output") && !recorded.empty() && !recorded.contains("attn_output"))
            return refuse_call("the file has got.* but no got.attn_output, which this operator always gives");
        held_to_recorded_ |= expected.empty();
        if (expected.empty() || options_.bits) tell(file, op, tool::judge(*call, *ran, recorded, options_.bits), *spec);
        if (!expected.empty()) tell(file, op, tool::judge(*call, *ran, expected, false), *spec);
        if (!expected.empty() && !recorded.empty()) {
            tell(file, "  as recorded", tool::judge(*call, recorded, expected, false), target_option(call->target));
        }
        progress_.advance(name_in_table(file));
    }

    /// Writes the file with the oracle's results, where that is asked for.
    Result<void> keep(const SafetensorsFile& contents, const Recording& call, const Results& ran,
                      const Results& computed) const {
        if (!options_.output) return {};
        const auto bytes = with_oracle(contents, call, ran, computed);
        return bytes ? write_file(*options_.output, *bytes, kOwnersMode) : fail(bytes.error());
    }

    /// Why operators of one file could not run: one reason is told once.
    struct Refusal {
        std::string why;                 // of the first operator
        std::string reason;              // the same without its spec
        std::vector<std::string> ops;    // "KeyValueCache"
        std::vector<std::string> specs;  // as many, or fewer: an operator that has no spec has none here

        std::string text() const {
            const std::string all = joined(specs, "; ");
            return joined(ops, ", ") + ": " + (ops.size() == 1 ? why : reason) + (all.empty() ? "" : " [" + all + "]");
        }
    };

    static std::string joined(const std::vector<std::string>& words, const char* separator) {
        std::string all;
        for (const std::string& word : words) all += (all.empty() ? "" : separator) + word;
        return all;
    }

    /// `why` with the words "its spec" for the spec.
    static std::string without_spec(std::string why, const std::string& spec) {
        const std::size_t at = spec.empty() ? why.npos : why.find(spec);
        return at == why.npos ? why : why.replace(at, spec.size(), "its spec");
    }

    static void add_refusal(std::vector<Refusal>& refusals, kvjit_op op, const std::string& why,
                            const std::string& spec) {
        const std::string reason = without_spec(why, spec);
        auto same = std::ranges::find(refusals, reason, &Refusal::reason);
        if (same == refusals.end()) same = refusals.insert(same, {why, reason, {}, {}});
        same->ops.emplace_back(op_name(op));
        if (!spec.empty()) same->specs.push_back(spec);
    }

    void refuse(const std::string& why, int operations = 1) {
        tally_.refused += operations;
        progress_.clear();
        complain(why);
    }

    void judge(const std::string& file, const RecordedCall& call, kvjit_op op, std::vector<Refusal>& refusals) {
        const auto of_op = op_spec(call, op);
        const auto spec = of_op ? spec_text(*of_op) : Result<std::string>(fail(of_op.error()));
        if (!spec) return add_refusal(refusals, op, spec.error(), "");
        const auto verdict = replay_op(machine_, call, op);
        if (!verdict && verdict.error().found_wrong) return tell(file, op_name(op), stopped(verdict.error()), *spec);
        if (!verdict) return add_refusal(refusals, op, verdict.error().why, *spec);
        tell(file, op_name(op), *verdict, *spec);
    }

    /// Of a call whose kernel the emulator found wrong: there is nothing to compare.
    static Verdict stopped(const RunError& error) { return {.pass = false, .detail = escaped(error.why)}; }

    void tell(const std::string& file, const std::string& op, const Verdict& verdict, const std::string& spec) {
        ++(verdict.pass ? tally_.passed : tally_.failed);
        if (verdict.pass && options_.quiet) return;
        progress_.clear();
        table_.row(file, op, error_in_table(verdict),
                   verdict.pass ? coloured("pass", Colour::kGreen) + "  " : coloured("FAIL", Colour::kRed) + "  ",
                   escaped(spec));
        if (!verdict.pass) print("    " + verdict.detail + "\n");
    }

    const ReplayOptions& options_;
    Machine machine_;
    bool held_to_recorded_ = false;  // some recording was
    ReplayTable table_;
    Progress progress_;
    Tally tally_;
};

Result<int> replay_on_target(const ReplayOptions& options) {
    if (auto opened = open_gpu(options.target); !opened) return fail(opened.error());
    const auto target = open_target(options.target);
    if (!target) return fail(target.error());
    const auto engine = open_engine(options.sources);
    if (!engine) return fail(engine.error());
    if (auto tried = try_target(engine->get(), target->get()); !tried) return fail(tried.error());
    return Replay(options, {engine->get(), target->get(), options.num_threads, is_cuda(options.target)}).run();
}

}  // namespace

int replay(const ReplayOptions& options) {
    const auto replayed = replay_on_target(options);
    if (replayed) return *replayed;
    complain(replayed.error());
    return kExitBadInput;
}

}  // namespace kvjit::tool
