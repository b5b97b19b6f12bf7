// Reads what perf's manual calls jitdump (tools/perf/Documentation/jitdump-specification.txt of Linux).
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <set>
#include <string>

namespace kvjit::test {

struct JitDump {
    struct Function {
        std::uint64_t address;
        std::string code;
    };

    explicit JitDump(const std::string& bytes) {
        REQUIRE(bytes.size() >= kHeaderBytes);
        CHECK(number<std::uint32_t>(bytes, 0) == 0x4A695444);
        CHECK(number<std::uint64_t>(bytes, 32) == 0);  // flags
        for (std::size_t at = kHeaderBytes; at < bytes.size();) {
            const auto size = number<std::uint32_t>(bytes, at + 4);
            REQUIRE(size >= kRecordBytes);
            REQUIRE(size <= bytes.size() - at);
            read(number<std::uint32_t>(bytes, at), bytes.substr(at + kRecordBytes, size - kRecordBytes));
            at += size;
        }
    }

    std::map<std::string, Function> functions;             // by name
    std::map<std::uint64_t, std::set<std::string>> lines;  // "file:line" by function's address

private:
    std::uint64_t last_lines_ = 0;  // the function of the last record of lines
    static constexpr std::size_t kHeaderBytes = 40, kRecordBytes = 16;
    enum Record : std::uint32_t { kLoad = 0, kDebug = 2 };

    template <class T>
    static T number(const std::string& bytes, std::size_t at) {
        T value{};
        REQUIRE(at + sizeof(T) <= bytes.size());
        std::memcpy(&value, &bytes[at], sizeof(T));
        return value;
    }

    void read(std::uint32_t record, const std::string& body) {
        if (record == kLoad) read_load(body);
        if (record == kDebug) read_debug(body);
    }

    // pid, tid, vma, address, size, index, name, code
    void read_load(const std::string& body) {
        const std::string name = body.c_str() + 40;
        const auto size = number<std::uint64_t>(body, 24);
        functions[name] = {number<std::uint64_t>(body, 16), body.substr(40 + name.size() + 1)};
        CHECK(functions[name].code.size() == size);
        CHECK(functions[name].address == last_lines_);  // perf takes lines from the record before the code
    }

    // address, count; of each: address, line, discriminator, file
    void read_debug(const std::string& body) {
        last_lines_ = number<std::uint64_t>(body, 0);
        std::set<std::string>& found = lines[last_lines_];
        std::size_t at = 16;
        for (auto count = number<std::uint64_t>(body, 8); count > 0; --count) {
            const std::string file = body.c_str() + at + 16;
            found.insert(file + ":" + std::to_string(number<std::uint32_t>(body, at + 8)));
            at += 16 + file.size() + 1;
        }
    }
};

}  // namespace kvjit::test
