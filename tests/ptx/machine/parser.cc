#include "ptx/machine/parser.h"

#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

#include "ptx/machine/control_flow.h"
#include "ptx/machine/cursor.h"
#include "ptx/machine/fault.h"
#include "ptx/machine/operand.h"
#include "ptx/machine/together.h"

namespace kvjit::ptx {
namespace {

/// Rows of the table by name.
const std::unordered_map<std::string_view, std::vector<u16>>& rows_by_name() {
    static const auto rows = [] {
        std::unordered_map<std::string_view, std::vector<u16>> made;
        const auto table = instruction_table();
        for (std::size_t i = 0; i < table.size(); ++i) made[table[i].name].push_back(static_cast<u16>(i));
        return made;
    }();
    return rows;
}

/// The least .target whose code may have the instruction; empty: any.
std::string_view least_target_of(std::string_view name) {
    if (name.starts_with("wgmma.")) return "sm_90a";
    if (name.starts_with("fence.proxy.")) return "sm_90";
    return {};
}

/// Whether code for `target` may have what takes `least`. What takes a target that ends in "a", that target alone may
/// have.
bool has(std::string_view target, std::string_view least) {
    if (least.empty() || target == least) return true;
    const auto number = [](std::string_view name) { return std::atoi(std::string(name.substr(3)).c_str()); };
    return !least.ends_with('a') && target.size() > 3 && number(target) >= number(least);
}

/// The first instruction that is refused. It is said when the module has been read: files are named behind the
/// kernels.
struct Refusal {
    std::string kernel, what;
    Origin origin;
};

class EntryParser {
public:
    EntryParser(Cursor& cursor, std::string_view target, LineTable& lines, const std::vector<std::string_view>& shared,
                std::optional<Refusal>& refused)
        : cursor_(cursor), target_(target), lines_(lines), refused_(refused), registers_(kernel_, cursor) {
        for (const std::string_view name : shared) registers_.define(name, kSharedBegin);
    }

    Kernel run() {
        kernel_.name = cursor_.word();
        parse_parameters();
        while (!cursor_.peek().is("{")) parse_limit();
        cursor_.expect("{");
        while (!cursor_.take_if("}")) parse_statement();
        finish();
        return std::move(kernel_);
    }

private:
    // ---- Around the body -----------------------------------------------------------------------------------------

    void parse_parameters() {
        cursor_.expect("(");
        while (!cursor_.take_if(")")) {
            cursor_.expect(".param");
            cursor_.expect(".align");
            const u64 alignment = cursor_.number();
            cursor_.expect(".b8");
            const std::string_view name = cursor_.word();
            cursor_.expect("[");
            const u64 begin = (kernel_.parameter_bytes + alignment - 1) / alignment * alignment;
            kernel_.parameter_bytes = static_cast<u32>(begin + cursor_.number());
            cursor_.expect("]");
            registers_.define(name, kParameterBegin + begin);
            cursor_.take_if(",");
        }
    }

    void parse_limit() {
        const std::string_view what = cursor_.word();
        const u64 number = cursor_.number();
        u64 product = number;
        while (cursor_.take_if(",")) product *= cursor_.number();
        if (what == ".maxntid") {
            kernel_.max_threads = static_cast<u32>(product);
        } else if (what != ".minnctapersm") {  // how many registers leave room for so many blocks is ptxas's business
            cursor_.fail("'" + std::string(what) + "' is not known");
        }
    }

    void finish() {
        if (refused_) return;  // which is said when the module has been read
        for (const auto& [instruction, label] : targets_) {
            const auto found = labels_.find(label);
            if (found == labels_.end()) cursor_.fail("there is no label " + std::string(label));
            if (found->second >= kernel_.instructions.size()) fail_without_end();
            kernel_.instructions[instruction].target = found->second;
        }
        if (kernel_.instructions.empty()) fail_without_end();
        const Instruction& last = kernel_.instructions.back();
        if (last.is_guarded || !(last.is_branch || last.execute == ret)) fail_without_end();
        set_reconvergence(kernel_.instructions, ret);
    }

    [[noreturn]] void fail_without_end() const { cursor_.fail("the kernel " + kernel_.name + " does not end"); }

    // ---- Statements ----------------------------------------------------------------------------------------------

    void parse_statement() {
        const Token& token = cursor_.peek();
        if (token.is(".loc")) return parse_place();
        if (token.is(".reg")) return parse_registers();
        if (token.is("{")) return parse_scope();
        if (token.is(".pragma")) return cursor_.skip_past(";");
        if (token.kind == Token::Kind::kWord && cursor_.peek(1).is(":")) return parse_label();
        if (token.is("@") || (token.kind == Token::Kind::kWord && !token.text.starts_with('.')))
            return parse_instruction();
        cursor_.fail("'" + std::string(token.text) + "' is not known here");
    }

