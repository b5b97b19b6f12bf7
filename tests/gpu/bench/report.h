// What was measured: rows with all their samples, as a table and as JSON; reports of several runs become one.
#pragma once

#include <cstdio>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace kvjit::bench {

/// One thing that was timed. Rows with equal group, shape, what and by are the same thing.
struct Row {
    std::string group;  // "decode"
    std::string shape;  // "B 16, keys 8192"
    std::string what;   // "int8, pages of 128"
    std::string by;     // "kvjit", or a peer
    std::vector<double> microseconds;
    double bytes = 0;       // that one call has to read; 0: not bound by memory
    double operations = 0;  // floating-point ones of one call; 0: not bound by arithmetic
    /// What the device can do at all of whichever of the two is given, a second, measured in the same rounds.
    std::vector<double> limits;
};

double median(std::vector<double> samples);

class Report {
public:
    /// A fact about machine or software.
    void note(const std::string& name, const std::string& value) { notes_[name] = value; }
    /// Samples of a row that is there already are added to it.
    void add(const Row& row);
    void skip(const std::string& what, const std::string& why) { skipped_.emplace(what, why); }
    void fail(const std::string& what, const std::string& why) { failed_.emplace(what, why); }
    bool has_failures() const { return !failed_.empty(); }

    nlohmann::json json() const;
    /// Adds what json() gave elsewhere. Throws nlohmann::json::exception where it is something else.
    void merge(const nlohmann::json& other);
    void print(std::FILE* to) const;

private:
    /// Microseconds of the fastest peer at the row's shape; 0: nobody ran it.
    double best_peer(const Row& row) const;
    nlohmann::json row_json(const Row& row) const;
    void print_row(std::FILE* to, const Row& row) const;

    std::map<std::string, std::string> notes_, skipped_, failed_;
    std::vector<Row> rows_;
};

}  // namespace kvjit::bench
