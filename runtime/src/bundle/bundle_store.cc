#include "bundle/bundle_store.h"

#include <string_view>

#include "bundle/bundle.h"
#include "bundle/near.h"
#include "bundle/signature.h"
#include "common/abi.h"
#include "generator/identity.h"

namespace kvjit::rt {
namespace {

class BundleStore final : public Store {
public:
    BundleStore(Bundle bundle, BundleOptions options) : bundle_(std::move(bundle)), options_(std::move(options)) {}

    Answer find(std::span<Wanted> candidates) override {
        Answer answer = NotThere{};  // the first failure, unless a later candidate is found
        for (std::size_t i = 0; i < candidates.size(); ++i) {
            const std::optional<std::size_t> entry = bundle_.find(candidates[i].identity());
            if (!entry) continue;
            auto code = bundle_.code(*entry);
            const bool asked_for = code && code->identity == candidates[i].identity();
            if (asked_for) {
                StoredEntry stored{options_.place, bundle_.record(*entry).code,
                                   std::string(gen::source_digest(code->provenance))};
                return Held{i, {std::move(code->image), "", ""}, std::move(stored)};
            }
            const std::string reason = options_.name + ' ' + (code ? "has another identity's entry" : code.error());
            options_.log(KVJIT_LOG_WARNING, reason);
            if (std::holds_alternative<NotThere>(answer)) answer = Failed{reason};
        }
        return answer;
    }

    bool may_hold(const Wanted& wanted) const override { return bundle_.find(wanted.identity()).has_value(); }

    std::string near_miss(Wanted& wanted) const override {
        const auto parts = gen::parse_identity(wanted.identity());
        const std::string clause = parts ? near_programs(bundle_, *parts) : "";
        return clause.empty() ? "" : options_.name + ' ' + clause;
    }

    /// The index, which was read when the bundle was opened, has the entry's digests.
    gen::Result<std::string> read(const std::string& identity, const StoredEntry&, EntryPart part) const override {
        const std::size_t entry = bundle_.find(identity).value();
        if (part == EntryPart::kProvenance || part == EntryPart::kObject) {
            auto code = bundle_.code(entry);
            if (!code) return fail(KVJIT_BAD_FILE, code.error());
            return std::move(part == EntryPart::kObject ? code->image : code->provenance);
        }
        if (bundle_.record(entry).source_bytes == 0) return fail(KVJIT_NOT_FOUND, "was made without sources and logs");
        auto texts = bundle_.texts(entry);
        if (!texts) return fail(KVJIT_BAD_FILE, texts.error());
        return std::move(part == EntryPart::kSource ? texts->source : texts->log);
    }

private:
    std::unexpected<gen::Error> fail(kvjit_status status, const std::string& why) const {
        return gen::fail(status, "bundle", options_.name + ' ' + why);
    }

    Bundle bundle_;
    BundleOptions options_;
};

/// Why this library, or the engine, refuses a bundle that is whole, as a clause; "" if neither does.
std::string objection(const BundleHeader& header, const std::optional<PublicKey>& key) {
    if (header.abi != abi::kKernelAbi) {
        return "is for kernel ABI " + std::to_string(header.abi) + "; this library's is " +
               std::to_string(abi::kKernelAbi) + ": make the bundle with this version of kvjit";
    }
    if (!key || header.key == *key) return "";
    return (header.is_signed() ? "is signed by key " + print_public_key(header.key) : std::string("is not signed")) +
           "; this engine takes bundles signed by key " + print_public_key(*key);
}

}  // namespace

gen::Result<std::unique_ptr<Store>> open_bundle(std::expected<std::unique_ptr<BundleBytes>, std::string> bytes,
                                                BundleOptions options) {
    const auto refuse = [&](const std::string& why) {
        return gen::fail(KVJIT_BAD_FILE, "bundle", options.name + ' ' + why);
    };
    if (!bytes) return refuse(bytes.error());
    auto bundle = Bundle::open(*std::move(bytes));
    if (!bundle) return refuse(bundle.error());
    if (const std::string why = objection(bundle->header(), options.key); !why.empty()) return refuse(why);
    return std::make_unique<BundleStore>(*std::move(bundle), std::move(options));
}

}  // namespace kvjit::rt