    SourcePlace parse_source_place() {
        SourcePlace place;
        place.file = static_cast<u32>(cursor_.number());
        place.line = static_cast<u32>(cursor_.number());
        place.column = static_cast<u32>(cursor_.number());
        return place;
    }

    /// .loc 1 202 5, function_name NAME[+OFFSET], inlined_at 1 29 5
    void parse_place() {
        cursor_.expect(".loc");
        place_ = parse_source_place();
        if (!cursor_.take_if(",")) return;
        cursor_.expect("function_name");
        cursor_.word();
        if (cursor_.take_if("+")) cursor_.number();
        cursor_.expect(",");
        cursor_.expect("inlined_at");
        lines_.inlined_at[place_] = parse_source_place();
    }

    /// .reg .b32 %r<10>, one;
    void parse_registers() {
        cursor_.expect(".reg");
        const std::string_view type = cursor_.word();
        do {
            const std::string_view name = cursor_.word();
            std::optional<u64> count;
            if (cursor_.take_if("<")) {
                count = cursor_.number();
                cursor_.expect(">");
            }
            registers_.declare(type, name, count);
        } while (cursor_.take_if(","));
        cursor_.expect(";");
    }

    void parse_scope() {
        cursor_.expect("{");
        registers_.enter_scope();
        while (!cursor_.take_if("}")) parse_statement();
        registers_.leave_scope();
    }

    void parse_label() {
        const std::string_view name = cursor_.word();
        cursor_.expect(":");
        const bool is_new = labels_.emplace(name, static_cast<u32>(kernel_.instructions.size())).second;
        if (!is_new) cursor_.fail("the label " + std::string(name) + " is there twice");
    }

    // ---- Instructions --------------------------------------------------------------------------------------------

    void parse_instruction() {
        Instruction in;
        const Origin origin{cursor_.peek().line, place_};
        if (cursor_.take_if("@")) parse_guard(in);
        const std::string_view name = cursor_.word();
        std::vector<Operand> operands;
        if (!cursor_.take_if(";")) {
            do parse_operands(operands);
            while (cursor_.take_if(","));
            cursor_.expect(";");
        }
        resolve(in, name, operands, origin);
        kernel_.instructions.push_back(in);
        kernel_.origins.push_back(origin);
    }

    /// One; two of a shuffle's results, a|b; or a vector, {a, b}.
    void parse_operands(std::vector<Operand>& operands) {
        if (cursor_.take_if("{")) {
            do operands.push_back(parse_operand());
            while (cursor_.take_if(","));
            return cursor_.expect("}");
        }
        operands.push_back(parse_operand());
        if (cursor_.take_if("|")) operands.push_back(parse_operand());
    }

    void parse_guard(Instruction& in) {
        in.is_guarded = true;
        in.is_guard_negated = cursor_.take_if("!");
        const Operand guard = parse_operand();
        if (!registers_.fits(guard, 'p', true)) cursor_.fail("'" + std::string(guard.word) + "' is no predicate");
        in.guard = registers_.place_of(guard, 'p');
    }

    Operand parse_operand() {
        if (cursor_.take_if("[")) return parse_address();
        const Token& token = cursor_.peek();
        const bool is_number =
            token.is("-") || (token.kind == Token::Kind::kWord && token.text[0] >= '0' && token.text[0] <= '9');
        if (is_number) return {Operand::Kind::kNumber, {}, cursor_.number(), 0};
        const std::string_view word = cursor_.word();
        return {registers_.is_register(word) ? Operand::Kind::kRegister : Operand::Kind::kName, word, 0, 0};
    }

    Operand parse_address() {
        Operand address{Operand::Kind::kAddress, cursor_.word(), 0, 0};
        if (cursor_.take_if("+")) {
            const i64 offset = static_cast<i64>(cursor_.number());
            address.offset = static_cast<i32>(offset);
            if (address.offset != offset) cursor_.fail("an offset of " + std::to_string(offset) + " has over 32 bits");
        }
        cursor_.expect("]");
        return address;
    }

    /// Chooses the row of the table, and fills in the operands' places.
    void resolve(Instruction& in, std::string_view name, const std::vector<Operand>& operands, Origin origin) {
        const auto found = rows_by_name().find(name);
        if (found == rows_by_name().end()) return refuse(name, "is not known", origin);
        const std::string_view least = least_target_of(name);
        if (!has(target_, least))
            return refuse(name, "takes .target " + std::string(least) + ", not " + std::string(target_), origin);
        for (const u16 number : found->second) {
            const InstructionRow& row = instruction_table()[number];
            if (!fits(row, operands)) continue;
            in.opcode = number;
            in.execute = row.execute;
            in.is_copy = row.is_copy;
            return place(in, row, operands);
        }
        refuse(name, "is not known with these operands", origin);
    }

