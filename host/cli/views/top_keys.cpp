#include "host/cli/views/top_keys.hpp"

#include <algorithm>
#include <utility>

namespace sluice::cli {

namespace {

using operate::TopKey;
using Kind = TopKey::Kind;

constexpr char kEscape = '\x1b';
/// No key that a terminal sends is longer.
constexpr std::size_t kLongestSequence = 16;

bool ends_sequence(char byte) { return byte >= 0x40 && byte <= 0x7e; }

/// How many bytes the sequence that begins with Escape has; 0 while it is not whole.
std::size_t sequence_length(std::string_view text) {
  if (text.size() < 2) {
    return 0;
  }
  if (text[1] != '[' && text[1] != 'O') {
    return 1;  // Escape, and a key after it
  }
  const auto end = std::find_if(text.begin() + 2, text.end(), ends_sequence);
  if (end == text.end()) {
    return text.size() > kLongestSequence ? text.size() : 0;
  }
  return static_cast<std::size_t>(end - text.begin()) + 1;
}

TopKey key_of(char byte) {
  switch (byte) {
    case '\r':
    case '\n':
      return {Kind::enter, 0};
    case '\b':
    case '\x7f':
      return {Kind::erase, 0};
    default:
      return {Kind::character, byte};
  }
}

}  // namespace

std::vector<TopKey> TopKeys::take(std::string_view bytes) {
  kept_ += bytes;
  std::vector<TopKey> keys;
  std::string_view rest = kept_;
  while (!rest.empty()) {
    std::size_t length = 1;
    if (rest.front() != kEscape) {
      const TopKey key = key_of(rest.front());
      if (key.kind != Kind::character || static_cast<unsigned char>(key.character) >= 0x20) {
        keys.push_back(key);
      }
    } else {
      length = sequence_length(rest);
      if (length == 0) {
        break;
      }
      if (length == 1) {
        keys.push_back({Kind::escape, 0});
      } else if (length == 3 && (rest[2] == 'A' || rest[2] == 'B')) {
        keys.push_back({rest[2] == 'A' ? Kind::up : Kind::down, 0});
      }
    }
    rest.remove_prefix(length);
  }
  kept_ = std::string(rest);
  return keys;
}

std::vector<TopKey> TopKeys::give_up() {
  const bool escape = std::exchange(kept_, {}).size() == 1;
  return escape ? std::vector<TopKey>{{Kind::escape, 0}} : std::vector<TopKey>{};
}

}  // namespace sluice::cli
