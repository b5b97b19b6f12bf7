// The oracle: a cache whose every element is found by the letters of its layout, one at a time. It shares no code with
// what it checks, but for the parsing of specs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "call/oracle.h"
#include "kvjit/blocks.hpp"
#include "support/rng.h"

namespace kvjit::test {

using Bytes = std::vector<unsigned char>;

/// Elements of one head's token in a tensor: codes, or scales.
struct ModelTensor {
    std::string name;  // of kvjit_tensors
    std::vector<LayoutAxis> axes;
    bool has_keys, has_values, scales;
    std::int64_t element_bytes;
    RowType row;
    std::vector<std::int64_t> extents, strides;  // strides in elements
    std::int64_t origin = 0;                     // byte at which the element with all indices 0 lies
    Bytes memory;                                // more than the tensor: what lies between its elements, too
};

/// How large a cache is, beside what its spec says.
struct ModelSize {
    std::int64_t heads = 2, layers = 1;
    std::int64_t blocks = 5;  // or, where ids are tokens, as many times a page's tokens and a few
    std::int64_t sequence_tokens = 6;
};

/// A kvjit_blocks with memory of its own, filled with random bytes.
class CacheModel {
public:
    CacheModel(const kvjit_spec& spec, const ModelSize& size, Rng& random);
    CacheModel(const CacheModel&) = delete;
    CacheModel& operator=(const CacheModel&) = delete;

    kvjit_blocks blocks() const;
    kvjit_memory lies_in() const { return lies_in_; }
    void set_lies_in(kvjit_memory memory) { lies_in_ = memory; }
    const kvjit_spec& spec() const { return spec_; }
    kvjit_batch& batch() { return batch_; }
    kvjit_tensors& tensors() { return tensors_; }

    /// Tokens of a block; how many ids there may be with blocks that are apart; the i-th of them.
    std::int64_t tokens() const { return tokens_; }
    std::int64_t id_count() const { return id_count_; }
    std::int64_t id(std::int64_t i) const;
    std::int64_t scale_id(std::int64_t i) const;
    bool has_scale_ids() const { return has_addresses_ && spec_.quant_bit != 0; }
    /// Of these, as the API takes them.
    std::vector<std::int64_t> ids(const std::vector<std::int64_t>& which) const;

    /// What the i-th block holds: its elements' bytes by part, layer, head, token and place in the row; then scales.
    Bytes content(std::int64_t i) const;
    void set_content(std::int64_t i, const Bytes& bytes);

    /// All memory there is.
    std::vector<Bytes> memory() const;
    void set_memory(const std::vector<Bytes>& memory);
    std::vector<ModelTensor>& parts() { return parts_; }

private:
    void add_tensor(const std::string& name, const std::string& layout, bool keys, bool values, bool scales,
                    Rng& random);
    void lay_out(ModelTensor& tensor, Rng& random) const;
    /// Calls `each(tensor, byte offset)` for each element of block i.
    template <class Self, class Each>
    static void for_each_element(Self& self, std::int64_t i, const Each& each);
    std::int64_t offset(const ModelTensor& tensor, std::int64_t i, bool value, std::int64_t layer, std::int64_t head,
                        std::int64_t token, std::int64_t d) const;

    kvjit_memory lies_in_ = KVJIT_MEMORY_HOST;
    kvjit_spec spec_;
    ModelSize size_;
    kvjit_batch batch_;
    kvjit_tensors tensors_;
    bool has_addresses_, has_tokens_;
    std::int64_t tokens_, id_count_, max_tokens_ = 0;
    std::vector<ModelTensor> parts_;
};

}  // namespace kvjit::test
