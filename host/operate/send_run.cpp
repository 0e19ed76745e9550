#include "host/operate/send_run.hpp"

#include <algorithm>
#include <iterator>
#include <limits>

#include "base/ranges.hpp"
#include "base/text/hex.hpp"
#include "base/text/json_check.hpp"
#include "base/text/json_reader.hpp"
#include "base/text/number.hpp"
#include "base/text/utf8.hpp"

namespace sluice::operate {

namespace {

// Behind it there is a number still, as the library wants it.
constexpr std::uint64_t kNoEnd = std::numeric_limits<std::uint64_t>::max() - 1;

std::optional<std::uint64_t> number(std::string_view text) {
  const auto value = parse_number<std::uint64_t>(text);
  return value > 0U && value < kNoEnd ? value : std::nullopt;
}

constexpr std::size_t kMostMoment = 32;
/// Of an id, after its run's name. No input has more lines.
constexpr std::size_t kLineDigits = 12;
constexpr std::string_view kPattern = "xxxxxxxx-xxxx-8xxx-8xxx";

bool is_name(std::string_view text) {
  return text.size() == kPattern.size() &&
         std::equal(text.begin(), text.end(), kPattern.begin(), [](char byte, char wanted) {
           return wanted == 'x' ? (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'f') : byte == wanted;
         });
}

// Letters and digits, as the shell leaves alone.
bool is_moment(std::string_view text) {
  return !text.empty() && text.size() <= kMostMoment && std::all_of(text.begin(), text.end(), [](char byte) {
    return (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z');
  });
}

/// What a JSON body has at that place, as text; nothing where it has no text, number or truth value there.
std::optional<std::string> value_at(const std::string& body, const std::string& pointer) {
  auto found = json_problem(body) ? std::nullopt : json_at(body, pointer);
  return found && !found->text.empty() ? std::optional(std::move(found->text)) : std::nullopt;
}

}  // namespace

std::optional<LineRanges> LineRanges::parse(std::string_view text) {
  LineRanges lines;
  while (true) {
    const std::string_view part = text.substr(0, text.find(','));
    const auto dash = part.find('-');
    const auto first = number(part.substr(0, dash));
    const bool open = dash != std::string_view::npos && dash + 1 == part.size();
    const auto last = dash == std::string_view::npos ? first : open ? kNoEnd : number(part.substr(dash + 1));
    if (!first || !last || *last < *first || (!lines.empty() && *first <= lines.ranges_.rbegin()->upper())) {
      return std::nullopt;
    }
    lines.ranges_.add({*first, *last});
    if (part.size() == text.size()) {
      return lines;
    }
    text.remove_prefix(part.size() + 1);
  }
}

void LineRanges::add_from(std::uint64_t line) { ranges_.add({line, kNoEnd}); }

LineRanges LineRanges::behind(std::uint64_t line) const {
  LineRanges rest = *this;
  rest.ranges_.erase({0, line});
  return rest;
}

LineRanges LineRanges::at_most(std::size_t most) const {
  LineRanges fewer = *this;
  if (count() > most) {
    fewer.add_from(std::next(ranges_.begin(), static_cast<std::ptrdiff_t>(most) - 1)->lower());
  }
  return fewer;
}

std::string LineRanges::text() const {
  std::string text;
  for (const auto& range : ranges_) {
    text += (text.empty() ? "" : ",") + std::to_string(range.lower());
    if (range.upper() == kNoEnd) {
      text += "-";
    } else if (range.upper() != range.lower()) {
      text += "-" + std::to_string(range.upper());
    }
  }
  return text;
}

void UnsureLines::add(const UnsureLines& lines) {
  for (const auto& [moment, those] : lines.by_moment_) {
    by_moment_[moment].add(those);
  }
}

std::string UnsureLines::moment_of(std::uint64_t line) const {
  const auto* const found = find_where(by_moment_, [line](const auto& known) { return known.second.contains(line); });
  return found == nullptr ? std::string() : found->first;
}

std::size_t UnsureLines::count() const {
  std::size_t ranges = 0;
  for (const auto& known : by_moment_) {
    ranges += known.second.count();
  }
  return ranges;
}

UnsureLines UnsureLines::behind(std::uint64_t line) const {
  UnsureLines rest;
  for (const auto& [moment, lines] : by_moment_) {
    if (const LineRanges those = lines.behind(line); !those.empty()) {
      rest.by_moment_.emplace(moment, those);
    }
  }
  return rest;
}

std::string UnsureLines::text() const {
  std::string text;
  for (const auto& [moment, lines] : by_moment_) {
    text.append("@").append(moment).append(":").append(lines.text());
  }
  return text;
}

std::optional<UnsureLines> UnsureLines::parse(std::string_view text) {
  UnsureLines unsure;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find('@', 1));
    const auto colon = part.find(':');
    if (part.front() != '@' || colon == std::string_view::npos || !is_moment(part.substr(1, colon - 1))) {
      return std::nullopt;
    }
    const auto lines = LineRanges::parse(part.substr(colon + 1));
    if (!lines) {
      return std::nullopt;
    }
    unsure.by_moment_[std::string(part.substr(1, colon - 1))].add(*lines);
    text.remove_prefix(part.size());
  }
  return unsure;
}

