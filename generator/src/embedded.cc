#include <algorithm>
#include <iterator>

#include "generator/render.h"

namespace kvjit::gen {
namespace {

struct EmbeddedTemplate {
    std::string_view path;
    std::string_view text;
};

using namespace std::string_view_literals;

constexpr EmbeddedTemplate kTemplates[] = {
#include "embedded_templates.inc"
};

}  // namespace

TemplateReader embedded_templates() {
    return [](std::string_view path) -> Result<std::string> {
        const auto it = std::ranges::find(kTemplates, path, &EmbeddedTemplate::path);
        if (it == std::end(kTemplates)) {
            return fail(KVJIT_BAD_FILE, std::string(path), "no template " + std::string(path) + " is in the library");
        }
        return std::string(it->text);
    };
}

}  // namespace kvjit::gen
