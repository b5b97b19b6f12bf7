// Libraries that may be missing: opened at first use, each through one table of its functions.
#pragma once

#include <span>
#include <string>

#include "generator/error.h"

namespace kvjit::rt {

/// The texts of errors about a library.
struct LibraryText {
    kvjit_status status;
    const char* argument;
    const char* title;   // "NVIDIA's driver (libcuda.so.1)"
    const char* advice;  // what to install, a clause
};

/// Errors: text.status in a process that can't open any library.
gen::Result<void> check_process(const LibraryText& text);

/// A function of a library: its symbol, and the member of `Api` that its address goes to.
template <class Api>
struct Symbol {
    const char* name;
    void (*set)(Api& api, void* address);
    bool required;
};

namespace detail {
template <class Api, class Function>
Api api_of(Function* Api::*);
}

/// The Symbol<Api> of a member that is a pointer to a function.
template <auto kMember>
constexpr auto symbol(const char* name, bool required = true) {
    using Api = decltype(detail::api_of(kMember));
    return Symbol<Api>{name,
                       [](Api& api, void* address) {
                           using Pointer = std::remove_reference_t<decltype(api.*kMember)>;
                           api.*kMember = reinterpret_cast<Pointer>(address);
                       },
                       required};
}

/// Stays open until the process ends: neither the driver nor NVRTC survives being closed in use.
class DynamicLibrary {
public:
    /// The first of `candidates` that opens: paths, or names for the linker to find. Errors: text.status; the message
    /// has each candidate and why it failed, or why this process can't open any.
    static gen::Result<DynamicLibrary> open(const LibraryText& text, std::span<const std::string> candidates);

    /// Null: no such symbol.
    void* find(const char* symbol) const;
    /// Resolved path of the file.
    std::string path() const;

    /// Sets all members. Errors: text.status, naming the first required symbol that the library lacks.
    template <class Api>
    gen::Result<void> fill(Api& api, std::span<const Symbol<Api>> symbols) const {
        for (const Symbol<Api>& symbol : symbols) {
            void* address = find(symbol.name);
            if (address == nullptr && symbol.required) return lacks(symbol.name);
            symbol.set(api, address);
        }
        return {};
    }

private:
    DynamicLibrary(const LibraryText& text, void* handle) : text_(&text), handle_(handle) {}
    std::unexpected<gen::Error> lacks(const char* symbol) const;

    const LibraryText* text_;
    void* handle_;
};

/// "NVRTC can't be opened: WHAT; ADVICE".
std::unexpected<gen::Error> missing_library(const LibraryText& text, const std::string& what);

}  // namespace kvjit::rt
