#include "ptx/machine/lexer.h"

#include <algorithm>
#include <string>

#include "ptx/machine/fault.h"

namespace kvjit::ptx {
namespace {

bool is_word(char c) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    return letter || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '%' || c == '$';
}

class Lexer {
public:
    explicit Lexer(std::string_view source) : source_(source) {}

    std::vector<Token> run() {
        for (skip_blanks(); at_ < source_.size(); skip_blanks()) {
            if (is_word(source_[at_])) {
                add(Token::Kind::kWord, length_of_word());
            } else if (source_[at_] == '"') {
                add_text();
            } else {
                add(Token::Kind::kMark, 1);
            }
        }
        tokens_.push_back({Token::Kind::kEnd, {}, line_});
        return std::move(tokens_);
    }

private:
    bool begins(std::string_view what) const { return source_.substr(at_).starts_with(what); }

    void skip_blanks() {
        while (at_ < source_.size()) {
            if (begins("//")) {
                at_ = std::min(source_.find('\n', at_), source_.size());
            } else if (begins("/*")) {
                skip_to(source_.find("*/", at_), 2);
            } else if (source_[at_] == '\n') {
                ++line_, ++at_;
            } else if (source_[at_] == ' ' || source_[at_] == '\t' || source_[at_] == '\r') {
                ++at_;
            } else {
                return;
            }
        }
    }

    void skip_to(std::size_t end, std::size_t length) {
        if (end == std::string_view::npos) {
            throw Fault(FaultKind::kText, "what begins in line " + std::to_string(line_) + " has no end");
        }
        line_ += static_cast<int>(std::ranges::count(source_.substr(at_, end - at_), '\n'));
        at_ = end + length;
    }

    std::size_t length_of_word() const {
        std::size_t end = at_;
        for (;; end += 2) {  // fence.proxy.async.shared::cta
            while (end < source_.size() && is_word(source_[end])) ++end;
            if (!source_.substr(end).starts_with("::")) return end - at_;
        }
    }

    void add(Token::Kind kind, std::size_t length) {
        tokens_.push_back({kind, source_.substr(at_, length), line_});
        at_ += length;
    }

    void add_text() {
        const std::size_t begin = at_ + 1;
        const std::size_t end = source_.find('"', begin);
        skip_to(end, 1);
        tokens_.push_back({Token::Kind::kText, source_.substr(begin, end - begin), line_});
    }

    std::string_view source_;
    std::size_t at_ = 0;
    int line_ = 1;
    std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokens_of(std::string_view source) {
    return Lexer(source).run();
}

}  // namespace kvjit::ptx
