// Any bytes as a safetensors file and as a recorded call: they are refused with an error that names the file, or every
// tensor lies in them.
#include "fuzz_target.h"
#include "recorded_call.h"
#include "recording/placed.h"
#include "recording/recording.h"
#include "safetensors.h"
#include "support/memory_file.h"
#include "support/read_file.h"

namespace {

using namespace kvjit;
using test::require;

void check_error(const std::string& error, const std::string& path) {
    require(error.starts_with(path + ": ") && error.size() > path.size() + 2, "an error names the file: " + error);
}

void read_tensors(const tool::SafetensorsFile& file, std::string_view bytes) {
    for (const auto& [name, tensor] : file.tensors()) {
        require(tensor.begin <= tensor.end && tensor.end <= file.data_bytes(), "a tensor lies in the file");
        std::string data(tensor.end - tensor.begin, '\0');
        const auto read = file.read(tensor, std::as_writable_bytes(std::span(data)));
        require(read.has_value(), "a tensor is read");
        require(data == bytes.substr(bytes.size() - file.data_bytes() + tensor.begin, data.size()),
                "a tensor is what lies in the file");
    }
}

/// What a replay relies on, as kvjit can't check it.
void check_recording(const tool::Recording& call) {
    const std::int64_t batch_size = call.batch_size();
    require(batch_size >= 0, "there is a number of sequences");
    for (const auto& [name, input] : call.inputs) {
        if (name == "kvstarts" || name == "rowstarts") require(input.tensor.size() == batch_size + 1, "starts");
        if (name == "kvlens" || name == "start_pos") require(input.tensor.size() == batch_size, "lengths");
        if (!input.tensor.present() || input.strides.empty()) continue;
        require(input.strides.size() == input.tensor.shape().size(), "a stride for each axis");
        const tool::Placed placed(input.tensor, input.strides);  // in memory that is as large as it takes
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string bytes = test::as_text(data, size);
    const test::MemoryFile memory(std::as_bytes(std::span(bytes)));
    const auto file = tool::SafetensorsFile::open(memory.path());
    if (!file) return check_error(file.error(), memory.path()), 0;
    read_tensors(*file, bytes);
    const auto call = tool::read_recorded_call(*file);
    if (!call) check_error(call.error(), memory.path());
    const auto recording = tool::read_recording(*file);
    if (!recording) return check_error(recording.error(), memory.path()), 0;
    check_recording(*recording);
    return 0;
}

std::string kvjit::test::good_input(std::uint64_t number) {
    static const std::string whole = read_file(KVJIT_RECORDED_CALL), recording = read_file(KVJIT_RECORDING);
    return number % 2 == 0 ? whole : recording;
}
