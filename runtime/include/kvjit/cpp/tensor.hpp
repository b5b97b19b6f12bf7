// Views of the caller's memory, typed where that has a type. Part of kvjit.hpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <string>
#include <type_traits>

#include "kvjit/cpp/call.hpp"
#include "kvjit/cpp/element.hpp"

namespace kvjit {
namespace detail {

/// Of a container, or of anything else that std::data and std::size take.
template <class Container, class = decltype(std::size(std::declval<Container&>()))>
using ElementOf = std::remove_pointer_t<decltype(std::data(std::declval<Container&>()))>;

constexpr std::size_t bytes_of(kvjit_dtype type) {
    switch (type) {
        case KVJIT_F32:
        case KVJIT_I32:
            return 4;
        case KVJIT_F16:
        case KVJIT_BF16:
            return 2;
        case KVJIT_I64:
            return 8;
        default:
            return 1;
    }
}

/// dtype_of, or why it doesn't compile.
template <class Element>
constexpr kvjit_dtype checked_dtype() {
    using T = std::remove_cv_t<Element>;
    constexpr kvjit_dtype kType = dtype_of<T>;
    constexpr bool kIsKnown = kType != KVJIT_AUTO;
    static_assert(kIsKnown, "no kvjit_dtype has such elements; see kvjit::dtype_of");
    static_assert(!kIsKnown || sizeof(T) == bytes_of(kType), "kvjit::dtype_of names a type of another size");
    static_assert(std::is_trivially_copyable_v<T>, "elements are copied as bytes");
    return kType;
}

/// A view's extents: {rows, 8, 128}, or a container; whole numbers of any type.
class Extents {
public:
    struct Extent {
        template <class Integer, class = std::enable_if_t<std::is_integral_v<Integer>>>
        Extent(Integer extent) : value(static_cast<std::int64_t>(extent)) {}
        std::int64_t value;
    };
    Extents(std::initializer_list<Extent> extents) : Extents(extents.begin(), extents.end()) {}
    template <class Container, class = ElementOf<const Container>>
    Extents(const Container& extents) : Extents(std::begin(extents), std::end(extents)) {}
    template <class Iterator>
    Extents(Iterator begin, Iterator end) {
        for (; begin != end; ++begin, ++rank_) {
            if (rank_ < KVJIT_MAX_RANK) extents_[rank_] = Extent(*begin).value;
        }
    }
    const std::int64_t* begin() const { return extents_; }
    const std::int64_t* end() const { return extents_ + std::min(rank_, KVJIT_MAX_RANK); }
    /// Extents beyond KVJIT_MAX_RANK, which are refused, are counted and not kept.
    std::int32_t rank() const { return rank_; }

    /// How many elements they take; the largest number where there is no number for it.
    std::int64_t elements() const {
        std::int64_t product = 1;
        bool fits = true;
        for (const std::int64_t extent : *this) fits = !__builtin_mul_overflow(product, extent, &product) && fits;
        return fits || std::find(begin(), end(), 0) != end() ? product : std::numeric_limits<std::int64_t>::max();
    }

private:
    std::int64_t extents_[KVJIT_MAX_RANK] = {};
    std::int32_t rank_ = 0;
};

}  // namespace detail

/// A view of the caller's memory, which outlives its use.
struct Tensor : kvjit_tensor {
    /// Absent.
    Tensor() : kvjit_tensor{} {}

    /// Row-major, of the container's elements: std::vector, std::array, an array, anything with data() and size(),
    /// named, since it outlives the view. The type is the element's (kvjit::dtype_of), const or not. Where the extents
    /// take more elements than it has, or fewer, the plan or run that gets the view is refused: KVJIT_BAD_SHAPE with
    /// the tensor's name, the elements that there are as the value, and those that the extents take as the limit.
    template <class Container, class Element = detail::ElementOf<Container>>
    Tensor(Container& memory, detail::Extents extents)
        : Tensor(std::data(memory), detail::checked_dtype<Element>(), static_cast<std::int64_t>(std::size(memory)),
                 extents) {}
    template <class Container, class = detail::ElementOf<const Container>>
    Tensor(const Container&&, detail::Extents) = delete;