SendRun SendRun::begin(Random& random) {
  std::string name(kPattern);
  for (char& byte : name) {
    byte = byte == 'x' ? kHexDigits[random.below(kHexDigits.size())] : byte;
  }
  LineRanges all;
  all.add_from(1);
  return {std::move(name), std::move(all), {}, false};
}

std::optional<SendRun> SendRun::resume(std::string_view token) {
  const auto colon = token.find(':');
  if (colon == std::string_view::npos || !is_name(token.substr(0, colon))) {
    return std::nullopt;
  }
  const auto at = std::min(token.find('@'), token.size());
  auto lines = at > colon ? LineRanges::parse(token.substr(colon + 1, at - colon - 1)) : std::nullopt;
  auto unsure = UnsureLines::parse(token.substr(at));
  if (!lines || !unsure) {
    return std::nullopt;
  }
  return SendRun(std::string(token.substr(0, colon)), std::move(*lines), std::move(*unsure), true);
}

std::string SendRun::id(std::uint64_t line) const { return name_ + "-" + hex_digits(line, kLineDigits); }

std::string SendRun::token(const LineRanges& missing, const UnsureLines& unsure) const {
  return name_ + ":" + missing.text() + unsure.text();
}

queue::NewMessage MessageTemplate::make(std::string body, std::string_view by_body) const {
  queue::NewMessage message = shared;
  message.body = std::move(body);
  message.content_type = content_type.empty() ? by_body : content_type;
  return message;
}

Result<queue::NewMessage> MessageTemplate::from_json(std::string_view json) const {
  const std::string_view text = json_trimmed(json);
  if (const auto problem = json_problem(text)) {
    return Error(ErrorCode::invalid, *problem);
  }
  if (text.front() == '"') {
    return keyed(make(*json_string(text), queue::kTextPlain));
  }
  return keyed(make(std::string(text), queue::kJson));
}

Result<queue::NewMessage> MessageTemplate::keyed(queue::NewMessage message) const {
  if (dedup_from.empty() && unique_from.empty()) {
    return message;
  }
  for (const auto& [pointer, key] : {std::pair(&dedup_from, &message.dedup_id), {&unique_from, &message.unique_key}}) {
    if (pointer->empty()) {
      continue;
    }
    auto found = value_at(message.body, *pointer);
    if (!found || found->empty()) {
      return Error(ErrorCode::invalid,
                   "the body has no text or number at " + *pointer + ", where its key is taken from");
    }
    *key = std::move(*found);
  }
  return message;
}

Result<queue::NewMessage> MessageTemplate::from_json_or_text(std::string_view text) const {
  auto message = from_json(text);
  return message ? std::move(message) : from_text(std::string(text));
}

Result<queue::NewMessage> MessageTemplate::from_text(std::string text) const {
  return keyed(make(std::move(text), queue::kTextPlain));
}

Result<queue::NewMessage> MessageTemplate::from_file(const std::string& name, std::string bytes) const {
  constexpr std::string_view kSuffix = ".json";
  const bool named_json = name.size() > kSuffix.size() && name.ends_with(kSuffix);
  if (named_json && !json_problem(json_trimmed(bytes))) {
    return keyed(make(std::string(json_trimmed(bytes)), queue::kJson));
  }
  const auto type = is_utf8(bytes) ? queue::kTextPlain : queue::kOctetStream;
  return keyed(make(std::move(bytes), type));
}

}  // namespace sluice::operate
