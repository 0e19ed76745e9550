#include "host/queue/refused_condition.hpp"

#include <cstddef>

namespace sluice::queue {

namespace {

constexpr std::size_t kMostShown = 200;

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/// With one space for each run of white space.
std::string on_one_line(std::string_view text) {
  std::string line;
  for (const char c : text) {
    if (!is_space(c)) {
      line += c;
    } else if (!line.empty() && line.back() != ' ') {
      line += ' ';
    }
  }
  if (!line.empty() && line.back() == ' ') {
    line.pop_back();
  }
  return line;
}

/// Not in the middle of a UTF-8 sequence.
std::string cut(std::string text) {
  if (text.size() <= kMostShown) {
    return text;
  }
  std::size_t end = kMostShown;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) {
    --end;
  }
  text.resize(end);
  return text + "...";
}

}  // namespace

std::string refused_condition(std::string_view found, std::string_view asked, OnRefusal on_refusal) {
  std::string words(found);
  if (const std::string shown = cut(on_one_line(asked)); !shown.empty()) {
    words += ": " + shown;
  }
  return words + (on_refusal == OnRefusal::reject
                      ? "; mend the data or the condition, then redrive the message"
                      : "; mend the data or the condition before the attempts run out, or stage the write with "
                        "otherwise_reject() where another attempt cannot help");
}

}  // namespace sluice::queue
