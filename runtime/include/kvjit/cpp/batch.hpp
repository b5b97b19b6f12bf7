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

namespace detail {

/// The type that all arrays of starts have: the spec's, or where nobody knows that the first array's.
class StartsType {
public:
    explicit StartsType(std::int32_t of_spec) : type_(of_spec) {}

    /// Whether an array fits. The error's argument begins with `side`.
    Result<void> check(const char* side, const char* name, std::int32_t type) {
        if (type_ == KVJIT_AUTO) {
            type_ = type;
            source_ = std::string(side) + name + " has ";
        }
        if (type == type_) return {};
        const std::string argument = std::string(side) + name;
        const std::string message = argument + " has elements of " + text(type) + "; " + source_ + text(type_);
        return Error(KVJIT_BAD_DTYPE, argument.c_str(), message.c_str(), type, type_);
    }

private:
    static const char* text(std::int32_t type) { return type == KVJIT_I32 ? "int32" : "int64"; }

    std::int32_t type_;
    std::string source_ = "the spec's starts_type is ";
};

}  // namespace detail

/// See kvjit_batch. Arrays are the caller's, and stay as they are until the plan is released.
///
/// Those that are given by the functions below are checked where a plan is made of the Batch itself, of a Relayout
/// between two, or with it as host_batch: their lengths against batch_size and the tables' extents, their types against
/// the spec's starts_type (KVJIT_BAD_SHAPE, KVJIT_BAD_DTYPE). Of members that are set to pointers nobody knows lengths
/// and types.
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

    /// Tables with these extents; without them one axis, all entries. Of cachestarts these are, by the mode, (B), (K),
    /// (B, MaxP) or (entries), of scalestarts the same, of store_slots (S); each may have an axis L in front.
    Batch& set_cachestarts(Indices entries, detail::Extents extents = {}) {
        return set(&kvjit_batch::cachestarts, entries, extents);
    }
    Batch& set_scalestarts(Indices entries, detail::Extents extents = {}) {
        return set(&kvjit_batch::scalestarts, entries, extents);
    }
    Batch& set_store_slots(Indices slots, detail::Extents extents = {}) {
        return set(&kvjit_batch::store_slots, slots, extents);
    }

    /// Whether arrays and tables fit. The errors' arguments begin with `side`.
    Result<void> check(detail::StartsType& type, const char* side = "") const {
        if (batch_size < 0) return {};  // which the library refuses; an empty seqstarts has made it
        for (std::size_t i = 0; i < std::size(kArrays); ++i) {
            if (arrays_[i].type == KVJIT_AUTO || arrays_[i].elements != this->*kArrays[i].member) continue;
            if (auto fits = type.check(side, kArrays[i].name, arrays_[i].type); !fits) return fits;
            if (auto fits = check_length(side, kArrays[i], arrays_[i].length); !fits) return fits;
        }
        for (const Table& table : kTables) {
            const kvjit_tensor& view = this->*table.member;
            if (detail::has_reserved_words(view)) return detail::refuse_reserved(side + std::string(table.name), view);
        }
        return {};
    }

private:
    struct Array {
        const char* name;
        const void* kvjit_batch::* member;
        std::int64_t more;  // elements than sequences
    };
    static constexpr Array kArrays[] = {
        {"seqstarts", &kvjit_batch::seqstarts, 1},         {"kvstarts", &kvjit_batch::kvstarts, 1},
        {"start_pos", &kvjit_batch::start_pos, 0},         {"kvlens", &kvjit_batch::kvlens, 0},
        {"last_page_len", &kvjit_batch::last_page_len, 0}, {"rowstarts", &kvjit_batch::rowstarts, 1},
        {"row_index", &kvjit_batch::row_index, 0}};
    struct Table {
        const char* name;
        kvjit_tensor kvjit_batch::* member;
    };
    static constexpr Table kTables[] = {{"cachestarts", &kvjit_batch::cachestarts},
                                        {"scalestarts", &kvjit_batch::scalestarts},
                                        {"store_slots", &kvjit_batch::store_slots}};

    Result<void> check_length(const char* side, const Array& array, std::int64_t given) const {
        const std::int64_t length = batch_size + (batch_size == INT64_MAX ? 0 : array.more);
        if (given == length) return {};
        const std::string argument = std::string(side) + array.name;
        const std::string message = argument + " has " + std::to_string(given) + " elements; with batch_size " +
                                    std::to_string(batch_size) + " it takes " + std::to_string(length);
        return Error(KVJIT_BAD_SHAPE, argument.c_str(), message.c_str(), given, length);
    }

    Batch& set(const void* kvjit_batch::* member, const Indices& array) {
        this->*member = array.elements;
        for (std::size_t i = 0; i < std::size(kArrays); ++i) {
            if (kArrays[i].member == member) arrays_[i] = array;
        }
        return *this;
    }
    Batch& set(kvjit_tensor kvjit_batch::* member, const Indices& entries, const detail::Extents& extents) {
        const auto type = static_cast<kvjit_dtype>(entries.type);
        this->*member = Tensor(entries.elements, type, entries.length,
                               extents.rank() == 0 ? detail::Extents{entries.length} : extents);
        return *this;
    }

    Indices arrays_[std::size(kArrays)];
};

namespace detail {

/// A Batch that a struct's pointer was set to, and which is checked as long as the pointer stays there.
class PointedBatch {
public:
    PointedBatch() = default;
    explicit PointedBatch(const Batch& batch) : batch_(&batch) {}
    /// Batch::check.
    Result<void> check(const kvjit_batch* pointer, StartsType& type, const char* side) const {
        return batch_ != nullptr && pointer == batch_ ? batch_->check(type, side) : Result<void>();
    }

private:
    const Batch* batch_ = nullptr;
};

}  // namespace detail

/// Which tokens of which cache go where. The batches are the caller's.
struct Relayout : kvjit_relayout {
    Relayout(const kvjit_batch& source, const kvjit_batch& destination) {
        kvjit_relayout_init(this);
        from = &source;
        to = &destination;
    }
    Relayout(const Batch& source, const Batch& destination)
        : Relayout(static_cast<const kvjit_batch&>(source), static_cast<const kvjit_batch&>(destination)) {
        from_ = detail::PointedBatch(source);
        to_ = detail::PointedBatch(destination);
    }
    /// Batch::check of the batches that it was made of, as far as `from` and `to` still are these.
    Result<void> check(detail::StartsType& type) const {
        Result<void> fits = from_.check(from, type, "from.");
        return fits ? to_.check(to, type, "to.") : fits;
    }

private:
    detail::PointedBatch from_, to_;
};

}  // namespace kvjit
