// Which calls to record, and where: what KVJIT_RECORD, kvjit_engine_options.record and kvjit_engine_record take.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "generator/spec.h"

namespace kvjit::rt {

/// DIR, or DIR:name=value,... (docs/recording.md). Names are those below, or fields of a spec, in which a recorded
/// call's spec must agree.
struct RecordSetting {
    std::string folder;
    std::uint32_t programs = 0;         // program: the call runs this one; 0: whatever it runs
    std::optional<std::int64_t> layer;  // of the cache
    std::int64_t call = 0;              // the call of this number alone, counted from 1; 0: all
    std::int64_t every = 1;             // the first of this many calls, and so on
    std::int64_t max_files = 100;
    std::int64_t max_bytes = std::int64_t{1} << 30;  // of all files together
    gen::KernelSpec spec = gen::default_spec();      // the given fields
    std::vector<const gen::Field*> fields;           // which these are

    bool agrees(const gen::KernelSpec& spec) const;
};

/// `called`: what messages call the setting. Errors: KVJIT_BAD_ARGUMENT `record`, with the word that is wrong and what
/// it takes.
gen::Result<RecordSetting> parse_record_setting(std::string_view text, std::string_view called = "record");

}  // namespace kvjit::rt
