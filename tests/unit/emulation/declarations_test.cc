// The two files that define primitives against the one that says what they are.
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "support.h"

using namespace kvjit;
using Names = std::set<std::string>;

namespace {

std::string text_of(const std::string& file) {
    std::ifstream stream(KVJIT_TEST_TEMPLATES "/cuda/machine/" + file);
    REQUIRE_MESSAGE(stream.good(), file);
    std::stringstream text;
    text << stream.rdbuf();
    return text.str();
}

/// Functions that a file defines, but for those that only help others in it.
Names primitives_of(const std::string& file) {
    static const Names helpers = {"load_words", "store_words", "shared_address"};
    static const std::regex head(R"(\nKVJIT_(?:INLINE|PRIMITIVE) [^\n(]*?(\w+)\()");
    const std::string text = text_of(file);
    Names names;
    for (std::sregex_iterator at(text.begin(), text.end(), head), end; at != end; ++at) names.insert((*at)[1]);
    for (const std::string& helper : helpers) names.erase(helper);
    return names;
}

/// What the header's comment names: a word in front of a parenthesis or of <template arguments>.
bool documents(const std::string& header, const std::string& name) {
    return std::regex_search(header, std::regex("[ /]" + name + "[(<,/ ]"));
}

}  // namespace

TEST_CASE("a GPU and its emulation have the same primitives, all of them documented") {
    const Names gpu = primitives_of("ptx.h"), emulated = primitives_of("emulated.h");
    CHECK(gpu.size() > 30);
    const std::string header = text_of("contract.h");
    for (const std::string& name : gpu) {
        CHECK_MESSAGE(emulated.contains(name), name);
        CHECK_MESSAGE(documents(header, name), name);
    }
    for (const std::string& name : emulated) CHECK_MESSAGE(gpu.contains(name), name);
}
