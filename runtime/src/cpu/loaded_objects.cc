#include "cpu/loaded_objects.h"

#include <llvm/ExecutionEngine/Orc/TargetProcess/JITLoaderGDB.h>
#include <llvm/Object/ELF.h>

#include <memory>
#include <mutex>

// LLVM's JITLoaderGDB defines both; "Registering Code" in gdb's manual defines their names and types.
extern "C" {
void __jit_debug_register_code();
extern jit_descriptor __jit_debug_descriptor;
}

namespace kvjit::rt {
namespace {

constinit std::mutex list_mutex;

jit_code_entry* find(const char* bytes) {
    jit_code_entry* entry = __jit_debug_descriptor.first_entry;
    while (entry && entry->symfile_addr != bytes) entry = entry->next_entry;
    return entry;
}

/// gdb stops where this calls the hook, and reads the descriptor.
void tell(jit_code_entry& entry, jit_actions_t action) {
    __jit_debug_descriptor.relevant_entry = &entry;
    __jit_debug_descriptor.action_flag = action;
    __jit_debug_register_code();
    __jit_debug_descriptor.relevant_entry = nullptr;
}

bool holds_code_at(const jit_code_entry& entry, std::uint64_t address) {
    using llvm::object::ELF64LE;
    auto file = llvm::object::ELFFile<ELF64LE>::create({entry.symfile_addr, entry.symfile_size});
    if (!file) return llvm::consumeError(file.takeError()), false;
    auto sections = file->sections();
    if (!sections) return llvm::consumeError(sections.takeError()), false;
    for (const ELF64LE::Shdr& section : *sections) {
        const bool code = section.sh_flags & llvm::ELF::SHF_EXECINSTR;
        if (code && section.sh_addr != 0 && address - section.sh_addr < section.sh_size) return true;
    }
    return false;
}

}  // namespace

void add_loaded_object(std::string_view object) {
    auto entry = std::make_unique<jit_code_entry>();
    entry->symfile_addr = object.data();
    entry->symfile_size = object.size();
    std::lock_guard lock(list_mutex);
    entry->next_entry = __jit_debug_descriptor.first_entry;
    if (entry->next_entry) entry->next_entry->prev_entry = entry.get();
    __jit_debug_descriptor.first_entry = entry.get();
    tell(*entry.release(), JIT_REGISTER_FN);
}

void remove_loaded_object(const char* bytes) {
    std::lock_guard lock(list_mutex);
    const std::unique_ptr<jit_code_entry> entry(find(bytes));
    if (!entry) return;
    (entry->prev_entry ? entry->prev_entry->next_entry : __jit_debug_descriptor.first_entry) = entry->next_entry;
    if (entry->next_entry) entry->next_entry->prev_entry = entry->prev_entry;
    tell(*entry, JIT_UNREGISTER_FN);
}

std::string find_loaded_object(std::uint64_t address) {
    std::lock_guard lock(list_mutex);
    for (const jit_code_entry* entry = __jit_debug_descriptor.first_entry; entry; entry = entry->next_entry) {
        if (holds_code_at(*entry, address)) return {entry->symfile_addr, entry->symfile_size};
    }
    return {};
}

}  // namespace kvjit::rt
