#include "tests/simulation/books.hpp"

#include <algorithm>
#include <utility>

namespace sluice::simulation {
namespace {

std::string seconds(Duration span) { return std::to_string(std::chrono::duration<double>(span).count()) + " s"; }

}  // namespace

const Letter& Books::letter(const std::string& id) const {
  static const Letter kUnknown;
  const auto found = letters_.find(id);
  return found == letters_.end() ? kUnknown : found->second;
}

// One line for all of a queue in order; otherwise a message without a group stands alone.
std::string Books::lane_of(const Letter& sent) const {
  return rules_.order == config::Order::queue  ? "the queue"
         : rules_.order == config::Order::none ? std::string()
                                               : sent.group;
}

void Books::stored(const std::string& id, const std::string& sent_at, SteadyTime now) {
  truth_.sent(id);
  const Letter& sent = letter(id);
  if (const std::string lane = lane_of(sent); !lane.empty()) {
    lanes_[lane].push_back({id, sent_at});
  }
  if (sent.dedup_id.empty()) {
    return;
  }
  const auto before = windows_.find(sent.dedup_id);
  if (before != windows_.end()) {
    // A clock that is set forward ends windows that much sooner.
    const Duration age = now - before->second.at + (forward_ - before->second.jumps);
    if (age + rules_.off < rules_.window) {
      violation(id + " was stored " + seconds(age) + " after " + before->second.first +
                ", which was sent with its deduplication id; the window is " + seconds(rules_.window));
    }
  }
  windows_[sent.dedup_id] = {id, now, forward_};
}

void Books::deduplicated(const Letter& sent, const std::string& first, SteadyTime now) {
  ++duplicates_;
  const auto window = windows_.find(sent.dedup_id);
  if (window == windows_.end() || window->second.first != first) {
    violation(sent.id + " was answered with " + first + ", which is not the first one with its deduplication id");
  } else if (now - window->second.at > rules_.window + rules_.off && !has_jumped_) {
    violation(sent.id + " was taken for a duplicate of " + first + " " + seconds(now - window->second.at) +
              " after it; the window is " + seconds(rules_.window));
  }
}

void Books::jumped(Duration span) {
  has_jumped_ = true;
  forward_ += std::max(span, Duration::zero());
  back_ += std::max(-span, Duration::zero());
}

bool Books::over(const std::string& id) const { return truth_.removed(id) || (truth_.dead(id) && !rules_.hold); }

void Books::started(const queue::Message& message) {
  const std::string lane = lane_of(letter(message.id));
  if (lane.empty()) {
    return;
  }
  const auto& places = lanes_[lane];
  const auto own =
      std::find_if(places.begin(), places.end(), [&](const Place& place) { return place.id == message.id; });
  for (auto place = places.begin(); place != own; ++place) {
    // What came earlier with a later time goes behind.
    if (place->sent_at < own->sent_at && !over(place->id)) {
      violation(message.id + " of " + lane + " was started before " + place->id + ", which is not done");
    }
  }
}

std::string Books::run(const queue::Message& message) { return message.id + "/" + std::to_string(++runs_); }

void Books::saw_result(const queue::Message& message, const std::string& result) {
  results_[unit_of(message.id)].insert(result);
}

void Books::told(Truth::Host host, const queue::Completion& completion, const queue::SettleResult& result) {
  const bool staged = completion.effects && !completion.effects->messages.empty();
  if (staged && result.status == queue::SettleStatus::lost && rules_.own_answers &&
      truth_.removed_by(host, completion.receipt)) {
    violation("host " + std::to_string(host) + " was told that it lost " + completion.receipt.id +
              ", which its own transaction has removed");
  }
}

std::string Books::unit_of(const std::string& id) const {
  const std::string& key = letter(id).key;
  const bool keyed = rules_.keys && rules_.keys->kind == config::IdempotencyConfig::Kind::attribute && !key.empty();
  return keyed ? key : id;
}

bool Books::has_effects(const std::string& unit) { return unit.back() % 5 != 0; }

std::map<std::string, Books::Unit> Books::units(const Stock& stock) {
  std::map<std::string, Unit> all;
  for (const auto& [account, times] : stock.accounts) {
    if (account != kShared) {
      all[account].applied = times;
    }
  }
  for (const std::string& receipt : stock.receipts) {
    const std::string id = receipt.substr(0, receipt.find('/'));
    Unit& unit = all[unit_of(id)];
    ++unit.receipts;
    unit.runs.insert(receipt);
    if (!truth_.removed(id)) {
      violation(receipt + " was emitted although " + id + " is not done");
    }
  }
  for (const auto& [id, sent] : letters_) {
    if (truth_.removed(id)) {
      all[unit_of(id)].removed.push_back(id);
    }
  }
  return all;
}

void Books::check_unit(const std::string& name, const Unit& unit, const Stock& stock) {
  if (unit.applied > 1) {
    violation("the effects of " + name + " were applied " + std::to_string(unit.applied) + " times");
  }
  if (unit.applied != unit.receipts) {
    violation(name + " was applied " + std::to_string(unit.applied) + " times and has " +
              std::to_string(unit.receipts) + " receipts");
  }
  // A unit is either a key or a message, which may be its own key.
  const bool keyed =
      rules_.keys && (rules_.keys->kind == config::IdempotencyConfig::Kind::message || !letters_.contains(name));
  const bool done = stock.keys.contains(name);
  if (keyed && has_effects(name) && done != (unit.applied > 0)) {
    violation("the key of " + name + (done ? " is done without its effects" : " is not done although its effects are"));
  }
  const bool given_up = std::any_of(unit.removed.begin(), unit.removed.end(), [&](const std::string& id) {
    return discarded_.contains(id) || truth_.removed_by_operator(id);
  });
  if (!unit.removed.empty() && unit.applied == 0 && has_effects(name) && !given_up && !rules_.discards) {
    violation(unit.removed.front() + " is done without the effects of " + name);
  }
  for (const std::string& result : results_[name]) {
    if (!unit.runs.contains(result)) {
      violation("a duplicate saw what " + result + " gave back, which was never committed");
    }
  }
}

void Books::check(const Stock& stock) {
  for (const auto& [key, owner] : stock.marks) {
    violation("key " + key + " is still marked for " + owner + ", which nobody holds");
  }
  std::int64_t all = 0;
  for (const auto& [name, unit] : units(stock)) {
    check_unit(name, unit, stock);
    all += unit.applied;
  }
  effects_ = static_cast<std::uint64_t>(all);
  const auto shared = stock.accounts.find(kShared);
  if (shared != stock.accounts.end() && shared->second != all) {
    violation("the account of all was added to " + std::to_string(shared->second) + " times, those of each " +
              std::to_string(all) + " times");
  }
}

}  // namespace sluice::simulation
