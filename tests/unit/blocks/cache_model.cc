#include "cache_model.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "call/oracle.h"

namespace kvjit::test {
CacheModel::CacheModel(const kvjit_spec& spec, const ModelSize& size, Rng& random) : spec_(spec), size_(size) {
    const int mode = spec.cache_mode;
    has_addresses_ = mode == KVJIT_BLOCK_POINTERS;
    has_tokens_ = mode == KVJIT_OFFSET || mode == KVJIT_TOKEN_TABLE || mode == KVJIT_PAGE_TABLE;
    tokens_ = mode == KVJIT_OFFSET || mode == KVJIT_TOKEN_TABLE ? 1
              : mode == KVJIT_SEQUENCE_TABLE                    ? size.sequence_tokens
                                                                : spec.page_size;
    id_count_ = size.blocks;
    const std::string keys = spec.layout, values = spec.value_layout[0] != '\0' ? spec.value_layout : spec.layout;
    const auto split = keys.find('t');
    max_tokens_ = tokens_ * id_count_;
    if (has_tokens_ && split == std::string::npos && values.find('t') == std::string::npos) max_tokens_ += 3;
    if (tokens_ == 1) max_tokens_ = (max_tokens_ + 15) / 16 * 16;
    kvjit_batch_init(&batch_);
    batch_.num_kv_heads = size.heads;
    batch_.num_layers = size.layers;
    if (has_tokens_) batch_.max_tokens = max_tokens_;
    if (mode == KVJIT_SEQUENCE_TABLE) batch_.max_tokens = tokens_;
    if (mode == KVJIT_SEQUENCE_TABLE || mode == KVJIT_BLOCK_TABLE) batch_.num_blocks = id_count_;
    kvjit_tensors_init(&tensors_);
    const bool apart = keys.find('2') == std::string::npos;
    for (const bool scales : {false, true}) {
        if (scales && spec.quant_bit == 0) break;
        if (!apart) {
            add_tensor(scales ? "scale" : "cache", keys, true, true, scales, random);
        } else {
            add_tensor(scales ? "key_scale" : "key_cache", keys, true, false, scales, random);
            add_tensor(scales ? "value_scale" : "value_cache", values, false, true, scales, random);
        }
    }
}

void CacheModel::add_tensor(const std::string& name, const std::string& layout, bool keys, bool values, bool scales,
                            Rng& random) {
    const RowType row = scales ? scale_row(spec_) : code_row(spec_);
    ModelTensor tensor{
        name, layout_axes(layout), keys, values, scales, static_cast<std::int64_t>(bytes_of(row.dtype)), row, {}, {}, 0,
        {}};
    kvjit_batch extents = batch_;
    extents.max_tokens = has_tokens_ ? max_tokens_ : tokens_;
    extents.num_blocks = id_count_;
    tensor.extents = cache_shape(spec_, extents, layout, row.elements);
    lay_out(tensor, random);
    for (unsigned char& byte : tensor.memory) byte = static_cast<unsigned char>(random.next());
    parts_.push_back(std::move(tensor));
    if (has_addresses_) return;
    const ModelTensor& made = parts_.back();
    kvjit_tensor view{};
    view.data = const_cast<unsigned char*>(made.memory.data()) + made.origin;
    view.dtype = row.dtype;
    view.rank = static_cast<std::int32_t>(made.axes.size());
    std::copy(made.extents.begin(), made.extents.end(), view.shape);
    std::copy(made.strides.begin(), made.strides.end(), view.strides);
    (name == "cache"         ? tensors_.cache
     : name == "scale"       ? tensors_.scale
     : name == "key_cache"   ? tensors_.key_cache
     : name == "value_cache" ? tensors_.value_cache
     : name == "key_scale"   ? tensors_.key_scale
                             : tensors_.value_scale) = view;
}

/// Strides: sometimes the layout's own, sometimes with gaps, in another order, with values in front of keys.
void CacheModel::lay_out(ModelTensor& tensor, Rng& random) const {
    const std::size_t rank = tensor.axes.size();
    std::vector<std::size_t> order(rank);
    std::iota(order.begin(), order.end(), 0);
    const bool plain = has_addresses_ || random.chance(0.4);
    if (!plain && random.chance(0.5)) {
        std::vector<std::size_t> outer(order.begin(), order.end() - 1);
        random.shuffle(outer);
        std::copy(outer.begin(), outer.end(), order.begin());
    }
    // From a key to its value the way leads past the row, where the layout has them so.
    const auto place = [&](char letter) {
        return static_cast<std::size_t>(std::ranges::find(tensor.axes, letter, &LayoutAxis::name) -
                                        tensor.axes.begin());
    };
    const std::size_t part = place('2'), row = place('D');
    const bool is_free = part < row;
    const auto of_part = std::ranges::find(order, part), of_row = std::ranges::find(order, row);
    if (is_free && of_part > of_row) std::iter_swap(of_part, of_row);
    tensor.strides.resize(rank);
    std::int64_t next = 1;
    for (std::size_t i = rank; i-- > 0;) {
        tensor.strides[order[i]] = next;
        next *= tensor.extents[order[i]];
        if (!plain && i + 1 < rank && random.chance(0.3)) next += random.between(1, 3);
    }
    // Dense blocks at addresses, one after the other with a gap.
    const std::int64_t count = has_addresses_ ? id_count_ * (next + 3) : next + 2;
    tensor.memory.resize(static_cast<std::size_t>(count * tensor.element_bytes));
    if (!plain && is_free && random.chance(0.3)) {
        tensor.origin = tensor.strides[part] * tensor.element_bytes;
        tensor.strides[part] = -tensor.strides[part];
    }
}

kvjit_blocks CacheModel::blocks() const {
    kvjit_blocks blocks;
    kvjit_blocks_init(&blocks);
    blocks.memory = lies_in_;
    blocks.spec = &spec_;
    blocks.batch = &batch_;
    blocks.tensors = has_addresses_ ? nullptr : &tensors_;
    return blocks;
}

std::int64_t CacheModel::id(std::int64_t i) const {
    if (!has_addresses_) return has_tokens_ ? i * tokens_ : i;
    const auto size = static_cast<std::int64_t>(parts_[0].memory.size()) / id_count_;
    return static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(parts_[0].memory.data())) + i * size;
}

