// Rendering: a program and its template become one self-contained source.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "generator/program.h"

namespace kvjit::gen {

/// Returns a template's text by its path under templates/, such as "common/abi.h". Errors: KVJIT_BAD_FILE.
using TemplateReader = std::function<Result<std::string>(std::string_view path)>;

/// Reads the templates embedded in the library.
TemplateReader embedded_templates();
/// Reads the templates in a folder, for kernel authors (KVJIT_TEMPLATE_DIR).
TemplateReader folder_templates(std::string folder);

/// Banner (program, identity, version), then the template with its includes flattened, each file once, #line
/// directives back to the template, and `#include "common/spec_block.h"` replaced by this program's constants.
/// Errors: KVJIT_BAD_FILE for a missing template or include, and for a system include.
Result<std::string> render(const Program& program, const Target& target, const TemplateReader& read);

}  // namespace kvjit::gen
