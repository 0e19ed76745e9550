#include "subject.hpp"

#include "publishing/text.hpp"

namespace {

/// The server's line for a message holds the subject and more, 4,096 bytes at most.
constexpr std::size_t kMaxLength = 2048;

bool is_bad(char c) { return c == ' ' || c == '*' || c == '>' || publishing::is_control(c); }

bool has_empty_token(std::string_view text) {
  return text.empty() || text.front() == '.' || text.back() == '.' || text.find("..") != std::string_view::npos;
}

/// Every bad byte as %XX; every dot too where that leaves an empty token.
std::string encoded(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  const bool dots = has_empty_token(text);
  std::string out;
  for (const char c : text) {
    if (is_bad(c) || c == '%' || (c == '.' && dots)) {
      out += '%';
      out += kDigits[static_cast<unsigned char>(c) >> 4U];
      out += kDigits[static_cast<unsigned char>(c) & 15U];
    } else {
      out += c;
    }
  }
  return out;
}

/// What is wrong with it, as the end of a sentence; empty: nothing.
std::string fault_of(std::string_view text) {
  if (has_empty_token(text)) {
    return "has an empty token: a dot at its start or end, or two in a row";
  }
  for (const char c : text) {
    if (c == ' ') {
      return "has a space in it";
    }
    if (c == '*' || c == '>') {
      return std::string("has the wildcard ") + c + " in it";
    }
    if (publishing::is_control(c)) {
      return "has a control character in it";
    }
  }
  return {};
}

}  // namespace

std::variant<std::string, BadSubject> subject_of(std::string_view topic, std::string_view id, bool encode) {
  std::string subject = encode ? encoded(topic) : std::string(topic);
  if (!id.empty()) {
    subject += '.';
    subject += encode ? encoded(id) : id;
  }
  const std::string named = "the subject \"" + publishing::one_line(subject) + "\" ";
  if (const std::string fault = fault_of(subject); !fault.empty()) {
    return BadSubject{named + fault + "; set bad_subject = \"encode\" to have such bytes written as %XX"};
  }
  if (subject.front() == '$' || subject.starts_with("_INBOX.")) {
    return BadSubject{named + "belongs to the server; messages to it would be commands"};
  }
  if (subject.size() > kMaxLength) {
    return BadSubject{named + "has " + std::to_string(subject.size()) + " bytes; " + std::to_string(kMaxLength) +
                      " are the most"};
  }
  return subject;
}
