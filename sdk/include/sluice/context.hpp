#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include "sluice/abi.h"
#include "sluice/checkpoint.h"
#include "sluice/checkpoint.hpp"
#include "sluice/effects.hpp"
#include "sluice/message.hpp"

namespace sluice {

/// One attempt at one message: its log, its time, its stop, and what is to be committed with its end. Valid until
/// `handle` returns. All but `extend`, effects and checkpoints may be called from any thread meanwhile.
class Context {
 public:
  Context(const sluice_context& context, const sluice_message& message) : context_(&context), message_(&message) {}
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  /// Write a line to the host's log, marked with job and message.
  void trace(std::string_view text) const { log(SLUICE_LOG_TRACE, text); }
  void debug(std::string_view text) const { log(SLUICE_LOG_DEBUG, text); }
  void info(std::string_view text) const { log(SLUICE_LOG_INFO, text); }
  void warn(std::string_view text) const { log(SLUICE_LOG_WARN, text); }
  void error(std::string_view text) const { log(SLUICE_LOG_ERROR, text); }
  void log(sluice_log_level level, std::string_view text) const {
    context_->log(context_, level, detail::borrow(text));
  }

  /// 1 at the first delivery.
  std::uint32_t attempt() const { return message_->attempt; }
  /// 0: there is no limit.
  std::uint32_t max_attempts() const { return message_->max_attempts; }

  /// Until the attempt times out: zero once it has, `nanoseconds::max()` without a limit. Once the host drains, no more
  /// than what is left of the drain; once the message is no longer ours, zero.
  std::chrono::nanoseconds time_left() const { return std::chrono::nanoseconds(context_->time_left(context_)); }
  /// The same as a time; `time_point::max()` without a limit.
  std::chrono::steady_clock::time_point deadline() const {
    const std::chrono::nanoseconds left = time_left();
    const std::chrono::steady_clock::time_point now = std::chrono::steady_clock::now();
    const auto never = std::chrono::steady_clock::time_point::max();
    return left < never - now ? now + std::chrono::duration_cast<std::chrono::steady_clock::duration>(left) : never;
  }

  /// True once the handler should finish: the host drains, the attempt has timed out, or the message is no longer ours.
  bool stop_requested() const { return context_->stop_requested(context_) != 0; }
  /// Waits for that, at most `timeout`; the way to sleep in a handler. Returns as stop_requested.
  bool wait_for_stop(std::chrono::nanoseconds timeout) const {
    return context_->wait_for_stop(context_, timeout.count()) != 0;
  }

  /// Moves the attempt's time-out to now + `duration`. (The message stays invisible as long as the handler works: the
  /// host sees to that by itself.) False when the message is no longer ours.
  bool extend(std::chrono::nanoseconds duration) { return context_->extend(context_, duration.count()) == 0; }

  // Effects: committed with the end of the message when `handle` returns `done()`, and dropped otherwise. Of the thread
  // that runs `handle`. The statement that stages one throws EffectError when it cannot be committed; see effects.hpp.

  /// A message to a queue of the same store.
  MessageEffect send(std::string_view queue, std::string_view body) { return {effects(), queue, body}; }
  /// Items of DynamoDB tables, where the queue lies in DynamoDB.
  PutEffect put(std::string_view table, const Item& item) { return {effects(), table, item}; }
  UpdateEffect update(std::string_view table, const Item& key) { return {effects(), table, key}; }
  DeleteEffect remove(std::string_view table, const Item& key) { return {effects(), table, key}; }
  CheckEffect check(std::string_view table, const Item& key) { return {effects(), table, key}; }
  /// A statement on the author's own tables in the embedded store's file, where the queue lies there. Parameters are
  /// integers, numbers, texts, blob(bytes), nullptr, and optionals of those.
  template <typename... Parameter>
  SqlEffect sql(std::string_view statement, const Parameter&... parameters) {
    return {effects(), statement, parameters...};
  }
  /// What `done().result(bytes)` does.
  void set_result(std::string_view bytes) {
    if (const char* refusal = effects().set_result(&effects(), detail::borrow(bytes))) {
      throw EffectError(refusal);
    }
  }
  /// Begins again with nothing staged.
  void drop_effects() { effects().clear(&effects()); }

  /// What can be staged; `none` also for a host that is older than effects.
  Store store() const {
    const auto* found = find_effects();
    return found == nullptr ? Store::none : detail::store_named(found->store);
  }
  /// Where the job runs duplicates (`on_duplicate = "run"`) and a message with this one's idempotency key was done
  /// before: what its handler gave back with `done().result(bytes)`. Valid until `handle` returns.
  std::optional<std::string_view> first_result() const {
    const auto* found = find_effects();
    sluice_string result{};
    return found != nullptr && found->first_result(found, &result) != 0 ? std::optional(detail::view(result))
                                                                        : std::nullopt;
  }

  // Checkpoints: progress that is stored with the message at once, for the attempt after this one. Of the thread that
  // runs `handle`. Each throws CheckpointError when nothing is stored; see checkpoint.hpp.

  /// Stores where the work stands, at most SLUICE_CHECKPOINT_LIMIT bytes; none take the checkpoint away. What is staged
  /// stays staged.
  void checkpoint(std::string_view bytes) { store_checkpoint(bytes, false); }
  /// The same, and commits what was staged so far with it, in one transaction. Staging goes on empty.
  void checkpoint_with_effects(std::string_view bytes) { store_checkpoint(bytes, true); }
  /// What was stored last, by an attempt before or by this one. Valid until the next checkpoint.
  std::optional<std::string_view> last_checkpoint() const {
    const auto* found = find_checkpoint();
    sluice_string bytes{};
    return found != nullptr && found->last(found, &bytes) != 0 ? std::optional(detail::view(bytes)) : std::nullopt;
  }

  /// A feature that belongs to one attempt, by its id; null when this host does not have it.
  template <typename Feature>
  const Feature* extension(const char* id) const {
    return static_cast<const Feature*>(context_->extension(context_, id));
  }

 protected:
  // What an AsyncContext takes along where it is moved.
  Context(Context&&) = default;
  Context& operator=(Context&&) = default;

 private:
  const sluice_checkpoint* find_checkpoint() const { return extension<sluice_checkpoint>(SLUICE_CHECKPOINT_1); }
  void store_checkpoint(std::string_view bytes, bool with_effects) {
    const auto* found = find_checkpoint();
    if (found == nullptr) {
      throw CheckpointError("this host has no sluice.checkpoint/1, so no progress can be stored: update the host");
    }
    if (const char* why = found->store(found, detail::borrow(bytes), with_effects ? 1 : 0)) {
      throw CheckpointError(why);
    }
  }
  const sluice_effects* find_effects() const { return extension<sluice_effects>(SLUICE_EFFECTS_1); }
  const sluice_effects& effects() const {
    const auto* found = find_effects();
    if (found == nullptr) {
      throw EffectError(
          "this host has no sluice.effects/1, so nothing can be committed with a message: update the host");
    }
    return *found;
  }

  const sluice_context* context_;
  const sluice_message* message_;
};

}  // namespace sluice
