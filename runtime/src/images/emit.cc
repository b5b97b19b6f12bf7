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

/// What is compiled here is not counted as a compile of the engine: it is only shown.
gen::Result<std::string> Images::emit(const Candidate& candidate, const OriginPtr& origin, kvjit_stage stage) {
    gen::Result<Wanted> wanted = this->wanted(candidate);
    if (!wanted) return std::unexpected(wanted.error());
    if (stage == KVJIT_STAGE_IDENTITY) return identity_of(*wanted, origin.get());
    if (stage == KVJIT_STAGE_LOG) {
        gen::Result<std::string> log = log_of(*wanted, origin.get());
        if (log) *log = gen::with_files_of(options_.templates, *log);
        return log;
    }
    if (stage == KVJIT_STAGE_OBJECT && origin && origin->store != nullptr) {
        return origin->store->read(wanted->identity(), origin->stored, EntryPart::kObject);
    }
    gen::Result<std::string> source = source_of(*wanted, origin.get());
    if (stage == KVJIT_STAGE_SOURCE || !source) return source;
    if (const std::optional<CompileStage> how = always_compiled(stage)) {
        gen::Result<CompileOutput> shown = wanted->compile(*source, *how);
        if (!shown) return std::unexpected(shown.error());
        return std::move(shown->object);
    }
    gen::Result<CompileOutput> made = wanted->compile(*source, CompileStage::kObject);
    if (!made) return std::unexpected(made.error());
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

gen::Result<std::string> Images::log_of(Wanted& wanted, const Origin* origin) {
    if (origin != nullptr && origin->store != nullptr) {
        return origin->store->read(wanted.identity(), origin->stored, EntryPart::kLog);
    }
    if (origin != nullptr) return origin->log;
    const gen::Result<std::string>& source = wanted.source();
    if (!source) return std::unexpected(source.error());
    gen::Result<CompileOutput> made = wanted.compile(*source, CompileStage::kObject);
    if (!made) return std::unexpected(made.error());
    return std::move(made->log);
}

}  // namespace kvjit::rt
