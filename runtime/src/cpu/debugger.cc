#include "cpu/debugger.h"

#include <fcntl.h>
#include <llvm/ADT/StringExtras.h>
#include <llvm/Object/ELF.h>
#include <unistd.h>

#include <mutex>
#include <string_view>

#include "environment.h"

// gdb's JIT interface: "Registering Code" in its manual fixes these names, types and values.
extern "C" {
enum jit_actions_t : std::uint32_t { JIT_NOACTION = 0, JIT_REGISTER_FN = 1, JIT_UNREGISTER_FN = 2 };

struct jit_code_entry {
    jit_code_entry* next_entry;
    jit_code_entry* prev_entry;
    const char* symfile_addr;
    std::uint64_t symfile_size;
};

struct jit_descriptor {
    std::uint32_t version;
    std::uint32_t action_flag;
    jit_code_entry* relevant_entry;
    jit_code_entry* first_entry;
};

// gdb sets a breakpoint here: the call must stay one.
[[gnu::noinline, gnu::used]] void __jit_debug_register_code() {
    asm volatile("" ::: "memory");
}

[[gnu::used]] jit_descriptor __jit_debug_descriptor = {1, JIT_NOACTION, nullptr, nullptr};
}

namespace kvjit::rt {
namespace {

constinit std::mutex descriptor_mutex;

void notify_gdb(jit_code_entry& entry, jit_actions_t action) {
    __jit_debug_descriptor.relevant_entry = &entry;
    __jit_debug_descriptor.action_flag = action;
    __jit_debug_register_code();
}

void insert(jit_code_entry& entry) {
    std::lock_guard lock(descriptor_mutex);
    entry.next_entry = __jit_debug_descriptor.first_entry;
    if (entry.next_entry) entry.next_entry->prev_entry = &entry;
    __jit_debug_descriptor.first_entry = &entry;
    notify_gdb(entry, JIT_REGISTER_FN);
}

void remove(jit_code_entry& entry) {
    std::lock_guard lock(descriptor_mutex);
    (entry.prev_entry ? entry.prev_entry->next_entry : __jit_debug_descriptor.first_entry) = entry.next_entry;
    if (entry.next_entry) entry.next_entry->prev_entry = entry.prev_entry;
    notify_gdb(entry, JIT_UNREGISTER_FN);
}

// gdb places an object's sections by sh_addr, which is 0 before linking.
void place_sections(std::string& object, const LoadedLayout& layout) {
    using llvm::object::ELF64LE;
    auto file = llvm::object::ELFFile<ELF64LE>::create(object);
    if (!file) return llvm::consumeError(file.takeError());
    auto sections = file->sections();
    if (!sections) return llvm::consumeError(sections.takeError());
    for (const ELF64LE::Shdr& section : *sections) {
        llvm::Expected<llvm::StringRef> name = file->getSectionName(section);
        if (!name) return llvm::consumeError(name.takeError());
        const auto placed = layout.sections.find(std::string_view(*name));
        // The bytes are our own copy.
        if (placed != layout.sections.end()) const_cast<ELF64LE::Shdr&>(section).sh_addr = placed->second;
    }
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

struct DebuggerEntry::State {
    std::string object;
    jit_code_entry entry{};
};

DebuggerEntry::DebuggerEntry(std::string object, const LoadedLayout& layout) : state_(std::make_unique<State>()) {
    state_->object = std::move(object);
    place_sections(state_->object, layout);
    state_->entry.symfile_addr = state_->object.data();
    state_->entry.symfile_size = state_->object.size();
    insert(state_->entry);
}

DebuggerEntry::~DebuggerEntry() {
    remove(state_->entry);
}

std::string find_loaded_object(std::uint64_t address) {
    std::lock_guard lock(descriptor_mutex);
    for (const jit_code_entry* entry = __jit_debug_descriptor.first_entry; entry; entry = entry->next_entry) {
        if (holds_code_at(*entry, address)) return {entry->symfile_addr, entry->symfile_size};
    }
    return {};
}

void announce_to_perf(const LoadedLayout& layout, const std::string& name) {
    static const bool wanted = is_switched_on(Variable::kPerf);
    if (!wanted) return;
    std::string lines;
    for (const LoadedFunction& function : layout.functions) {
        lines += llvm::utohexstr(function.address, true) + " " + llvm::utohexstr(function.bytes, true) + " " + name +
                 ":" + function.name + "\n";
    }
    // perf fixes the name, in a folder that others can write to: never follow a link there.
    const std::string path = "/tmp/perf-" + std::to_string(getpid()) + ".map";
    const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0) return;
    [[maybe_unused]] const ssize_t written = write(file, lines.data(), lines.size());  // one write: lines stay whole
    close(file);
}

}  // namespace kvjit::rt
