#include "images/wanted.h"

#include "digest.h"

namespace kvjit::rt {

std::string image_name(std::string_view program, const std::string& identity) {
    return std::string(program) + "-" + digest_hex(identity).substr(0, 8);
}

Wanted::Wanted(const Candidate& candidate, Compiler& compiler, const gen::Templates& templates)
    : candidate_(candidate), compiler_(compiler), templates_(templates) {}

const std::string& Wanted::identity() const {
    if (identity_.empty()) identity_ = gen::identity_text(program(), target());
    return identity_;
}

const gen::Result<std::string>& Wanted::source() {
    if (source_) return *source_;
    source_ = gen::render(program(), target(), templates_.read);
    if (*source_) (*source_)->insert(0, compiler_.mark());
    return *source_;
}

gen::Result<CompileOutput> Wanted::compile(const std::string& source, CompileStage stage) const {
    gen::Result<CompileOutput> output = compiler_.compile(source, program().info->name, target(), stage);
    if (!output) output.error().message = gen::with_files_of(templates_, output.error().message);
    return output;
}

gen::Result<EntryKey> Wanted::key() {
    const gen::Result<std::string>& text = source();
    if (!text) return std::unexpected(text.error());
    return EntryKey{identity(), digest_hex(*text), compiler_.identity()};
}

}  // namespace kvjit::rt
