#include "host/fleet/rate_share.hpp"

#include <algorithm>
#include <cmath>

#include "host/fleet/notice_json.hpp"

namespace sluice::fleet {

/// A host's part, as it stands in the notice.
struct RatePart {
  std::string host;
  std::int64_t rate = 0;  ///< in 1e-9 messages a second, as limits may be of one an hour
  std::int64_t want = 0;  ///< the same
  std::int64_t beat = 0;  ///< another one each time it is written
};

template <Described<RatePart> Record, typename Visit>
void describe(Record& part, Visit visit) {
  visit("host", part.host);
  visit("rate", part.rate);
  visit("want", part.want);
  visit("beat", part.beat);
}

namespace {

constexpr double kScale = 1e9;
// A part is of a message a second at least: more hosts than that take turns, or each would wait for its own token, and
// all of them at once would have one to spend.
constexpr double kLeastPart = 1;
constexpr Duration kShortestTurn = std::chrono::minutes(1);
constexpr double kMessagesInATurn = 3;
/// What a job that is not short of tokens is left beyond what it uses.
constexpr double kReserve = 1.5;
constexpr double kLeastWant = 0.01;

struct Book {
  std::optional<WallTime> used_at;  ///< by the board's clock: nobody has claimed since
  std::vector<RatePart> parts;
};

template <Described<Book> Record, typename Visit>
void describe(Record& book, Visit visit) {
  visit("used_at", book.used_at);
  visit("parts", book.parts);
}

/// Nothing of what nobody can read: its hosts write again.
Book read_book(const std::string& text) {
  const auto book = read_described<Book>(text, "the shares of a rate");
  return book ? *book : Book();
}

double seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

/// Whose turn it is, of more hosts than have a part: those that are short of tokens, and of these others each time.
std::vector<RatePart> in_turn(std::vector<RatePart> parts, double limit, WallTime now) {
  const auto most = static_cast<std::size_t>(std::max(1.0, std::floor(limit / kLeastPart)));
  if (parts.size() <= most) {
    return parts;
  }
  std::sort(parts.begin(), parts.end(), [](const RatePart& a, const RatePart& b) { return a.host < b.host; });
  const double turn = std::max(seconds(kShortestTurn), kMessagesInATurn / limit);
  const auto turns = static_cast<std::size_t>(seconds(now.time_since_epoch()) / turn);
  std::rotate(parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(turns % parts.size()), parts.end());
  const auto all = static_cast<std::int64_t>(limit * kScale);
  std::stable_partition(parts.begin(), parts.end(), [all](const RatePart& part) { return part.want >= all; });
  parts.resize(most);
  return parts;
}

/// What is due to `host`: nobody gets more than it wants before all have it, and the rest is for all alike.
double fair_part(std::vector<RatePart> parts, const std::string& host, double limit, WallTime now) {
  parts = in_turn(std::move(parts), limit, now);
  std::sort(parts.begin(), parts.end(), [](const RatePart& a, const RatePart& b) { return a.want < b.want; });
  double left = limit;
  double own = -1;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const double part =
        std::min(static_cast<double>(parts[i].want) / kScale, left / static_cast<double>(parts.size() - i));
    own = parts[i].host == host ? part : own;
    left -= part;
  }
  return own < 0 ? 0 : own + std::max(0.0, left) / static_cast<double>(parts.size());
}

}  // namespace

std::string RateShare::revise(const std::string& text, const Use& use, WallTime board_now, SteadyTime now) {
  began_ = began_ == SteadyTime::min() ? now : began_;
  Book book = read_book(text);
  std::map<std::string, Sight> seen;
  double others = 0;
  std::erase_if(book.parts, [&](const RatePart& part) {
    if (part.host == host_) {
      beat_ = std::max(beat_, part.beat);
      return true;
    }
    const auto before = seen_.find(part.host);
    const bool same = before != seen_.end() && before->second.beat == part.beat;
    const Sight sight = same ? before->second : Sight{part.beat, now};
    if (now - sight.since > pace_.silent) {
      return true;
    }
    seen.emplace(part.host, sight);
    others += static_cast<double>(part.rate) / kScale;
    return false;
  });
  seen_ = std::move(seen);

  const double want = use.short_of ? limit_ : std::min(limit_, std::max(use.rate * kReserve, limit_ * kLeastWant));
  RatePart own{host_, 0, static_cast<std::int64_t>(want * kScale), ++beat_};
  book.parts.push_back(own);
  const double due = fair_part(book.parts, host_, limit_, board_now);
  own.rate = static_cast<std::int64_t>(std::max(0.0, std::min(due, limit_ - others)) * kScale);
  book.parts.back() = own;

  const double rate = static_cast<double>(own.rate) / kScale;
  const bool begins = now >= lease_.until || lease_.rate <= 0;
  const double unused = book.used_at ? std::max(0.0, seconds(board_now - *book.used_at)) * rate : 1.0;
  next_ = {.rate = rate, .credit = begins && rate > 0 ? std::min(1.0, unused) : 0.0};
  if (use.rate > 0 || next_.credit > 0) {
    book.used_at = board_now;
  }
  lease_.rate = std::min(lease_.rate, rate);
  lease_.credit = 0;
  const bool settled = rate + 1 / kScale >= due && now - began_ > 2 * pace_.renew;
  due_ = now + (settled && (!use.short_of || rate >= due) ? pace_.renew : pace_.renew / 4);
  return write_described(book);
}

void RateShare::posted(SteadyTime asked) {
  lease_ = next_;
  lease_.until = asked + pace_.rely;
}

std::string RateShare::without_this_host(const std::string& text) const {
  Book book = read_book(text);
  std::erase_if(book.parts, [this](const RatePart& part) { return part.host == host_; });
  return write_described(book);
}

}  // namespace sluice::fleet
