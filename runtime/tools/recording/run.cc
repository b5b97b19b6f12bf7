#include "recording/run.h"

#include <cstring>
#include <list>

#include "generator/operator.h"
#include "handles.h"
#include "record/case_fields.h"
#include "recording/placed.h"

namespace kvjit::tool {
namespace {

constexpr std::byte kUnwritten{0xff};  // NaN in every type of floating point

bool is_result(const gen::OperatorTensor& tensor) {
    return tensor.use == gen::TensorUse::kOutput || tensor.use == gen::TensorUse::kOutputOpt;
}
bool is_cache(const gen::OperatorTensor& tensor) {
    return tensor.use == gen::TensorUse::kCache || tensor.use == gen::TensorUse::kScale;
}

}  // namespace

/// The call's tensors in memory where kernels find them, and the structs that point there.
class RecordedRun::Call {
public:
    Call(const Recording& recording, Place place) : recording_(recording), place_(std::move(place)) {
        kvjit_tensors_init(&tensors_);
        place_tensors();
        set_batch();
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    /// As kernels find it, and with its arrays in host memory.
    const kvjit_batch& batch() const { return batch_; }
    const kvjit_batch& host_batch() const { return host_batch_; }
    const kvjit_tensors& tensors() const { return tensors_; }
    Results results() const {
        Results results;
        for (const auto& [name, placed] : written_) results[name] = placed.dense();
        return results;
    }

private:
    void place_tensors() {
        for (const gen::OperatorTensor& tensor : gen::operator_of(recording_.spec).tensors) {
            const std::string name(tensor.name);
            if (is_result(tensor)) {
                place_result(tensor, name);
            } else if (recording_.has(name)) {
                const RecordedTensor& input = recording_.inputs.at(name);
                tensors_.*tensor.member = place(name, {input.tensor, input.strides}, is_cache(tensor));
            }
        }
    }

    void place_result(const gen::OperatorTensor& tensor, const std::string& name) {
        if (tensor.use == gen::TensorUse::kOutputOpt && !recording_.wants(name)) return;
        const auto dtype = static_cast<kvjit_dtype>(tensor.type == gen::TensorType::kF32 ? KVJIT_F32 : recording_.t1());
        const auto strides = recording_.result_strides.find(name);
        const Tensor unwritten(dtype, result_shape(name), kUnwritten);
        tensors_.*tensor.member = place(
            name,
            {unwritten, strides == recording_.result_strides.end() ? std::vector<std::int64_t>() : strides->second},
            true);
    }

    /// As recorded or expected; attn_output also has the query's, or that of a part.
    std::vector<std::int64_t> result_shape(const std::string& name) const {
        for (const auto* tensors : {&recording_.got, &recording_.out}) {
            if (const auto found = tensors->find(name); found != tensors->end()) {
                return {found->second.shape().begin(), found->second.shape().end()};
            }
        }
        const bool merges = recording_.op() == KVJIT_OP_MERGE;
        const auto shape = recording_.input(merges ? "partial_output" : "query").shape();
        return {shape.begin() + (merges && !shape.empty() ? 1 : 0), shape.end()};
    }

    kvjit_tensor place(const std::string& name, Placed placed, bool written) {
        if (place_) placed.move(place_);
        if (written) return (written_[name] = std::move(placed)).view();
        return inputs_.emplace_back(std::move(placed)).view();
    }

    /// Of an array.
    void* address_of(const Tensor& array) const {
        return place_ && array.present() ? place_(array.bytes().data(), array.bytes().size()) : array.view().data;
    }

    void set_batch() {
        batch_ = recording_.numbers;
        batch_.batch_size = recording_.batch_size();
        batch_.alibi_slopes = static_cast<const float*>(recording_.input("alibi_slopes").view().data);
        host_batch_ = batch_;
        for (const record::BatchArray& array : record::kArrays) {
            const Tensor& numbers = recording_.input(std::string(array.name));
            host_batch_.*array.member = numbers.view().data;
            batch_.*array.member = address_of(numbers);
        }
        for (const record::BatchTable& table : record::kTables) {
            set_table(table.member, recording_.input(std::string(table.name)));
        }
        if (recording_.spec.cache_mode != KVJIT_BLOCK_POINTERS) return;
        set_addresses(record::kBlocks, "cachestarts", addresses_, &kvjit_batch::cachestarts);
        set_addresses(record::kScaleBlocks, "scalestarts", scale_addresses_, &kvjit_batch::scalestarts);
    }

    void set_table(kvjit_tensor kvjit_batch::* member, const Tensor& entries) {
        host_batch_.*member = batch_.*member = entries.view();
        (batch_.*member).data = address_of(entries);
    }

    /// Numbers of blocks become addresses; what is no block's number becomes 0, which kvjit refuses where it counts.
    void set_addresses(std::string_view blocks, const std::string& table, Tensor& addresses,
                       kvjit_tensor kvjit_batch::* member) {
        const Tensor& numbers = recording_.input(table);
        const Tensor& memory = recording_.input(std::string(blocks));
        if (!numbers.present() || !memory.present() || memory.shape().empty()) return;
        Placed& placed = written_[std::string(blocks)] = Placed::blocks(memory);
        if (place_) placed.move(place_);
        addresses = Tensor(KVJIT_I64, {numbers.shape().begin(), numbers.shape().end()}, std::byte{0});
        for (std::int64_t i = 0; i < numbers.size(); ++i) {
            const std::int64_t number = numbers.integer(i);
            const bool is_block = number >= 0 && number < memory.shape()[0];
            const std::int64_t address = is_block ? placed.address(number) : 0;
            std::memcpy(addresses.bytes().data() + i * 8, &address, sizeof address);
        }
        set_table(member, addresses);
    }

    const Recording& recording_;
    const Place place_;
    kvjit_batch batch_, host_batch_;
    kvjit_tensors tensors_;
    std::list<Placed> inputs_;
    std::map<std::string, Placed> written_;
    Tensor addresses_, scale_addresses_;
};

RecordedRun::RecordedRun(Kernel kernel, std::unique_ptr<Call> call)
    : kernel_(std::move(kernel)), call_(std::move(call)) {}
RecordedRun::RecordedRun(RecordedRun&&) noexcept = default;
RecordedRun::~RecordedRun() = default;

Result<RecordedRun> RecordedRun::make(const Machine& machine, const Recording& recording) {
    auto kernel = open_kernel(machine.engine, recording.spec, machine.target);
    if (!kernel) return fail(kernel.error());
    RecordedRun run(*std::move(kernel), std::make_unique<Call>(recording, machine.place));
    kvjit_plan_options options = plan_options(machine, run.call_->host_batch());
    options.stores_nothing = recording.stores_nothing ? 1 : 0;
    if (machine.on_cuda) {
        options.split_keys = recording.split_keys;
        options.prefill_split_keys = recording.prefill_split_keys;
    }
    auto plan = make_plan(run.kernel_.get(), run.call_->batch(), options);
    if (!plan) return fail(plan.error());
    run.plan_ = *std::move(plan);
    return run;
}

RunResult<void> RecordedRun::start() const {
    return start_plan(plan_.get(), call_->tensors(), 0);
}

RunResult<void> RecordedRun::finish() const {
    return finish_plan(plan_.get());
}

Results RecordedRun::results() const {
    return call_->results();
}

RunResult<Results> run_recording(const Machine& machine, const Recording& recording) {
    const Result<RecordedRun> made = RecordedRun::make(machine, recording);
    if (!made) return not_run(made.error());
    if (const auto started = made->start(); !started) return std::unexpected(started.error());
    if (const auto done = made->finish(); !done) return std::unexpected(done.error());
    return made->results();
}

}  // namespace kvjit::tool
