// What the collector of jit_collector.cc wrote.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace kvjit::test {

struct CollectedMethod {
    std::string name, file, code;
    std::uint64_t address = 0, bytes = 0;
    std::vector<std::uint64_t> ends;  // of the lines, in order
    std::set<std::uint64_t> lines;
    bool is_unloaded = false;
};

/// By their ids. Errors: an id that was not loaded throws std::out_of_range.
inline std::map<std::uint64_t, CollectedMethod> collected_methods(const std::string& text) {
    std::map<std::uint64_t, CollectedMethod> methods;
    std::istringstream rows(text);
    for (std::string row; std::getline(rows, row);) {
        std::istringstream words(row);
        std::string what;
        std::uint64_t id = 0;
        words >> what >> id;
        if (what == "load") {
            CollectedMethod& method = methods[id];
            words >> std::hex >> method.address >> std::dec >> method.bytes >> std::ws;
            std::getline(words, method.name, '\t');
            std::getline(words, method.file);
        } else if (what == "code") {
            for (unsigned byte = 0; words >> std::hex >> byte;) methods.at(id).code += static_cast<char>(byte);
        } else if (what == "line") {
            std::uint64_t end = 0, number = 0;
            words >> end >> number;
            methods.at(id).ends.push_back(end);
            methods.at(id).lines.insert(number);
        } else {
            methods.at(id).is_unloaded = true;
        }
    }
    return methods;
}

}  // namespace kvjit::test