    void refuse(std::string_view name, const std::string& what, Origin origin) {
        if (!refused_) refused_ = {kernel_.name, "the instruction " + std::string(name) + " " + what, origin};
    }

    bool fits(const InstructionRow& row, const std::vector<Operand>& operands) const {
        const std::size_t equals = row.operands.find('=');
        if (operands.size() != row.operands.size() - 1) return false;
        for (std::size_t i = 0; i < operands.size(); ++i) {
            const bool is_destination = i < equals;
            if (!registers_.fits(operands[i], row.operands[is_destination ? i : i + 1], is_destination)) return false;
        }
        return true;
    }

    void place(Instruction& in, const InstructionRow& row, const std::vector<Operand>& operands) {
        const std::size_t equals = row.operands.find('=');
        std::size_t filled = 0, addresses = 0, numbers = 0;
        std::vector<Place> list;
        for (std::size_t i = 0; i < operands.size(); ++i) {
            const char letter = row.operands[i < equals ? i : i + 1];
            if (letter == 't') {
                in.is_branch = true;
                targets_.emplace_back(kernel_.instructions.size(), operands[i].word);
            } else if (letter == 'i') {
                in.immediates[numbers++] = static_cast<i64>(operands[i].bits);
            } else if (letter == 'W') {
                list.push_back(registers_.place_of(operands[i], letter));
            } else {
                if (letter == 'A' || letter == 'a') in.offsets[addresses++] = operands[i].offset;
                in.operands[filled++] = registers_.place_of(operands[i], letter);
                ++(i < equals ? in.destinations : in.sources);
            }
        }
        if (list.empty()) return;
        in.list = static_cast<u32>(kernel_.lists.size());
        kernel_.lists.push_back(std::move(list));
    }

    Cursor& cursor_;
    std::string_view target_;
    LineTable& lines_;
    std::optional<Refusal>& refused_;
    Kernel kernel_;
    Registers registers_;
    SourcePlace place_;
    std::unordered_map<std::string_view, u32> labels_;
    std::vector<std::pair<std::size_t, std::string_view>> targets_;
};

class ModuleParser {
public:
    explicit ModuleParser(std::string_view source) : cursor_(source) {}

    std::vector<Kernel> run() {
        while (!cursor_.is_end()) parse_directive();
        if (refused_) {
            throw Fault(FaultKind::kText, lines_.where(refused_->kernel, refused_->origin) + ": " + refused_->what);
        }
        for (Kernel& kernel : kernels_) {
            kernel.lines = lines_;
            kernel.target = target_;
        }
        return std::move(kernels_);
    }

private:
    void parse_directive() {
        const std::string_view what = cursor_.word();
        if (what == ".version" || what == ".address_size") {
            cursor_.take();
        } else if (what == ".target") {
            target_ = cursor_.word();
            while (cursor_.take_if(",")) cursor_.take();
        } else if (what == ".visible" || what == ".extern" || what == ".weak") {
            // what follows says what it is
        } else if (what == ".entry") {
            kernels_.push_back(EntryParser(cursor_, target_, lines_, shared_, refused_).run());
        } else if (what == ".shared") {
            parse_shared();
        } else if (what == ".global") {
            cursor_.skip_past(";");  // an instruction that uses it finds no such symbol
        } else if (what == ".file") {
            parse_file();
        } else if (what == ".section") {
            cursor_.skip_past("}");
        } else {
            cursor_.fail("'" + std::string(what) + "' is not known");
        }
    }

    /// .extern .shared .align 128 .b8 NAME[]; the dynamic shared memory, in which all such names begin at once.
    void parse_shared() {
        cursor_.expect(".align");
        cursor_.number();
        cursor_.expect(".b8");
        shared_.push_back(cursor_.word());
        cursor_.expect("[");
        if (!cursor_.take_if("]")) cursor_.fail("static shared memory is not known");
        cursor_.expect(";");
    }

    void parse_file() {
        const u32 number = static_cast<u32>(cursor_.number());
        std::string path(cursor_.take().text);
        constexpr std::string_view kTemplates = "templates/";
        const std::size_t tail = path.find(kTemplates);
        lines_.files[number] = tail == std::string::npos ? path : path.substr(tail + kTemplates.size());
    }

    Cursor cursor_;
    std::string_view target_;
    LineTable lines_;
    std::optional<Refusal> refused_;
    std::vector<std::string_view> shared_;
    std::vector<Kernel> kernels_;
};

}  // namespace

std::vector<Kernel> parse_module(std::string_view source) {
    return ModuleParser(source).run();
}

}  // namespace kvjit::ptx
