#include "host/stores/leased/key_sketch.hpp"

#include <algorithm>
#include <cmath>

#include "base/timestamp.hpp"
#include "host/stores/leased/leased_record.hpp"

namespace sluice::queue::leased {
namespace {

constexpr unsigned kChanceBits = 80;
constexpr unsigned kPriorityBit = 126;
constexpr std::uint64_t kMostMillis = (std::uint64_t{1} << (kPriorityBit - kChanceBits)) - 1;  // the year 4199
constexpr std::uint64_t kHalfChance = (std::uint64_t{1} << 40U) - 1;
// A gap is so much longer than those between the records beside it.
constexpr double kGap = 16;
// What comes behind an end that was seen is looked at in so many more places.
constexpr std::size_t kPlacesBehind = 4;
// What is smaller than such a part of the whole is not looked at more closely.
constexpr double kFine = 16;
const double kMillisecond = std::ldexp(1.0, kChanceBits);
// So many of one millisecond have been sent together, and do not tell how many others follow them.
constexpr double kLump = 16;

double length(KeyNumber from, KeyNumber to) { return to > from ? static_cast<double>(to - from) : 0.0; }
unsigned priority_bits(KeyNumber number) { return static_cast<unsigned>(number >> kPriorityBit); }
KeyNumber start_of(unsigned priority) { return KeyNumber{priority} << kPriorityBit; }

KeyNumber number_of(Priority priority, WallTime due) { return number_of_key(last_sort_key(priority, due)); }

std::string highest_key() { return last_sort_key(Priority::low, kEndOfTime); }

std::vector<KeyNumber> numbers_of(const KeySketch::Answer& answer) {
  std::vector<KeyNumber> numbers;
  numbers.reserve(answer.keys.size());
  for (const std::string& key : answer.keys) {
    numbers.push_back(number_of_key(key));
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

}  // namespace

KeyNumber number_of_key(std::string_view sort) {
  const auto parts = parts_of_key(sort);
  if (!parts) {
    return 0;
  }
  KeyNumber number = start_of(static_cast<unsigned>(parts->priority));
  number |= KeyNumber{std::min(parts->millis, kMostMillis)} << kChanceBits;
  return number | KeyNumber{parts->high} << (kChanceBits / 2) | KeyNumber{parts->low};
}

std::string key_of_number(KeyNumber number) {
  const auto millis = static_cast<std::uint64_t>(number >> kChanceBits) & kMostMillis;
  return sort_key_of(static_cast<Priority>(priority_bits(number)), time_of_millis(static_cast<std::int64_t>(millis)),
                     static_cast<std::uint64_t>(number >> (kChanceBits / 2)) & kHalfChance,
                     static_cast<std::uint64_t>(number) & kHalfChance);
}

// Of n records whose first is given, n - 1 lie in what is behind it, and one fewer is what is to be expected there. A
// page of messages close to 400 KB has room for two, of which that would be nothing: half a record is about their mean.
KeySketch::Block KeySketch::block_of(const std::vector<KeyNumber>& keys) {
  Block block;
  if (keys.empty()) {
    return block;
  }
  block.first = keys.front();
  block.last = keys.back();
  block.count = static_cast<double>(keys.size());
  if (const double span = length(block.first, block.last); span > 0) {
    block.left = block.right = std::max(block.count - 2, 0.5) / span;
  }
  return block;
}

std::vector<KeySketch::Order> KeySketch::next(WallTime now) {
  if (step_ == Step::split && !choose_split(now)) {
    step_ = Step::none;
  }
  switch (step_) {
    case Step::tail:
      return {{key_of_number(0), highest_key(), false, kEdge}};
    case Step::head:
      return {{key_of_number(0), key_of_number(blocks_.back().first - 1), true, kEdge}};
    case Step::more: {
      const KeyNumber last = blocks_.empty() ? 0 : blocks_.back().last;
      return {{key_of_number(last + 1), highest_key(), false, kEdge}};
    }
    case Step::split:
      return {{key_of_number(blocks_[left_].last + 1), key_of_number(place_), false, kSide},
              {key_of_number(place_ + 1), key_of_number(blocks_[left_ + 1].first - 1), true, kSide}};
    case Step::none:
      break;
  }
  return {};
}

void KeySketch::done(const std::vector<Answer>& answers) {
  const std::vector<KeyNumber> keys = numbers_of(answers.front());
  switch (step_) {
    case Step::tail:
      blocks_ = {block_of(keys)};
      drawn_ = answers.front().ended;
      step_ = drawn_ ? Step::none : Step::head;
      break;
    case Step::head: {
      drawn_ = true;
      step_ = Step::split;
      Block head = block_of(keys);
      Block& tail = blocks_.front();
      if (!answers.front().ended) {
        blocks_.insert(blocks_.begin(), head);
      } else if (!keys.empty()) {
        tail.first = head.first;
        tail.count += head.count;
      }
      break;
    }
    case Step::more: {
      const Block more = block_of(keys);
      step_ = Step::split;
      if (!answers.front().ended) {
        blocks_.push_back(more);
        places_left_ += kPlacesBehind;
      } else if (!keys.empty()) {
        Block& tail = blocks_.back();
        tail.last = more.last;
        tail.count += more.count;
        tail.right = more.right > 0 ? more.right : tail.right;
      }
      break;
    }
    case Step::split:
      split_done(keys, answers.front().ended, numbers_of(answers.back()), answers.back().ended);
      break;
    case Step::none:
      break;
  }
}

void KeySketch::note_gap(const Block& before, const Block& behind, double gap) {
  const double density = std::max(before.right, behind.left);
  if (density > 0 && gap * density > kGap) {
    gaps_.insert(std::upper_bound(gaps_.begin(), gaps_.end(), gap), gap);
  }
}

void KeySketch::split_done(const std::vector<KeyNumber>& before, bool adjoins, const std::vector<KeyNumber>& behind,
                           bool ended) {
  places_left_ -= std::min<std::size_t>(places_left_, 1);
  Block left = block_of(before);
  Block right = block_of(behind);
  Block& a = blocks_[left_];
  Block& b = blocks_[left_ + 1];
  const Block& nearer = before.empty() ? a : left;
  const Block& farther = behind.empty() ? b : right;
  if (priority_bits(nearer.last) == priority_bits(farther.first)) {
    note_gap(nearer, farther, length(nearer.last, farther.first));
  }
  const double count = left.count + right.count;
  if (adjoins && ended) {
    a.count += count + b.count;
    a.last = b.last;
    a.right = b.right;
    blocks_.erase(blocks_.begin() + static_cast<std::ptrdiff_t>(left_) + 1);
  } else if (adjoins) {
    a.count += count;
    a.last = right.last;
    a.right = right.right;
  } else if (ended) {
    b.count += count;
    b.first = left.first;
    b.left = left.left;
  } else {
    blocks_.insert(blocks_.begin() + static_cast<std::ptrdiff_t>(left_) + 1,
                   Block{left.first, right.last, count, left.left, right.right});
  }
}

// The most that may lie between a block and the next.
double KeySketch::possible(std::size_t left) const {
  const Block& a = blocks_[left];
  const Block& b = blocks_[left + 1];
  const double span = length(a.last, b.first);
  const double density = std::max(a.right, b.left);
  return span * (span > kMillisecond ? std::min(density, kLump / kMillisecond) : density);
}

double KeySketch::between_blocks(std::size_t left) const {
  const Block& a = blocks_[left];
  const Block& b = blocks_[left + 1];
  const double span = length(a.last, b.first);
  if (priority_bits(a.last) != priority_bits(b.first) || span <= 1) {
    return 0;
  }
  const double density = a.right > 0 && b.left > 0 ? std::sqrt(a.right * b.left) : std::max(a.right, b.left);
  const bool lump = density * kMillisecond > kLump && span > kMillisecond;
  if (!lump && (gaps_.empty() || span <= gaps_.back() / 2)) {
    return density * span;
  }
  // There will be more gaps in between.
  const double with_gaps = std::min(density, read_density());
  return span * (lump ? with_gaps : std::cbrt(density * with_gaps * with_gaps));
}

// How densely records lie in all that was read, gaps included.
double KeySketch::read_density() const {
  double count = 0;
  double read = 0;
  for (const Block& block : blocks_) {
    if (priority_bits(block.first) == priority_bits(block.last)) {
      count += block.count;
      read += length(block.first, block.last);
    }
  }
  return read > 0 ? count / read : 0;
}

// Where keys change their priority, and what is due ends, is seen first; then where most may lie that was not seen.
bool KeySketch::choose_split(WallTime now) {
  double all = 0;
  double most = 0;
  std::size_t widest = 0;
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    all += blocks_[i].count;
    if (i + 1 == blocks_.size()) {
      break;
    }
    const KeyNumber from = blocks_[i].last;
    const KeyNumber to = blocks_[i + 1].first;
    if (to - from <= 1) {
      continue;
    }
    if (priority_bits(from) != priority_bits(to)) {
      left_ = i;
      place_ = start_of(priority_bits(to)) - 1;
      return true;
    }
    const KeyNumber due = number_of(static_cast<Priority>(priority_bits(from)), now);
    if (from < due && due + 1 < to && at_now_.insert(priority_bits(from)).second) {
      left_ = i;
      place_ = due;
      return true;
    }
    all += between_blocks(i);
    if (possible(i) > most) {
      most = possible(i);
      widest = i;
    }
  }
  if (places_left_ == 0 || most * kFine <= all) {
    return false;
  }
  left_ = widest;
  place_ = blocks_[widest].last + (blocks_[widest + 1].first - blocks_[widest].last) / 21 * 8;
  return true;
}

KeySketch::Amount KeySketch::between(KeyNumber after, KeyNumber to) const {
  Amount amount;
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    const Block& block = blocks_[i];
    const auto share = [after, to](KeyNumber first, KeyNumber last) {
      if (last <= after || first > to) {
        return 0.0;
      }
      const double span = length(first, last);
      return span > 0 ? length(std::max(first, after), std::min(last, to)) / span : 1.0;
    };
    amount.records += block.count * share(block.first, block.last);
    if (i + 1 < blocks_.size()) {
      const double unseen = between_blocks(i) * share(block.last, blocks_[i + 1].first);
      amount.records += unseen;
      amount.unseen += unseen;
    }
  }
  return amount;
}

}  // namespace sluice::queue::leased
