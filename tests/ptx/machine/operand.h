// An instruction's operands as they stand in the text, and how they fit a row of the table.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ptx/machine/cursor.h"
#include "ptx/machine/instructions.h"
#include "ptx/machine/kernel.h"

namespace kvjit::ptx {

struct Operand {
    enum class Kind { kRegister, kNumber, kName, kAddress };  // kName: a symbol, a special register or a label
    Kind kind = Kind::kNumber;
    std::string_view word;  // of an address: its base
    u64 bits = 0;           // of a number
    i32 offset = 0;         // of an address
};

/// The places of a kernel's registers, given as they are first named; constants and special registers too. Errors:
/// those of the cursor, Fault with the PTX line.
class Registers {
public:
    Registers(Kernel& kernel, const Cursor& cursor) : kernel_(kernel), cursor_(cursor) {}

    /// .reg .b32 one, %r<10>; types of 8 bits have 16. With a count, `name` begins the names of so many registers, from
    /// %r0 on. Refused: a type that is not known, a row whose name ends in a digit, and what is declared here or in an
    /// outer scope.
    void declare(std::string_view type, std::string_view name, std::optional<u64> count);
    /// Between braces: what is declared there ends there.
    void enter_scope() { scopes_.emplace_back(); }
    void leave_scope();
    void define(std::string_view symbol, u64 address) { symbols_[symbol] = address; }

    bool is_register(std::string_view word) const;
    Width width_of(std::string_view word) const;
    /// Whether the operand can stand where the table has `letter`.
    bool fits(const Operand& operand, char letter, bool is_destination) const;
    /// Precondition: it fits, and is no label.
    Place place_of(const Operand& operand, char letter);

private:
    /// What .reg declares: a register, or a row of them.
    struct Name {
        std::string_view text;
        bool is_row;
        auto operator<=>(const Name&) const = default;
    };
    struct Declared {
        Width width;
        u64 count;  // of a row
    };

    /// Where the register `word` is declared, by itself or in a row; names_.end(): nowhere.
    std::map<Name, Declared>::const_iterator declared(std::string_view word) const;
    bool is_symbol(std::string_view word) const { return symbols_.contains(word); }
    Place allocate(Width width, const std::string& name);
    Place place_of_register(std::string_view word);
    Place place_of_constant(Width width, u64 bits);
    Place place_of_special(std::string_view word, Width width);

    Kernel& kernel_;
    const Cursor& cursor_;
    std::map<Name, Declared> names_;
    std::vector<std::vector<Name>> scopes_;  // inner ones: the names declared there
    std::unordered_map<std::string_view, u64> symbols_;
    std::unordered_map<std::string_view, Place> places_;
    std::unordered_map<std::string, Place> constants_;
};

}  // namespace kvjit::ptx
