#include "host/queue/error_groups.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>

#include "base/fnv1a.hpp"
#include "base/ranges.hpp"
#include "base/text/hex.hpp"
#include "base/text/utf8.hpp"

namespace sluice::queue {

namespace {

// A cause stands at the beginning of its text; what follows is often a document that somebody sent.
constexpr std::size_t kMostBytes = 400;
constexpr std::size_t kShortestHex = 8;
constexpr std::size_t kShortestId = 6;
constexpr std::size_t kFingerprintDigits = 8;

bool is_digit(char byte) { return byte >= '0' && byte <= '9'; }
bool is_letter(char byte) { return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z'); }
bool is_hex(char byte) { return is_digit(byte) || (byte >= 'a' && byte <= 'f') || (byte >= 'A' && byte <= 'F'); }
bool is_word(char byte) { return is_digit(byte) || is_letter(byte); }
bool is_blank(char byte) { return byte == ' ' || byte == '\t' || byte == '\r'; }
/// What a path or an e-mail address is made of, beside '/' and '@'.
bool is_name(char byte) {
  return is_word(byte) || byte == '.' || byte == '_' || byte == '-' || byte == '+' || byte == '%' || byte == '~' ||
         static_cast<unsigned char>(byte) >= 0x80;
}

/// Where the run of bytes of that kind that begins at `from` ends.
template <typename Kind>
std::size_t end_of(std::string_view text, std::size_t from, Kind kind) {
  while (from < text.size() && kind(text[from])) {
    ++from;
  }
  return from;
}

/// How many bytes of `text` fit a pattern, in which 'd' is a digit, 'x' a hexadecimal one, and all else itself; 0 when
/// they do not.
std::size_t fits(std::string_view text, std::string_view pattern) {
  if (text.size() < pattern.size()) {
    return 0;
  }
  for (std::size_t index = 0; index < pattern.size(); ++index) {
    const char wanted = pattern[index];
    const char byte = text[index];
    if (wanted == 'd' ? !is_digit(byte) : wanted == 'x' ? !is_hex(byte) : byte != wanted) {
      return 0;
    }
  }
  return pattern.size();
}

/// "2026-01-31", and with it the time of day, its fraction and its zone.
std::size_t timestamp_bytes(std::string_view text) {
  std::size_t size = fits(text, "dddd-dd-dd");
  if (size == 0 || size == text.size() || (text[size] != 'T' && text[size] != ' ')) {
    return size;
  }
  const std::size_t clock = fits(text.substr(size + 1), "dd:dd:dd");
  if (clock == 0) {
    return size;
  }
  size += 1 + clock;
  if (size < text.size() && (text[size] == '.' || text[size] == ',')) {
    size = end_of(text, size + 1, is_digit);
  }
  if (size < text.size() && text[size] == 'Z') {
    return size + 1;
  }
  for (const char sign : {'+', '-'}) {
    if (size < text.size() && text[size] == sign) {
      size += std::max(fits(text.substr(size + 1), "dd:dd"), fits(text.substr(size + 1), "dddd")) > 0 ? 1 : 0;
      size = end_of(text, size, [](char byte) { return is_digit(byte) || byte == ':'; });
    }
  }
  return size;
}

/// "10.0.0.1", with ":5432" behind it or not; "[::1]:443" and "fe80::1".
std::size_t address_bytes(std::string_view text) {
  std::size_t end = 0;
  int parts = 0;
  while (parts < 4) {
    const std::size_t stop = end_of(text, end, is_digit);
    if (stop == end || stop - end > 3) {
      break;
    }
    end = stop;
    ++parts;
    if (parts < 4) {
      if (end >= text.size() || text[end] != '.') {
        break;
      }
      ++end;
    }
  }
  if (parts < 4) {
    const bool bracketed = !text.empty() && text.front() == '[';
    const std::size_t begin = bracketed ? 1 : 0;
    end = end_of(text, begin, [](char byte) { return is_hex(byte) || byte == ':' || byte == '.'; });
    const std::string_view inside = text.substr(begin, end - begin);
    const bool colons =
        inside.find("::") != std::string_view::npos || std::count(inside.begin(), inside.end(), ':') == 7;
    if (!colons || inside.size() < 3 || (bracketed && (end >= text.size() || text[end] != ']'))) {
      return 0;
    }
    end += bracketed ? 1 : 0;
  }
  if (end + 1 < text.size() && text[end] == ':' && is_digit(text[end + 1])) {
    end = end_of(text, end + 1, is_digit);
  }
  return end;
}

/// "/var/lib/x", "~/x" or "C:\x\y", from its beginning.
std::size_t path_bytes(std::string_view text) {
  const bool drive = text.size() > 3 && is_letter(text[0]) && text[1] == ':' && text[2] == '\\';
  if (drive) {
    return end_of(text, 0, [](char byte) { return is_name(byte) || byte == '\\' || byte == ':'; });
  }
  const std::size_t root = fits(text, "~/") > 0 || fits(text, "./") > 0 ? 1 : fits(text, "../") > 0 ? 2 : 0;
  if (root >= text.size() || text[root] != '/') {
    return 0;
  }
  const std::size_t end = end_of(text, root, [](char byte) { return is_name(byte) || byte == '/'; });
  if (end < root + 2) {
    return 0;
  }
  // A full stop or a line number behind it is the sentence's.
  return text[end - 1] == '.' ? end - 1 : end;
}

bool is_time_unit(std::string_view letters) {
  constexpr std::array<std::string_view, 8> kUnits{"d", "h", "m", "s", "ms", "us", "ns", "min"};
  return contains(kUnits, letters);
}

/// What a word of letters and digits is folded to.
std::string folded_word(std::string_view word) {
  const auto digits = static_cast<std::size_t>(std::count_if(word.begin(), word.end(), is_digit));
  if (digits == 0) {
    return std::string(word);
  }
  const bool hex = std::all_of(word.begin(), word.end(), is_hex);
  if (hex && digits < word.size() && word.size() >= kShortestHex) {
    return "<hex>";
  }
  if (word.size() > 2 && word[0] == '0' && (word[1] == 'x' || word[1] == 'X') &&
      std::all_of(word.begin() + 2, word.end(), is_hex)) {
    return "<hex>";
  }
  std::string folded;
  int changes = 0;
  bool durations = true;
  for (std::size_t at = 0; at < word.size();) {
    const bool number = is_digit(word[at]);
    const std::size_t end = number ? end_of(word, at, is_digit) : end_of(word, at, is_letter);
    changes += at > 0 ? 1 : 0;
    durations = durations && (number || is_time_unit(word.substr(at, end - at)));
    folded += number ? std::string_view("#") : word.substr(at, end - at);
    at = end;
  }
  // "utf8", "A101" and "3h15m" keep their letters; "k3v9x2" is somebody's id.
  return changes >= 2 && word.size() >= kShortestId && !durations ? "<id>" : folded;
}

/// Folds a text from left to right.
class Folding {
 public:
  explicit Folding(std::string_view text) : text_(text) {}

  std::string run() && {
    while (at_ < text_.size()) {
      step();
    }
    while (!folded_.empty() && folded_.back() == ' ') {
      folded_.pop_back();
    }
    return std::move(folded_);
  }

 private:
  void step() {
    const char byte = text_[at_];
    if (is_blank(byte)) {
      at_ = end_of(text_, at_, is_blank);
      folded_ += folded_.empty() ? "" : " ";
      in_url_ = false;
    } else if (const std::size_t kept = placeholder_bytes(); kept > 0) {
      folded_ += text_.substr(at_, kept);
      at_ += kept;
    } else if ((begins_word() || byte == '/') && take_whole()) {
      return;
    } else if (is_word(byte)) {
      word();
    } else {
      folded_ += byte;
      ++at_;
    }
  }

  /// What an earlier folding has left: "<uuid>".
  std::size_t placeholder_bytes() const {
    constexpr std::array<std::string_view, 6> kLeft{"<uuid>", "<hex>", "<id>", "<address>", "<path>", "<time>"};
    for (const std::string_view left : kLeft) {
      if (text_.substr(at_, left.size()) == left) {
        return left.size();
      }
    }
    return 0;
  }

  bool begins_word() const { return at_ == 0 || !is_word(text_[at_ - 1]); }

  /// True when a thing of several words began here and was folded as one.
  bool take_whole() {
    const std::string_view rest = text_.substr(at_);
    if (take(fits(rest, "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"), "<uuid>") || take(timestamp_bytes(rest), "<time>") ||
        take(address_bytes(rest), "<address>") || take(mail_bytes(rest), "<address>")) {
      return true;
    }
    // Behind a letter a slash is "and/or"; behind "://host" it begins the path of a URL.
    const char before = at_ == 0 ? ' ' : text_[at_ - 1];
    const bool inside = is_name(before) || before == '/' || before == '>';
    return (!inside || in_url_) && take(path_bytes(rest), "<path>");
  }

  bool take(std::size_t size, std::string_view name) {
    // An id that only begins like one of these is none.
    if (size == 0 || (size < text_.size() - at_ && is_word(text_[at_ + size]) && is_word(text_[at_ + size - 1]))) {
      return false;
    }
    folded_ += name;
    at_ += size;
    in_url_ = false;
    return true;
  }

  /// "somebody@example.org".
  static std::size_t mail_bytes(std::string_view text) {
    const std::size_t name = end_of(text, 0, is_name);
    if (name == 0 || name >= text.size() || text[name] != '@') {
      return 0;
    }
    const std::size_t end = end_of(text, name + 1, is_name);
    return end == name + 1 ? 0 : end;
  }

  void word() {
    const std::size_t end = end_of(text_, at_, is_word);
    const std::string_view word = text_.substr(at_, end - at_);
    at_ = end;
    const std::string folded = folded_word(word);
    // "1.5" and "1,500" are one number each.
    const bool goes_on = folded == "#" && folded_.size() >= 2 && (folded_.back() == '.' || folded_.back() == ',') &&
                         folded_[folded_.size() - 2] == '#';
    if (goes_on) {
      folded_.pop_back();
      return;
    }
    folded_ += folded;
    if (text_.substr(at_, 3) == "://") {
      folded_ += "://";
      at_ += 3;
      in_url_ = true;
    }
  }

  const std::string_view text_;
  std::size_t at_ = 0;
  bool in_url_ = false;
  std::string folded_;
};

// Where every failure names another one, such as hosts that come and go; the rest is counted under no name.
constexpr std::size_t kMostNames = 100;

void count(std::map<std::string, std::uint64_t>& names, const std::string& name) {
  if (!name.empty() && (names.size() < kMostNames || names.contains(name))) {
    ++names[name];
  }
}

}  // namespace

std::string folded_error(std::string_view error) {
  const auto begin = std::min(error.find_first_not_of(" \t\r\n"), error.size());
  error.remove_prefix(begin);
  return Folding(cut_utf8(error.substr(0, error.find('\n')), kMostBytes)).run();
}

std::string fingerprint_of(std::string_view error) {
  return hex_digits(fnv1a(folded_error(error)) >> (64 - 4 * kFingerprintDigits), kFingerprintDigits);
}

bool is_fingerprint(std::string_view text) {
  return text.size() == kFingerprintDigits && std::all_of(text.begin(), text.end(), [](char byte) {
           return is_digit(byte) || (byte >= 'a' && byte <= 'f');
         });
}

void ErrorGroups::add(const std::string& id, const Failure& failure) {
  if (failure.empty()) {
    return;
  }
  std::string pattern = folded_error(failure.error);
  auto found = groups_.find(pattern);
  if (found == groups_.end()) {
    if (groups_.size() >= kMost) {
      ++beyond_;
      return;
    }
    ErrorGroup group;
    group.pattern = pattern;
    found = groups_.emplace(std::move(pattern), std::move(group)).first;
  }
  ErrorGroup& group = found->second;
  // Whatever order a store reads in, the example is the same.
  if (group.count == 0 || std::tie(failure.failed_at, id) > std::tie(group.last_failed_at, group.example)) {
    group.example = id;
    group.error = failure.error;
    group.last_failed_at = failure.failed_at;
  }
  if (group.count == 0 || failure.failed_at < group.first_failed_at) {
    group.first_failed_at = failure.failed_at;
  }
  ++group.count;
  count(group.handlers, failure.handler);
  count(group.hosts, failure.host);
  const auto ago = std::chrono::duration_cast<std::chrono::hours>(std::max(now_ - failure.failed_at, Duration::zero()));
  if (const auto hour = static_cast<std::size_t>(ago.count()); hour < group.per_hour.size()) {
    ++group.per_hour[hour];
  }
}

std::vector<ErrorGroup> ErrorGroups::finish(std::size_t limit, std::uint64_t& unlisted) && {
  auto sorted = mapped(groups_, [](auto& one) { return std::move(one.second); });
  std::sort(sorted.begin(), sorted.end(), [](const ErrorGroup& a, const ErrorGroup& b) {
    return std::tie(b.count, b.last_failed_at, a.pattern) < std::tie(a.count, a.last_failed_at, b.pattern);
  });
  unlisted = beyond_;
  for (std::size_t index = limit; index < sorted.size(); ++index) {
    unlisted += sorted[index].count;
  }
  sorted.resize(std::min(sorted.size(), limit));
  for (ErrorGroup& group : sorted) {
    group.fingerprint = fingerprint_of(group.pattern);
  }
  return sorted;
}

}  // namespace sluice::queue