std::int64_t CacheModel::scale_id(std::int64_t i) const {
    const auto size = static_cast<std::int64_t>(parts_[1].memory.size()) / id_count_;
    return static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(parts_[1].memory.data())) + i * size;
}

std::vector<std::int64_t> CacheModel::ids(const std::vector<std::int64_t>& which) const {
    std::vector<std::int64_t> all;
    for (const std::int64_t i : which) all.push_back(id(i));
    for (const std::int64_t i : which) {
        if (has_scale_ids()) all.push_back(scale_id(i));
    }
    return all;
}

std::int64_t CacheModel::offset(const ModelTensor& tensor, std::int64_t i, bool value, std::int64_t layer,
                                std::int64_t head, std::int64_t token, std::int64_t d) const {
    const CacheElement element{i, has_tokens_ ? i * tokens_ + token : token, layer, value, head, d};
    const std::int64_t elements = offset_of(element, tensor.axes, tensor.strides.data());
    const std::int64_t block =
        has_addresses_ ? i * (static_cast<std::int64_t>(tensor.memory.size()) / id_count_) : tensor.origin;
    return block + elements * tensor.element_bytes;
}

template <class Self, class Each>
void CacheModel::for_each_element(Self& self, std::int64_t i, const Each& each) {
    for (const bool scales : {false, true}) {
        for (const bool value : {false, true}) {
            for (auto& tensor : self.parts_) {
                if (tensor.scales != scales || !(value ? tensor.has_values : tensor.has_keys)) continue;
                for (std::int64_t layer = 0; layer < self.size_.layers; ++layer)
                    for (std::int64_t head = 0; head < self.size_.heads; ++head)
                        for (std::int64_t token = 0; token < self.tokens_; ++token)
                            for (std::int64_t d = 0; d < tensor.row.elements; ++d)
                                each(tensor, self.offset(tensor, i, value, layer, head, token, d));
            }
        }
    }
}

Bytes CacheModel::content(std::int64_t i) const {
    Bytes bytes;
    for_each_element(*this, i, [&](const ModelTensor& tensor, std::int64_t at) {
        const unsigned char* element = tensor.memory.data() + at;
        bytes.insert(bytes.end(), element, element + tensor.element_bytes);
    });
    return bytes;
}

void CacheModel::set_content(std::int64_t i, const Bytes& bytes) {
    std::size_t next = 0;
    for_each_element(*this, i, [&](ModelTensor& tensor, std::int64_t at) {
        const auto size = static_cast<std::size_t>(tensor.element_bytes);
        std::memcpy(tensor.memory.data() + at, bytes.data() + next, size);
        next += size;
    });
}

std::vector<Bytes> CacheModel::memory() const {
    std::vector<Bytes> all;
    for (const ModelTensor& tensor : parts_) all.push_back(tensor.memory);
    return all;
}

void CacheModel::set_memory(const std::vector<Bytes>& memory) {
    for (std::size_t i = 0; i < parts_.size(); ++i) {
        std::copy(memory[i].begin(), memory[i].end(), parts_[i].memory.begin());
    }
}

}  // namespace kvjit::test
