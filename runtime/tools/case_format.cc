#include "case_format.h"

#include "record/case_fields.h"
#include "terminal.h"

namespace kvjit::tool {

namespace {

std::string name_of(CaseFormat format) {
    return std::string(format == CaseFormat::kReference ? record::kReferenceFormat : record::kFormat);
}

}  // namespace

Result<CaseFormat> case_format(const SafetensorsFile& file) {
    const auto& metadata = file.metadata();
    const auto format = metadata.find("format");
    const bool is_silent = format == metadata.end();
    if (is_silent && metadata.contains("op")) return CaseFormat::kReference;
    if (!is_silent && format->second == record::kReferenceFormat) return CaseFormat::kReference;
    if (!is_silent && format->second == record::kFormat) return CaseFormat::kRecording;
    return fail("metadata field 'format' is " + (is_silent ? "missing" : in_quotes(format->second)) + ", expected " +
                std::string(record::kReferenceFormat) + ", a reference case, or " + std::string(record::kFormat) +
                ", a recording");
}

Result<void> expect_format(const SafetensorsFile& file, CaseFormat expected) {
    const Result<CaseFormat> format = case_format(file);
    if (!format) return fail(format.error());
    if (*format == expected) return {};
    return fail("metadata field 'format' is " + in_quotes(name_of(*format)) + ", expected " + name_of(expected));
}

}  // namespace kvjit::tool
