// Rendering: a program and its template become one self-contained source.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "generator/program.h"

namespace kvjit::gen {

/// Returns a template's text by its path under templates/, such as "common/abi.h". Errors: KVJIT_BAD_FILE.
using TemplateReader = std::function<Result<std::string>(std::string_view path)>;

/// The templates that are rendered.
struct Templates {
    TemplateReader read;
    std::string folder = "";  // that has them; "": none, they are in the library
};

/// Those in a folder, for kernel authors (KVJIT_TEMPLATE_DIR); "": those embedded in the library.
Templates templates_of(std::string folder);

/// Reads the templates embedded in the library.
TemplateReader embedded_templates();

/// A compiler's message about a rendered source, in which lines are those of templates/...: names the folder's files
/// instead, where a folder has the templates.
std::string with_files_of(const Templates& templates, std::string_view message);

/// Banner (program, identity, version), then the template with its includes flattened, each file once, #line
/// directives back to the template, and `#include "common/spec_block.h"` replaced by this program's constants.
/// Errors: KVJIT_BAD_FILE for a missing template or include, and for a system include.
Result<std::string> render(const Program& program, const Target& target, const TemplateReader& read);

}  // namespace kvjit::gen
