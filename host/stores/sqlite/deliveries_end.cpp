// The part of Deliveries that ends messages, many at a time.

#include <algorithm>
#include <functional>
#include <iterator>

#include "host/queue/effects.hpp"
#include "host/stores/sqlite/deliveries.hpp"
#include "host/stores/sqlite/records.hpp"

namespace sluice::queue::sqlite {

namespace {

// Groups of messages in flight that are remembered; of those that were lost some stay.
constexpr std::size_t kMostRemembered = 65'536;

std::size_t hash_of(const std::string& id) { return std::hash<std::string>()(id); }

bool is_short(const Message& message) { return message.id.size() + content_bytes(message) <= Tombstones::kLongest; }

/// Who is sent with an end finds the ids of those gone that ended before it.
bool sends(const Completion& completion) { return completion.effects && !completion.effects->messages.empty(); }

}  // namespace

void Deliveries::begin_settling(std::int64_t half, std::span<const Completion> completions, WallTime now) {
  removed_.clear();
  settling_.clear();
  lanes_.at(now);
  if (lanes_.kept(half) == Kept::none) {
    return;
  }
  // All of them at once: a statement for each would cost as much as what is done about its end.
  asked_.clear();
  for (const Completion& completion : completions) {
    const auto known = handed_out_.find(completion.receipt.locator);
    if (known != handed_out_.end() && is_of(completion.receipt, known->second)) {
      settling_.insert(handed_out_.extract(known));
    } else {
      asked_.push_back(completion.receipt.locator);
    }
  }
  if (!asked_.empty()) {
    std::sort(asked_.begin(), asked_.end());
    asking_.each(asked_, groups_, [this](const Statement& row) {
      settling_.emplace(row.integer(0), Known{.group = group_hash(row.bytes(1))});
    });
  }
  asked_.clear();
  for (const auto& [seq, known] : settling_) {
    asked_.push_back(known.group);
  }
  lanes_.gather_ends(half, asked_);
  find_held(half, completions);
}

// Another version may be of another group, as an operator or another host has left it.
bool Deliveries::is_of(const Receipt& receipt, const Known& known) {
  return known.version == receipt.version && known.id_hash == hash_of(receipt.id);
}

// Of those that this process has handed out and that may be buried: whether their receipts hold.
void Deliveries::find_held(std::int64_t half, std::span<const Completion> completions) {
  if (std::any_of(completions.begin(), completions.end(), sends)) {
    return;
  }
  versions_.clear();
  for (const Completion& completion : completions) {
    const auto known = settling_.find(completion.receipt.locator);
    if (completion.action == CompletionAction::remove && known != settling_.end() && known->second.is_short &&
        is_of(completion.receipt, known->second)) {
      versions_.push_back({completion.receipt.locator, completion.receipt.version});
    }
  }
  std::sort(versions_.begin(), versions_.end(), [](const IdEntry& a, const IdEntry& b) { return a.hash < b.hash; });
  leased_.bind(half);
  receipts_.each(versions_, leased_, [this](const Statement& row) { settling_[row.integer(0)].held = Held::held; });
}

void Deliveries::remember(const Delivery& delivery) {
  if (handed_out_.size() >= kMostRemembered) {
    handed_out_.clear();
  }
  handed_out_.insert_or_assign(delivery.receipt.locator, Known{.group = group_hash(delivery.message.group),
                                                               .id_hash = hash_of(delivery.receipt.id),
                                                               .version = delivery.receipt.version,
                                                               .is_short = is_short(delivery.message)});
}

std::int64_t Deliveries::group_of(std::int64_t seq) {
  if (const auto known = settling_.find(seq); known != settling_.end()) {
    return known->second.group;
  }
  group_.bind(seq);
  const std::int64_t group = group_.row() ? group_hash(group_.bytes(0)) : 0;
  group_.reset();
  return group;
}

void Deliveries::end_settling(std::int64_t half, WallTime now) {
  lanes_.flush();
  settling_.clear();
  tally_.add(half, -static_cast<std::int64_t>(removed_.size()));
  delete_removed(now);
}

void Deliveries::settle_back_to(std::size_t mark) {
  for (std::size_t i = mark; i < removed_.size(); ++i) {
    if (removed_[i].buried) {
      settling_[removed_[i].seq].held = Held::held;
    }
  }
  removed_.resize(mark);
}

void Deliveries::delete_removed(WallTime now) {
  // Messages that were sent one after the other are mostly settled together: one statement for a run of them, and one
  // for all others.
  asked_.clear();
  std::sort(removed_.begin(), removed_.end(), [](const Removed& a, const Removed& b) { return a.seq < b.seq; });
  for (auto first = removed_.begin(); first != removed_.end();) {
    auto last = first;
    while (std::next(last) != removed_.end() && std::next(last)->seq == last->seq + 1) {
      ++last;
    }
    if (first == last) {
      asked_.push_back(first->seq);
    } else {
      delivery_delete_run_.bind(first->seq, last->seq).run();
    }
    first = std::next(last);
  }
  if (asked_.size() == 1) {
    delivery_delete_.bind(asked_[0]).run();
  } else if (!asked_.empty()) {
    asking_.each(asked_, delivery_delete_all_, [](const Statement& /*row*/) {});
  }
  asked_.clear();
  for (const Removed& one : removed_) {
    if (one.buried) {
      asked_.push_back(one.seq);
    }
  }
  if (!asked_.empty()) {
    tombstones_.bury(asked_, now);
  }
}

// Both of a message in flight: it lies in no place.

void Deliveries::bury(std::int64_t half, std::int64_t seq, std::int64_t group) {
  removed_.push_back({seq, true});
  end_lane(half, seq, group, Lanes::Rest::buried);
}

bool Deliveries::remove_tracked(std::int64_t half, const Receipt& receipt) {
  const std::int64_t group = group_of(receipt.locator);
  if (remove_leased_.bind(receipt.locator, std::string_view(receipt.id), receipt.version, half).run() != 1) {
    return false;
  }
  end_lane(half, receipt.locator, group, Lanes::Rest::removed);
  return true;
}

void Deliveries::end_lane(std::int64_t half, std::int64_t seq, std::int64_t group, Lanes::Rest rest) {
  if (const std::int64_t lane = lanes_.lane_of(half, group); lane != 0) {
    lanes_.end(half, lane, seq, rest);
  }
  if ((half & 1) != 0) {
    lanes_.let_go(seq);
  }
}

}  // namespace sluice::queue::sqlite
