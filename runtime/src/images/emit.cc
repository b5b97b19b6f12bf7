// An image's texts and its object, read from its origin, or made again and compared.
#include "digest.h"
#include "generator/identity.h"
#include "images/images.h"

namespace kvjit::rt {
namespace {

/// How to compile for a stage that no store keeps.
std::optional<CompileStage> always_compiled(kvjit_stage stage) {
    switch (stage) {
        case KVJIT_STAGE_IR:
            return CompileStage::kIr;
        case KVJIT_STAGE_IR_UNOPTIMISED:
            return CompileStage::kIrUnoptimised;
        case KVJIT_STAGE_ASM:
            return CompileStage::kAsm;
        default:
            return std::nullopt;
    }
}

}  // namespace

gen::Result<std::string> Images::emit(const Candidate& candidate, const OriginPtr& origin, kvjit_stage stage) {
    gen::Result<Wanted> wanted = this->wanted(candidate);
    if (!wanted) return std::unexpected(wanted.error());
    if (stage == KVJIT_STAGE_IDENTITY) return identity_of(*wanted, origin.get());
    const bool is_stored = origin && origin->store != nullptr;
    if (is_stored && (stage == KVJIT_STAGE_LOG || stage == KVJIT_STAGE_OBJECT)) {
        const EntryPart part = stage == KVJIT_STAGE_LOG ? EntryPart::kLog : EntryPart::kObject;
        return origin->store->read(wanted->identity(), origin->stored, part);
    }
    if (origin && stage == KVJIT_STAGE_LOG) return origin->log;
    gen::Result<std::string> source = source_of(*wanted, origin.get());
    if (stage == KVJIT_STAGE_SOURCE || !source) return source;
    if (const std::optional<CompileStage> how = always_compiled(stage)) {
        gen::Result<CompileOutput> shown = compile_to_show(*wanted, *source, *how);
        if (!shown) return std::unexpected(shown.error());
        return std::move(shown->object);
    }
    gen::Result<CompileOutput> made = compile_to_show(*wanted, *source, CompileStage::kObject);
    if (!made) return std::unexpected(made.error());
    if (stage == KVJIT_STAGE_LOG) return std::move(made->log);
    if (origin && digest_of({made->object}) != origin->stored.digest) {
        return gen::fail(KVJIT_INTERNAL, "kvjit",
                         "the compiler made two objects of one source, of " + wanted->identity() +
                             ": the one that is loaded can't be shown");
    }
    return std::move(made->object);
}

gen::Result<std::string> Images::identity_of(Wanted& wanted, const Origin* origin) {
    if (origin != nullptr && origin->store != nullptr) {
        const auto provenance = origin->store->read(wanted.identity(), origin->stored, EntryPart::kProvenance);
        if (!provenance) return std::unexpected(provenance.error());
        return gen::print_stage(wanted.identity(), *provenance);
    }
    gen::Result<EntryKey> key = wanted.key();
    if (!key) return std::unexpected(key.error());
    if (!key->maker) return gen::print_stage(key->identity, "");
    if (origin != nullptr) key->source = origin->stored.source;  // templates may have changed since
    return gen::print_stage(key->identity, provenance_text(*key));
}

/// While templates are unchanged, rendering gives the same text again, which the digest proves.
gen::Result<std::string> Images::source_of(Wanted& wanted, const Origin* origin) {
    if (origin == nullptr) return wanted.source();
    gen::Result<std::string> kept = gen::fail(KVJIT_NOT_FOUND, "templates", "no store has the source of the image");
    if (origin->store != nullptr) {
        kept = origin->store->read(wanted.identity(), origin->stored, EntryPart::kSource);
        if (kept) return kept;
    }
    const gen::Result<std::string>& rendered = wanted.source();
    if (rendered && digest_hex(*rendered) == origin->stored.source) return rendered;
    gen::Error error = kept.error();
    error.message += "; " + (rendered ? "today's templates give another source" : rendered.error().message);
    return std::unexpected(std::move(error));
}

/// Not counted as a compile of the engine: its result is only shown.
gen::Result<CompileOutput> Images::compile_to_show(const Wanted& wanted, const std::string& source,
                                                   CompileStage stage) {
    const gen::Result<Backend*> backend = this->backend(wanted.target());
    if (!backend) return std::unexpected(backend.error());
    return (*backend)->compiler().compile(source, wanted.program().info->name, wanted.target(), stage);
}

}  // namespace kvjit::rt
