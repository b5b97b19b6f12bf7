#include "recording/recording.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <string_view>

#include "available_memory.h"
#include "case_format.h"
#include "check/arithmetic.h"
#include "generator/operator.h"
#include "handles.h"
#include "record/case_fields.h"
#include "takers.h"
#include "terminal.h"

namespace kvjit::tool {
namespace {

constexpr std::int64_t kMaxInt64 = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMinInt64 = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMostSpread = 16;  // a recording's strides take at most 4 times a tensor's bytes

std::string joined(std::string_view prefix, std::string_view name) {
    return std::string(prefix).append(name);
}

void read_spec(MetadataTaker& metadata, Recording& call) {
    const std::string text = metadata.text("spec");
    kvjit_error error;
    kvjit_error_init(&error);
    kvjit_spec_init(&call.spec);
    if (kvjit_spec_parse(text.c_str(), &call.spec, &error) != KVJIT_OK) {
        metadata.refuse_value("spec", text, std::string("the text of a spec: ") + error.message);
    } else if (call.spec.op == KVJIT_OP_RELAYOUT) {
        metadata.refuse_value("spec", text, "a spec of an operator that kvjit_run runs");
    }
}

/// Strides of a tensor's axes, which none of them makes larger than `spread` times its elements.
void read_strides(MetadataTaker& metadata, const std::string& name, std::span<const std::int64_t> shape,
                  std::vector<std::int64_t>& strides) {
    const std::string field = joined(record::kStrides, name);
    const std::string text = metadata.text(field, "");
    if (text.empty()) return;
    const char* at = text.data();
    const char* const end = at + text.size();
    __int128 elements = 1, spread = 1;  // as far as they count: a product of two more is no overflow
    const auto bounded = [](__int128 count) { return std::min<__int128>(count, kMaxInt64); };
    while (at <= end && strides.size() < shape.size()) {
        std::int64_t stride = 0;
        const auto [stopped, error] = std::from_chars(at, end, stride);
        if (error != std::errc() || stride < 0 || (stopped != end && *stopped != ',')) break;
        const std::int64_t extent = shape[strides.size()];
        elements = bounded(elements * extent);
        spread = bounded(spread + static_cast<__int128>(extent - (extent > 0)) * stride);
        strides.push_back(stride);
        at = stopped + 1;
    }
    const bool whole = at == end + 1 && strides.size() == shape.size();
    if (whole && spread <= std::max<__int128>(elements, 1) * kMostSpread) return;
    metadata.refuse_value(field, text,
                          "a stride from 0 on for each of the " + std::to_string(shape.size()) +
                              " axes, which spread it over at most " + std::to_string(kMostSpread) +
                              " times its elements");
    strides.clear();
}

void read_numbers(MetadataTaker& metadata, Recording& call) {
    kvjit_batch_init(&call.numbers);
    for (const auto& number : record::kCounts) {
        const std::string name(number.name);
        call.numbers.*number.member =
            metadata.integer(name, kMinInt64, kMaxInt64, std::to_string(call.numbers.*number.member));
    }
    for (const auto& number : record::kFractions) {
        call.numbers.*number.member =
            metadata.number<float>(std::string(number.name), 0, std::numeric_limits<float>::lowest(), "a number");
    }
    call.stores_nothing = metadata.integer("stores_nothing", 0, 1, "0") != 0;
    call.split_keys = metadata.integer("split_keys", 0, kMaxInt64, "0");
    call.prefill_split_keys = metadata.integer("prefill_split_keys", 0, kMaxInt64, "0");
    call.target = metadata.text("target", "");
    metadata.text("kvjit", "");
    metadata.text("format");
}

/// Takes tensors as the file has them; kvjit checks the types and shapes of all but arrays.
class Inputs {
public:
    Inputs(MetadataTaker& metadata, TensorTaker& tensors, Recording& call)
        : metadata_(metadata), tensors_(tensors), call_(call) {}

