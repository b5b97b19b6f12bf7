// What the sequences of a call look like, and which of two caches' tokens a relayout copies. Part of kvjit.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <type_traits>

#include "kvjit/cpp/tensor.hpp"

namespace kvjit {

/// An index array of a batch: a container of std::int32_t or std::int64_t, named, since plans read it.
struct Indices {
    Indices() = default;
    template <class Container, class Element = detail::ElementOf<Container>>
    Indices(Container& indices) : elements(std::data(indices)), length(static_cast<std::int64_t>(std::size(indices))) {
        constexpr kvjit_dtype kType = detail::checked_dtype<Element>();
        static_assert(kType == KVJIT_I32 || kType == KVJIT_I64, "an index is a std::int32_t or a std::int64_t");
        type = kType;
        if (length == 0) elements = &kNone;
    }
    template <class Container, class = detail::ElementOf<const Container>>
    Indices(const Container&&) = delete;

    static constexpr std::int64_t kNone = 0;  // an empty array may have no address, as an absent one
    const void* elements = nullptr;
    std::int64_t length = 0;
    std::int32_t type = KVJIT_AUTO;
};

/// See kvjit_batch. Arrays are the caller's, and stay as they are until the plan is released.
///
/// Those that are given by the functions below are held against batch_size and the spec's starts_type where a plan is
/// made of the Batch itself, or of a Relayout between two: KVJIT_BAD_SHAPE, KVJIT_BAD_DTYPE. Of members that are set to
/// pointers nobody knows lengths and types.
struct Batch : kvjit_batch {
    Batch() { kvjit_batch_init(this); }

    /// (B+1); it makes the batch_size.
    Batch& set_seqstarts(Indices starts) {
        batch_size = starts.length - 1;
        return set(&kvjit_batch::seqstarts, starts);
    }
    Batch& set_kvstarts(Indices starts) { return set(&kvjit_batch::kvstarts, starts); }              ///< (B+1)
    Batch& set_start_pos(Indices positions) { return set(&kvjit_batch::start_pos, positions); }      ///< (B)
    Batch& set_kvlens(Indices lengths) { return set(&kvjit_batch::kvlens, lengths); }                ///< (B)
    Batch& set_last_page_len(Indices lengths) { return set(&kvjit_batch::last_page_len, lengths); }  ///< (B)
    Batch& set_rowstarts(Indices starts) { return set(&kvjit_batch::rowstarts, starts); }            ///< (B+1)
    Batch& set_row_index(Indices rows) { return set(&kvjit_batch::row_index, rows); }                ///< (B)

    /// Whether they fit batch_size and `starts_type` (KVJIT_AUTO: either). The errors' arguments begin with `side`.
    Result<void> check(std::int32_t starts_type, const std::string& side = "") const {
        if (batch_size < 0) return {};  // which the library refuses; an empty seqstarts has made it
        for (std::size_t i = 0; i < std::size(kRows); ++i) {
            if (arrays_[i].type == KVJIT_AUTO || arrays_[i].elements != this->*kRows[i].member) continue;
            if (Result<void> fits = check(i, side + kRows[i].name, starts_type); !fits) return fits;
        }
        return {};
    }

private:
    struct Row {
        const char* name;
        const void* kvjit_batch::* member;
        std::int64_t more;  // elements than sequences
    };
    static constexpr Row kRows[] = {
        {"seqstarts", &kvjit_batch::seqstarts, 1},         {"kvstarts", &kvjit_batch::kvstarts, 1},
        {"start_pos", &kvjit_batch::start_pos, 0},         {"kvlens", &kvjit_batch::kvlens, 0},
        {"last_page_len", &kvjit_batch::last_page_len, 0}, {"rowstarts", &kvjit_batch::rowstarts, 1},
        {"row_index", &kvjit_batch::row_index, 0}};

    Result<void> check(std::size_t i, const std::string& name, std::int32_t starts_type) const {
        const Indices& array = arrays_[i];
        if (starts_type != KVJIT_AUTO && array.type != starts_type) {
            const auto type = [](std::int32_t index) { return std::string(index == KVJIT_I32 ? "int32" : "int64"); };
            const std::string message =
                name + " has elements of " + type(array.type) + "; the spec's starts_type is " + type(starts_type);
            return Error(KVJIT_BAD_DTYPE, name.c_str(), message.c_str(), array.type, starts_type);
        }
        const std::int64_t length = batch_size + (batch_size == INT64_MAX ? 0 : kRows[i].more);
        if (array.length == length) return {};
        const std::string message = name + " has " + std::to_string(array.length) + " elements; with batch_size " +
                                    std::to_string(batch_size) + " it takes " + std::to_string(length);
        return Error(KVJIT_BAD_SHAPE, name.c_str(), message.c_str(), array.length, length);
    }

    Batch& set(const void* kvjit_batch::* member, const Indices& array) {
        this->*member = array.elements;
        for (std::size_t i = 0; i < std::size(kRows); ++i) {
            if (kRows[i].member == member) arrays_[i] = array;
        }
        return *this;
    }

    Indices arrays_[std::size(kRows)];
};

/// Which tokens of which cache go where. The batches are the caller's.
struct Relayout : kvjit_relayout {
    Relayout(const kvjit_batch& source, const kvjit_batch& destination) {
        kvjit_relayout_init(this);
        from = &source;
        to = &destination;
    }
    Relayout(const Batch& source, const Batch& destination)
        : Relayout(static_cast<const kvjit_batch&>(source), static_cast<const kvjit_batch&>(destination)) {
        from_ = &source;
        to_ = &destination;
    }
    /// Batch::check of the batches that it was made of, as far as `from` and `to` still are these.
    Result<void> check(std::int32_t starts_type) const {
        if (from_ != nullptr && from == from_) {
            if (Result<void> fits = from_->check(starts_type, "from."); !fits) return fits;
        }
        return to_ != nullptr && to == to_ ? to_->check(starts_type, "to.") : Result<void>();
    }

private:
    const Batch* from_ = nullptr;
    const Batch* to_ = nullptr;
};

}  // namespace kvjit
