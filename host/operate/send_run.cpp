#include "host/operate/send_run.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <span>

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

constexpr Duration kProgressInterval = std::chrono::milliseconds(200);

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

BatchCommitter::BatchCommitter(bool keep_going, const SendRun& input, queue::Sender& sender, const Clock& clock,
                               Listener listener)
    : keep_going_(keep_going),
      run_(input),
      sender_(sender),
      clock_(clock),
      listener_(std::move(listener)),
      started_(clock.steady_now()),
      shown_(started_) {}

bool BatchCommitter::pass_on(Batch batch) {
  if (!drain()) {
    return false;
  }
  thread_ = std::jthread([this, sent = std::move(batch)]() mutable { stopped_ = !commit(std::move(sent)); });
  return true;
}

bool BatchCommitter::drain() {
  if (thread_.joinable()) {
    thread_.join();
  }
  return !stopped_;
}

bool BatchCommitter::commit(Batch batch) {
  auto results = send(std::move(batch.messages), batch.lines);
  std::vector<Refusal> refusals = std::move(batch.refusals);
  ids_.clear();
  for (std::size_t index = 0; index < results.size(); ++index) {
    note(batch.lines[index], results[index], refusals);
  }
  std::sort(refusals.begin(), refusals.end(),
            [](const Refusal& left, const Refusal& right) { return left.line < right.line; });
  bool going = true;
  for (const Refusal& refusal : refusals) {
    going = refuse(refusal) && going;
  }
  committed_ = batch.last_line;
  listener_.stored(ids_);
  show_progress();
  return going && !too_many() && listener_.listens();
}

void BatchCommitter::note(std::uint64_t line, queue::SendResult& result, std::vector<Refusal>& refusals) {
  if (result.status != queue::SendStatus::failed) {
    ++sent_;
    existing_ += result.status == queue::SendStatus::duplicate_id ? 1 : 0;
    ids_.append(result.id).append("\n");
    return;
  }
  // Nothing that is refused now has gone away if an earlier run has stored it.
  if (const std::string before = run_.unsure().moment_of(line); !before.empty()) {
    unsure_.add(before, line);
  } else if (!moment_.empty() && result.error.code() == ErrorCode::unknown_outcome) {
    unsure_.add(moment_, line);
  }
  refusals.push_back({line, listener_.explained(result.error)});
}

bool BatchCommitter::may_be_stored(std::uint64_t line) const {
  return run_.repeats() && (moment_.empty() || !run_.unsure().moment_of(line).empty());
}

Result<std::string> BatchCommitter::id_of(const queue::NewMessage& message, std::uint64_t line) const {
  if (moment_.empty()) {
    return run_.id(line);
  }
  const std::string before = run_.unsure().moment_of(line);
  const auto id = sender_.id_at(before.empty() ? moment_ : before, run_.name(), line, message);
  if (!id) {
    return Error(ErrorCode::invalid,
                 "--resume names the moment \"" + before +
                     "\", which this queue's store has not made; give what a run on this queue said");
  }
  return *id;
}

std::vector<queue::SendResult> BatchCommitter::send(std::vector<queue::NewMessage> messages,
                                                    const std::vector<std::uint64_t>& lines) {
  const auto all_failed = [&messages](const Error& error) {
    return std::vector<queue::SendResult>(messages.size(), {queue::SendStatus::failed, {}, error});
  };
  auto moment = sender_.moment(deadline());
  if (!moment) {
    return all_failed(moment.error());
  }
  moment_ = std::move(*moment);
  for (std::size_t i = 0; i < messages.size(); ++i) {
    auto id = id_of(messages[i], lines[i]);
    if (!id) {
      return all_failed(id.error());
    }
    messages[i].id = std::move(*id);
  }
  std::vector<queue::SendResult> results;
  for (std::size_t from = 0, end = 0; from < messages.size(); from = end) {
    const bool fresh = !may_be_stored(lines[from]);
    while (end < messages.size() && may_be_stored(lines[end]) != fresh) {
      ++end;
    }
    const auto stretch = std::span(messages).subspan(from, end - from);
    auto some =
        fresh ? sender_.send_fresh({std::move_iterator(stretch.begin()), std::move_iterator(stretch.end())}, deadline())
              : sender_.send(stretch, deadline());
    queue::fill_up(some, stretch.size());
    results.insert(results.end(), std::move_iterator(some.begin()), std::move_iterator(some.end()));
  }
  return results;
}

// What is stored must not be among what is sent again where only moments tell it.
bool BatchCommitter::too_many() const {
  return !moment_.empty() && std::max(missing_.count(), unsure_.count()) >= SendRun::kMostRanges;
}

LineRanges BatchCommitter::missing(bool at_end) const {
  LineRanges missing = missing_;
  if (!at_end) {
    missing.add(run_.rest(committed_));
  }
  return missing;
}

std::string BatchCommitter::token(bool at_end) const {
  LineRanges missing_lines = missing(at_end);
  UnsureLines unsure = unsure_;
  if (!at_end) {
    unsure.add(run_.unsure().behind(committed_));
  }
  return run_.token(moment_.empty() ? missing_lines.at_most(SendRun::kMostRanges) : missing_lines, unsure);
}

bool BatchCommitter::refuse(const Refusal& refusal) {
  ++refused_;
  missing_.add(refusal.line);
  if (keep_going_) {
    listener_.passed_over(refusal);
    return true;
  }
  auto* const same = find_where(reasons_, [&refusal](const auto& reason) { return reason.first == refusal.why; });
  auto& lines = same != nullptr ? same->second : reasons_.emplace_back(refusal.why, LineRanges{}).second;
  lines.add(refusal.line);
  return false;
}

std::vector<std::string> BatchCommitter::stopped_by() const {
  std::vector<std::string> texts;
  for (const auto& [why, lines] : reasons_) {
    const std::string text = lines.text();
    texts.push_back((text.find_first_of(",-") == std::string::npos ? "line " : "lines ") + text + ": " + why);
  }
  if (too_many()) {
    texts.emplace_back(
        "what was not stored lies in so many places of the input that --resume can name no more; mend what is wrong "
        "with it before the rest is sent");
  }
  return texts;
}

void BatchCommitter::show_progress() {
  const SteadyTime now = clock_.steady_now();
  if (now - shown_ < kProgressInterval) {
    return;
  }
  shown_ = now;
  listener_.progress(sent_, std::chrono::duration<double>(now - started_).count());
}

}  // namespace sluice::operate
