#include "engine.h"

#include <chrono>
#include <cstring>

#include "digest.h"
#include "kernel.h"

namespace kvjit::rt {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// "attend_decode-4f1c09d2": what perf, gdb and logs call an image.
std::string image_name(const gen::Program& program, const std::string& identity) {
    return std::string(gen::program_info(program.kind).name) + "-" + digest_hex(identity).substr(0, 8);
}

/// `what`: a clause about the program, whose name ends the sentence.
std::unexpected<gen::Error> not_compiled(kvjit_status status, const std::string& what, const std::string& identity) {
    return gen::fail(status, "spec", "compiling is off (KVJIT_JIT=off, or jit = 0) and " + what + " " + identity);
}

std::unexpected<gen::Error> not_found(const std::string& identity) {
    return not_compiled(KVJIT_NOT_FOUND, "no store holds the program", identity);
}

/// Entries are kept under their compiler's name, too: a compiler that can't be looked at hides them all.
std::unexpected<gen::Error> not_asked(const gen::Error& compiler, const std::string& identity) {
    return not_compiled(
        KVJIT_NOT_FOUND,
        "the disk cache, which goes by the compiler, can't be asked (" + compiler.message + ") for the program",
        identity);
}

CompileStage compile_stage(kvjit_stage stage) {
    if (stage == KVJIT_STAGE_LOG) return CompileStage::kObject;
    return stage == KVJIT_STAGE_IR ? CompileStage::kIr : CompileStage::kAsm;
}

}  // namespace

/// One identity in memory. The mutex is held while its image is made: whoever asks meanwhile waits for it.
struct Engine::Slot {
    std::mutex mutex;
    ImagePtr image;
    std::atomic<std::uint64_t> failures{0};
    gen::Error last_failure;
};

/// Everything that finding or making one image needs.
struct Engine::Request {
    Backend& backend;
    const gen::Program& program;
    const gen::Target& target;
    std::string source;
    EntryKey key;
};

bool Engine::KernelKey::operator==(const KernelKey& other) const {
    return target == other.target && std::memcmp(&spec, &other.spec, sizeof spec) == 0;
}

std::size_t Engine::KernelHash::operator()(const KernelKey& key) const {
    const std::string_view bytes(reinterpret_cast<const char*>(&key.spec), sizeof key.spec);
    return std::hash<std::string_view>{}(bytes) ^ std::hash<const void*>{}(key.target);
}

Engine::Engine(EngineOptions options) : options_(std::move(options)) {}
Engine::~Engine() = default;

gen::Result<KernelPtr> Engine::kernel(const gen::KernelSpec& spec, const gen::Target& target) {
    const KernelKey key{spec, &target};
    {
        const std::shared_lock lock(kernels_mutex_);
        if (const auto it = kernels_.find(key); it != kernels_.end())
            return KernelPtr(shared_from_this(), it->second.get());
    }
    if (auto valid = gen::validate_spec(spec); !valid) return std::unexpected(valid.error());
    gen::Target known = known_target(target);
    gen::Result<std::vector<gen::Program>> programs = gen::lower(spec, known);
    if (!programs) return std::unexpected(programs.error());
    auto made = std::make_unique<Kernel>(*this, spec, std::move(known), *std::move(programs));
    const std::unique_lock lock(kernels_mutex_);
    const auto it = kernels_.try_emplace(key, std::move(made)).first;  // another thread's, if it was first
    return KernelPtr(shared_from_this(), it->second.get());
}

gen::Result<Backend*> Engine::backend(const gen::Target& target) const {
    const auto& found = options_.backends[static_cast<std::size_t>(target.backend)];
    if (found) return found.get();
    return gen::fail(KVJIT_BAD_TARGET, "target",
                     "target is " + target.name() + "; this build of kvjit has no such targets (KVJIT_CPU_JIT=OFF)");
}

gen::Target Engine::known_target(const gen::Target& target) const {
    const gen::Result<Backend*> backend = this->backend(target);
    return backend ? (*backend)->compiler().known_target(target) : target;  // kernels of no backend can still be shown
}

gen::Result<std::unique_ptr<Plan>> Engine::plan(KernelPtr kernel, const kvjit_batch& batch,
                                                const kvjit_plan_options& options) {
    const gen::Result<Backend*> backend = this->backend(kernel->target());
    if (!backend) return std::unexpected(backend.error());
    return (*backend)->plan(std::move(kernel), batch, options);
}

std::shared_ptr<Engine::Slot> Engine::slot(const std::string& identity) {
    const std::lock_guard lock(slots_mutex_);
    std::shared_ptr<Slot>& slot = slots_[identity];
    if (!slot) slot = std::make_shared<Slot>();
    return slot;
}

gen::Result<ImagePtr> Engine::image(const gen::Program& program, const gen::Target& target) {
    const gen::Result<Backend*> backend = this->backend(target);
    if (!backend) return std::unexpected(backend.error());
    if (auto runs = (*backend)->check_machine(target); !runs) return std::unexpected(runs.error());
    const std::shared_ptr<Slot> slot = this->slot(gen::identity_text(program, target));
    const std::uint64_t failures_before = slot->failures;
    const std::lock_guard lock(slot->mutex);
    if (slot->image) {
        ++memory_hits_;
        return slot->image;
    }
    if (slot->failures != failures_before) return std::unexpected(slot->last_failure);
    gen::Result<ImagePtr> made = produce(program, target);
    if (made) {
        slot->image = *made;
    } else {
        slot->last_failure = made.error();
        ++slot->failures;
    }
    return made;
}