    /// One axis, all elements.
    template <class Container, class = detail::ElementOf<Container>>
    explicit Tensor(Container& memory) : Tensor(memory, {static_cast<std::int64_t>(std::size(memory))}) {}
    template <class Container, class = detail::ElementOf<const Container>>
    explicit Tensor(const Container&&) = delete;

    /// The same of `held` elements of a type that is known when the program runs.
    Tensor(const void* memory, kvjit_dtype type, std::int64_t held, detail::Extents extents)
        : Tensor(memory, type, extents) {
        if (held == extents.elements() || rank > KVJIT_MAX_RANK) return;
        reserved[0] = held;  // which the library refuses, whoever hands it the view
        reserved[1] = extents.elements();
    }

    /// Row-major; that there is as much memory is the caller's business.
    Tensor(const void* memory, kvjit_dtype type, detail::Extents extents)
        : kvjit_tensor(kvjit_tensor_contiguous(const_cast<void*>(memory), type,
                                               std::min(extents.rank(), KVJIT_MAX_RANK), extents.begin())) {
        rank = extents.rank();  // too many are refused
    }
};

struct Tensors : kvjit_tensors {
    Tensors() { kvjit_tensors_init(this); }
};

namespace detail {

constexpr const char* name_of(const kvjit_tensors*) {
    return "kvjit_tensors";
}
constexpr const char* name_of(const kvjit_batch*) {
    return "kvjit_batch";
}

/// The view of this name in a struct; null: there is none.
template <class Struct>
const kvjit_tensor* find_view(const Struct* object, const std::string& name) {
    const kvjit_tensor* found = nullptr;
    auto look = [&](const char* of, const char* field, const char*, std::size_t offset, std::size_t) {
        if (of != std::string(name_of(object)) || field != name) return;
        found = reinterpret_cast<const kvjit_tensor*>(reinterpret_cast<const char*>(object) + offset);
    };
    if (object != nullptr) kvjit_struct_fields(callback(look), &look);
    return found;
}

inline bool has_reserved_words(const kvjit_tensor& view) {
    return view.reserved[0] != 0 || view.reserved[1] != 0;
}

/// Whether the view is a Tensor whose container has other elements than its extents take.
inline bool is_misfit(const kvjit_tensor& view) {
    return view.reserved[0] != view.reserved[1] && view.rank >= 0 && view.rank <= KVJIT_MAX_RANK &&
           view.reserved[1] == Extents(view.shape, view.shape + view.rank).elements();
}

/// Why a view with reserved words is refused, in words of the Tensor's that it may be.
inline Error refuse_reserved(const std::string& name, const kvjit_tensor& view) {
    const auto [held, taken] = view.reserved;
    if (!is_misfit(view))
        return refusal(KVJIT_BAD_ARGUMENT, name + ".reserved", held != 0 ? held : taken, 0,
                       "it takes 0. A Tensor whose container its extents didn't fit keeps other words, also when "
                       "they are changed: assign a new one, of a container and extents that fit");
    const std::string message =
        name + " is a container of " + std::to_string(held) + " elements; its extents take " + std::to_string(taken);
    return {KVJIT_BAD_SHAPE, name.c_str(), message.c_str(), held, taken};
}

/// Explains a refusal of reserved words by the view in this struct that has them; other errors stay. Whether it did.
template <class Struct>
bool explain_by(const Struct* object, Error& error) {
    const std::string given = error.argument(), suffix = ".reserved", name = given.substr(0, given.rfind('.'));
    if (given != name + suffix) return false;
    const kvjit_tensor* view = find_view(object, name.substr(name.rfind('.') + 1));
    if (view == nullptr || !has_reserved_words(*view)) return false;
    error = refuse_reserved(name, *view);
    return true;
}

/// The result of a call that got views in these structs.
template <class Result, class... Structs>
Result explain(Result result, const Structs*... structs) {
    if (result) return result;
    Error error = result.error();
    if ((explain_by(structs, error) || ...)) return error;
    return result;
}

}  // namespace detail
}  // namespace kvjit
