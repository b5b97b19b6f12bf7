// `kvjit compare`: two reports of `kvjit bench --json`.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "bench/figures.h"
#include "command/options.h"
#include "commands.h"
#include "input_file.h"
#include "json.h"
#include "table.h"
#include "terminal.h"

namespace kvjit::tool {
namespace {

constexpr std::size_t kMostBytes = std::size_t{64} << 20;

struct Request {
    std::string before, after;
    double most = std::numeric_limits<double>::infinity();  // times A's
    bool json = false;
};

struct Pair {
    BenchFigure before, after;

    double times() const { return after.milliseconds / before.milliseconds; }
    double share_times() const { return after.share / before.share; }
};

struct Compared {
    std::vector<Pair> pairs;
    std::vector<std::string> remarks;
    bool misses = false;  // a row of A, in B
};

std::string number(double value, int digits) {
    char text[48];
    std::snprintf(text, sizeof text, "%.*f", digits, value);
    return text;
}

bool is_same(const BenchFigure& a, const BenchFigure& b) {
    return a.spec == b.spec && a.batch == b.batch && a.layers == b.layers;
}

std::string row_name(const BenchFigure& row) {
    return row.batch + " on " + std::to_string(row.layers) + " layers, " + row.spec;
}

/// Of rows that are alike, the first goes with the first, the second with the second.
Compared pair_up(const BenchFigures& before, BenchFigures after) {
    Compared compared;
    if (before.machine != after.machine) {
        compared.remarks.push_back("A ran on " + before.machine + "; B on " + after.machine);
    }
    for (const BenchFigure& figure : before.rows) {
        const auto found =
            std::ranges::find_if(after.rows, [&](const BenchFigure& each) { return is_same(each, figure); });
        if (found == after.rows.end()) {
            compared.misses = true;
            compared.remarks.push_back("only in A: " + row_name(figure));
        } else {
            compared.pairs.push_back({figure, *found});
            after.rows.erase(found);
        }
    }
    for (const BenchFigure& figure : after.rows) compared.remarks.push_back("only in B: " + row_name(figure));
    return compared;
}

std::string text_of(const Compared& compared) {
    std::vector<std::vector<std::string>> rows = {
        {"batch", "A ms", "B ms", "B/A", "A's share", "B's share", "shares' B/A", "spec"}};
    for (const Pair& pair : compared.pairs) {
        rows.push_back({escaped(pair.before.batch), number(pair.before.milliseconds, 3),
                        number(pair.after.milliseconds, 3), number(pair.times(), 2),
                        number(100 * pair.before.share, 0) + "%", number(100 * pair.after.share, 0) + "%",
                        number(pair.share_times(), 2), escaped(pair.before.spec)});
    }
    std::string text = table_text(rows) + "Shares are of reading or of arithmetic, of which is larger.\n";
    for (const std::string& line : compared.remarks) text += escaped(line) + "\n";
    return text;
}

Json json_of(const Compared& compared) {
    Json rows = Json::array();
    for (const Pair& pair : compared.pairs) {
        rows.push_back({{"spec", pair.before.spec},
                        {"batch", pair.before.batch},
                        {"before_ms", pair.before.milliseconds},
                        {"after_ms", pair.after.milliseconds},
                        {"times", pair.times()},
                        {"before_share", pair.before.share},
                        {"after_share", pair.after.share},
                        {"share_times", pair.share_times()}});
    }
    return {{"rows", std::move(rows)}, {"remarks", compared.remarks}};
}

Result<BenchFigures> read(const std::string& name) {
    const Result<std::string> text = read_file(name, kMostBytes);
    if (!text) return fail(text.error());
    return read_bench_json(*text, name);
}

Result<int> compare(const Request& request) {
    const auto before = read(request.before);
    if (!before) return fail(before.error());
    const auto after = read(request.after);
    if (!after) return fail(after.error());
    const Compared compared = pair_up(*before, *after);
    if (compared.pairs.empty()) return fail("the two reports have no spec and batch in common");
    print(request.json ? dump(json_of(compared)) : text_of(compared));
    const bool gate = std::isfinite(request.most);
    const auto slower = [&](const Pair& pair) { return pair.times() > request.most; };
    return gate && (compared.misses || std::ranges::any_of(compared.pairs, slower)) ? kExitMismatch : kExitOk;
}

Action declare(Options& options) {
    auto request = std::make_shared<Request>();
    options.text("A", request->before, kFile, "What `kvjit bench --json` printed before; - for standard input")
        ->required();
    options.text("B", request->after, kFile, "What it printed afterwards; - for standard input")->required();
    options.text("--most", request->most, {"TIMES"},
                 "Exit with 1 if a call of B takes more than TIMES as long as A's, or is missing");
    options.json(request->json);
    options.check([&request = *request]() -> Result<void> {
        if (request.before == "-" && request.after == "-")
            return fail("A and B are both -: there is one standard input");
        if (request.most > 0) return {};
        return fail("--most is " + number(request.most, 3) + "; it takes a number above 0");
    });
    return [request] { return compare(*request); };
}

}  // namespace

constinit const Command kCompareCommand = {
    .name = "compare",
    .summary = "Compare two reports of kvjit bench",
    .declare = declare,
    .about =
        "Rows of one spec, batch and number of layers stand side by side: the times, B's as a multiple of A's, and the "
        "shares of the machine's limits, which were measured in turns with the calls: where the machine itself was "
        "slower "
        "in one of the two, shares tell more than times. On a busy machine neither is steady: measure longer "
        "(--seconds).",
    .examples =
        "kvjit bench head_dim=128 group=4 --json > before.json\n"
        "KVJIT_TEMPLATE_DIR=$PWD/templates kvjit bench head_dim=128 group=4 --json > after.json\n"
        "kvjit compare before.json after.json --most 1.1\n",
    .status = "0 compared, 1 a call takes more than --most allows, or is missing in B, 2 a report can't be used"};

}  // namespace kvjit::tool