gen::Result<Engine::Request> Engine::request(const gen::Program& program, const gen::Target& target) {
    const gen::Result<Backend*> backend = this->backend(target);
    if (!backend) return std::unexpected(backend.error());
    gen::Result<std::string> source = gen::render(program, target, options_.templates);
    if (!source) return std::unexpected(source.error());
    gen::Result<std::string> compiler = (*backend)->compiler().identity();
    if (!compiler) return std::unexpected(compiler.error());
    std::string provenance = "source=" + digest_hex(*source) + ";" + *compiler;
    return Request{
        **backend, program, target, *std::move(source), {gen::identity_text(program, target), std::move(provenance)}};
}

gen::Result<ImagePtr> Engine::produce(const gen::Program& program, const gen::Target& target) {
    const gen::Result<Request> request = this->request(program, target);
    if (!request && !options_.jit && request.error().status == KVJIT_COMPILER_MISSING) {
        const std::string identity = gen::identity_text(program, target);
        return options_.disk ? not_asked(request.error(), identity) : not_found(identity);
    }
    if (!request) return std::unexpected(request.error());
    if (gen::Result<ImagePtr> hit = from_disk(*request); !hit || *hit) return hit;
    if (!options_.jit) return not_found(request->key.identity);
    const std::unique_ptr<Store::Guard> guard = options_.disk ? options_.disk->lock(request->key) : nullptr;
    if (gen::Result<ImagePtr> hit = from_disk(*request); !hit || *hit) return hit;
    return compile(*request);
}

/// Null, not an error, where the disk cache has no good entry, or can't say and compiling serves as well.
gen::Result<ImagePtr> Engine::from_disk(const Request& request) {
    if (!options_.disk) return nullptr;
    const auto start = std::chrono::steady_clock::now();
    const Answer answer = options_.disk->find(request.key);
    if (const auto* failed = std::get_if<Failed>(&answer); failed && !options_.jit) {
        return not_compiled(KVJIT_BAD_FILE, failed->reason + "; it may hold the program", request.key.identity);
    }
    const auto* entry = std::get_if<Entry>(&answer);
    if (!entry) return nullptr;
    gen::Result<ImagePtr> image = load(request, entry->object);
    if (!image && image.error().status != KVJIT_BAD_FILE) return image;  // what is compiled anew would not load either
    if (!image) {
        // A digest that holds over an object that doesn't load: a defect worth saying, but compiling still serves.
        options_.log(KVJIT_LOG_WARNING, "a cached object can't be loaded: " + image.error().message);
        return nullptr;
    }
    ++disk_hits_;
    disk_seconds_ += seconds_since(start);
    return image;
}

gen::Result<ImagePtr> Engine::compile(const Request& request) {
    const gen::ProgramInfo& info = gen::program_info(request.program.kind);
    Compiler& compiler = request.backend.compiler();
    const double load_before = compiler.load_seconds();
    const auto start = std::chrono::steady_clock::now();
    gen::Result<CompileOutput> output =
        compiler.compile(request.source, info.name, request.target, CompileStage::kObject);
    if (!output) return std::unexpected(output.error());
    ++compiles_;
    compile_seconds_ += seconds_since(start) - (compiler.load_seconds() - load_before);
    options_.log(KVJIT_LOG_INFO, "compiled " + image_name(request.program, request.key.identity));
    gen::Result<ImagePtr> image = load(request, output->object);
    if (image && options_.disk) options_.disk->publish(request.key, {output->object, request.source, output->log});
    return image;
}

gen::Result<ImagePtr> Engine::load(const Request& request, std::string_view object) {
    const gen::ProgramInfo& info = gen::program_info(request.program.kind);
    return request.backend.load(object, std::string(info.entry), image_name(request.program, request.key.identity));
}

gen::Result<std::string> Engine::emit(const gen::Program& program, const gen::Target& target, kvjit_stage stage) {
    if (stage == KVJIT_STAGE_SOURCE) return gen::render(program, target, options_.templates);
    const gen::Result<Request> request = this->request(program, target);
    if (!request) return std::unexpected(request.error());
    if (stage == KVJIT_STAGE_IDENTITY) {
        return "identity: " + request->key.identity + "\nprovenance: " + request->key.provenance + "\n";
    }
    gen::Result<CompileOutput> output = request->backend.compiler().compile(
        request->source, gen::program_info(program.kind).name, target, compile_stage(stage));
    if (!output) return std::unexpected(output.error());
    return std::move(stage == KVJIT_STAGE_LOG ? output->log : output->object);
}

kvjit_engine_stats Engine::stats() const {
    kvjit_engine_stats stats{};
    stats.struct_size = sizeof stats;
    stats.compiles = compiles_;
    stats.disk_hits = disk_hits_;
    stats.memory_hits = memory_hits_;
    stats.compile_seconds = compile_seconds_;
    for (const std::unique_ptr<Backend>& backend : options_.backends) {
        if (backend) stats.compiler_load_seconds += backend->compiler().load_seconds();
    }
    stats.disk_seconds = disk_seconds_;
    return stats;
}

}  // namespace kvjit::rt
