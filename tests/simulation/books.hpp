#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "config/config.hpp"
#include "host/queue/effects.hpp"
#include "host/queue/message.hpp"
#include "host/queue/sender.hpp"
#include "host/queue/source.hpp"
#include "tests/simulation/truth.hpp"

namespace sluice::simulation {

/// A message as its producer sends it.
struct Letter {
  std::string id;
  std::string group{};
  std::string key{};
  std::string dedup_id{};
  int copies = 0;  ///< that were sent of it before
};

/// What was promised beyond delivery, and what became of it: effects once for each message or key, order within groups,
/// one message for each deduplication id in its window. What must not be goes to the Truth. Not thread-safe.
class Books {
 public:
  struct Rules {
    config::Order order = config::Order::none;
    bool hold = false;
    std::optional<config::IdempotencyConfig> keys{};
    Duration window{};         ///< of deduplication
    Duration off{};            ///< so far may the clock be wrong that the window goes by
    bool discards = false;     ///< messages may be removed that no handler was done with
    bool own_answers = false;  ///< the store knows its own transactions again
  };
  /// What lies in the store at the end.
  struct Stock {
    std::map<std::string, std::int64_t> accounts;
    std::vector<std::string> receipts;         ///< ids
    std::set<std::string> keys;                ///< that are done
    std::map<std::string, std::string> marks;  ///< keys in progress, with their messages
  };

  Books(const Rules& rules, Truth& truth) : rules_(rules), truth_(truth) {}

  void sending(const Letter& letter) { letters_.emplace(letter.id, letter); }
  /// It lies in the queue now. `sent_at`: in the order of time.
  void stored(const std::string& id, const std::string& sent_at, SteadyTime now);
  /// A send was answered with another message's id.
  void deduplicated(const Letter& letter, const std::string& first, SteadyTime now);
  /// The wall clock has jumped forward by so much, or back where it is negative.
  void jumped(Duration span);
  void started(const queue::Message& message);
  /// A handler is done: what it stages, which `effects` does not have yet. `first_result` is that of a duplicate.
  std::string run(const queue::Message& message);
  void discarded(const std::string& id) { discarded_.insert(id); }
  void saw_result(const queue::Message& message, const std::string& result);
  /// What a host was told.
  void told(Truth::Host host, const queue::Completion& completion, const queue::SettleResult& result);

  /// Every host has ended, and so long ago that no mark of theirs may hold.
  void check(const Stock& stock);
  /// One for all messages that are done once: the key, or the message's own id.
  std::string unit_of(const std::string& id) const;
  /// Whether it has effects at all.
  static bool has_effects(const std::string& unit);
  static constexpr const char* kShared = "all";

  /// How long the clock was set back in all.
  Duration set_back() const { return back_; }
  std::uint64_t effects() const { return effects_; }
  std::uint64_t duplicates() const { return duplicates_; }

 private:
  struct Place {
    std::string id;
    std::string sent_at;
  };
  struct Window {
    std::string first;
    SteadyTime at{};
    Duration jumps{};  ///< that the clock had made by then
  };
  /// What is known of one unit at the end.
  struct Unit {
    std::int64_t applied = 0;
    std::int64_t receipts = 0;
    std::vector<std::string> removed;  ///< of its messages
    std::set<std::string> runs;        ///< that have receipts
  };

  const Letter& letter(const std::string& id) const;
  std::string lane_of(const Letter& letter) const;
  bool over(const std::string& id) const;
  std::map<std::string, Unit> units(const Stock& stock);
  void check_unit(const std::string& name, const Unit& unit, const Stock& stock);
  void violation(const std::string& what) { truth_.violation(what); }

  const Rules rules_;
  Truth& truth_;
  std::map<std::string, Letter> letters_;
  std::map<std::string, std::vector<Place>> lanes_;  ///< by group, in the order of coming
  std::map<std::string, Window> windows_;            ///< by deduplication id: the last that was stored
  Duration forward_{};
  Duration back_{};
  bool has_jumped_ = false;
  std::set<std::string> discarded_;
  std::map<std::string, std::set<std::string>> results_;  ///< that duplicates saw, by unit
  std::uint64_t runs_ = 0;
  std::uint64_t effects_ = 0;
  std::uint64_t duplicates_ = 0;
};

}  // namespace sluice::simulation