    void take(const std::string& name) {
        if (!tensors_.has(name)) return;
        RecordedTensor& to = call_.inputs[name];
        tensors_.take_any(to.tensor, name);
        read_strides(metadata_, name, tensors_.shape(name), to.strides);
    }
    void take_array(const std::string& name, kvjit_dtype dtype, std::int64_t extent) {
        if (tensors_.has(name)) tensors_.take(call_.inputs[name].tensor, name, dtype, {extent});
    }
    void take_result(const std::string& name) {
        for (const auto& [prefix, to] : {std::pair{record::kGot, &call_.got}, std::pair{record::kOut, &call_.out}}) {
            const std::string whole = joined(prefix, name);
            if (tensors_.has(whole)) tensors_.take_any((*to)[name], whole);
        }
        const std::string got = joined(record::kGot, name);
        if (call_.has(name) || !tensors_.has(got)) return;
        read_strides(metadata_, name, tensors_.shape(got), call_.result_strides[name]);
    }

private:
    MetadataTaker& metadata_;
    TensorTaker& tensors_;
    Recording& call_;
};

void take_arrays(Inputs& inputs, TensorTaker& tensors, Recording& call) {
    const auto type = static_cast<kvjit_dtype>(call.spec.starts_type);
    const std::vector<std::int64_t> starts = tensors.shape("seqstarts");
    tensors.take(call.inputs["seqstarts"].tensor, "seqstarts", type, {kAny});
    if (starts.size() == 1 && starts[0] == 0) tensors.refuse_length("seqstarts", "at least 1 element");
    const std::int64_t batch_size = starts.empty() ? 0 : starts[0] - 1;
    for (const record::BatchArray& array : record::kArrays) {
        if (array.name != "seqstarts") inputs.take_array(std::string(array.name), type, batch_size + array.more);
    }
    const kvjit_batch& numbers = call.numbers;
    // Other numbers are refused later, by the plan.
    const auto counted = [](std::int64_t count) { return std::max<std::int64_t>(count, 0); };
    const std::int64_t heads = numbers.num_heads != 0
                                   ? counted(numbers.num_heads)
                                   : rt::saturating_product(counted(numbers.num_kv_heads), counted(call.spec.group));
    inputs.take_array("alibi_slopes", KVJIT_F32, heads);
    for (const record::BatchTable& table : record::kTables) inputs.take(std::string(table.name));
}

void take_tensors(Inputs& inputs, const Recording& call) {
    for (const gen::OperatorTensor& tensor : gen::operator_of(call.spec).tensors) {
        const std::string name(tensor.name);
        const bool result = tensor.use == gen::TensorUse::kOutput || tensor.use == gen::TensorUse::kOutputOpt;
        const bool cache = tensor.use == gen::TensorUse::kCache || tensor.use == gen::TensorUse::kScale;
        if (!result) inputs.take(name);
        if (result || cache) inputs.take_result(name);
    }
    if (!gen::has_cache(call.spec) || gen::has_cache_tensors(call.spec)) return;
    for (const std::string_view name : {record::kBlocks, record::kScaleBlocks}) {
        inputs.take(std::string(name));
        inputs.take_result(std::string(name));
    }
}

Result<void> read_all(const SafetensorsFile& file, Recording& call) {
    if (auto expected = expect_format(file, CaseFormat::kRecording); !expected) return expected;
    MetadataTaker metadata(file);
    read_spec(metadata, call);
    if (metadata.error().empty()) read_numbers(metadata, call);
    if (!metadata.error().empty()) return fail(metadata.error());
    TensorTaker tensors(file);
    Inputs inputs(metadata, tensors, call);
    take_arrays(inputs, tensors, call);
    take_tensors(inputs, call);
    metadata.refuse_unknown(record::kRemark);
    tensors.refuse_unknown(record::kRemark);
    if (!metadata.error().empty()) return fail(metadata.error());
    if (tensors.error().empty() && file.data_bytes() > available_memory() / 4) {
        return fail("its tensors have " + std::to_string(file.data_bytes()) +
                    " bytes, and replaying takes four times as much memory; available are " +
                    std::to_string(available_memory()) + " bytes");
    }
    tensors.load();
    if (!tensors.error().empty()) return fail(tensors.error());
    return {};
}

}  // namespace

const Tensor& Recording::input(const std::string& name) const {
    static const Tensor absent;
    const auto found = inputs.find(name);
    return found == inputs.end() ? absent : found->second.tensor;
}

std::int64_t Recording::index(const std::string& name, std::int64_t i) const {
    return input(name).integer(i);
}

Result<Recording> read_recording(const SafetensorsFile& file) {
    Recording call;
    if (auto read = read_all(file, call); !read) return fail(escaped(file.path()) + ": " + read.error());
    return call;
}

}  // namespace kvjit::tool
