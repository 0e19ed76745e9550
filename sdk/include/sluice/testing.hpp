#pragma once

/// For authors: runs a handler in a test, through the same C table that the host uses, on time that only the test
/// moves. Header-only; works with any test framework or none.
///
///     sluice::testing::HandlerTest greeter(sluice::testing::handler<Greeter>(), {{"greeting", "hi"}});
///     const auto result = greeter.handle({.body = "world"});
///     assert(result.status == SLUICE_DONE && greeter.logged("hi, world"));

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sluice/abi.h"
#include "sluice/detail/test_kit.hpp"
#include "sluice/handler.hpp"

namespace sluice::testing {

/// The table entry of a handler class, as SLUICE_PLUGIN makes it.
template <typename H>
const sluice_handler& handler() {
  static constexpr sluice_handler entry = detail::make_handler<H>("handler");
  return entry;
}

/// A handler by its name, of a plugin whose source is compiled into the test: pass `sluice_plugin_v1`.
inline const sluice_handler& handler(const sluice_plugin& plugin, std::string_view name) {
  for (std::size_t i = 0; i < plugin.handler_count; ++i) {
    if (plugin.handlers[i]->name == name) {
      return *plugin.handlers[i];
    }
  }
  throw std::invalid_argument("the plugin has no handler \"" + std::string(name) + "\"");
}

/// The message to be handled. Name what matters: `{.body = "world", .attempt = 3}`.
struct TestMessage {
  std::string body = {};
  std::string id = "test-1";
  std::string queue = "test";
  std::string content_type = "text/plain";
  std::map<std::string, std::string> attributes = {};
  std::string group = {};
  std::uint32_t attempt = 1;
  std::uint32_t max_attempts = 5;
  std::chrono::sys_time<std::chrono::nanoseconds> sent_at = {};
};

/// What the host would have understood.
struct Result {
  sluice_status status = SLUICE_FAULT;
  std::chrono::nanoseconds delay{-1};           ///< negative: by the job's policy
  std::string reason{};                         ///< cut as the host cuts it
  std::chrono::nanoseconds elapsed{};           ///< how far the handler's waits moved the time
  StagedEffects effects{};                      ///< what it staged, whether or not that is committed
  bool committed = false;                       ///< the message ended as done, and its effects with it
  std::vector<StoredCheckpoint> checkpoints{};  ///< in their order
};

struct LogLine {
  sluice_log_level level = SLUICE_LOG_INFO;
  std::string text;
  std::string message_id;  ///< empty for lines of the instance
};

/// One instance of a handler and a host around it that consists of this object. Time stands still but for the waits of
/// the handler: `wait_for_stop(5s)` returns at once, five seconds later.
///
/// Used by one thread; threads that the handler starts may log and wait meanwhile.
class HandlerTest {
 public:
  explicit HandlerTest(const sluice_handler& handler, const OptionMap& options = {}, std::string job = "test",
                       Store store = Store::sqlite)
      : handler_(handler), job_(std::move(job)), store_(store) {
    host_.job = detail::borrow(job_);
    const detail::TestOptions bound(handler, options);
    errors_ = bound.errors();
    if (errors_.empty()) {
      const auto fail = [](void* sink, sluice_string why) {
        static_cast<HandlerTest*>(sink)->errors_.emplace_back(detail::view(why));
      };
      created_ = handler.create(&host_, bound.data(), bound.size(), &instance_, fail, this) == 0;
      if (!created_ && errors_.empty()) {
        errors_.emplace_back("the handler could not be created and did not say why");
      }
    }
  }
  ~HandlerTest() {
    if (created_) {
      handler_.destroy(instance_);
    }
  }
  HandlerTest(const HandlerTest&) = delete;
  HandlerTest& operator=(const HandlerTest&) = delete;

  /// False when the host would not start the job; `errors` says why: wrong options, or the constructor's exception.
  bool created() const { return created_; }
  const std::vector<std::string>& errors() const { return errors_; }

  // The attempts to come.
  void set_timeout(std::chrono::nanoseconds timeout) { timeout_ = timeout; }
  /// The host asks to stop when the handler has waited this long; zero: from the start.
  void stop_after(std::chrono::nanoseconds time) { stop_after_ = time; }
  /// The message is no longer ours: the stop is requested, and `extend` fails.
  void lose_lease() {
    lease_lost_ = true;
    stop_after(std::chrono::nanoseconds::zero());
  }
  /// What the job's queue lies in; SQLite unless it is said. A handler that asks for it when it is made has it from the
  /// constructor.
  void set_store(Store store) { store_ = store; }
  /// The job keeps idempotency keys, which costs a transaction one action.
  void set_keeps_keys(bool keeps) { keeps_keys_ = keeps; }
  /// The message is a duplicate, and the first one's handler gave this back.
  void set_first_result(std::optional<std::string> result) { first_result_ = std::move(result); }
  /// The host is older than effects.
  void without_effects() { has_effects_ = false; }
  /// What an attempt before has stored. Each attempt stores its own for the next one of this object.
  void set_last_checkpoint(std::optional<std::string> bytes) { last_checkpoint_ = std::move(bytes); }
  /// From now on no checkpoint is stored, for this reason; an empty one: they are.
  void refuse_checkpoints(std::string why) { no_checkpoints_ = std::move(why); }
  /// The host is older than checkpoints.
  void without_checkpoints() { has_checkpoints_ = false; }
  /// From now on the store refuses the write of this label (or by its number: "1" is the first), as when its condition
  /// fails; an empty label: no more.
  void refuse(std::string label, std::string why = "its condition failed") {
    refused_ = std::move(label);
    refused_why_ = std::move(why);
  }
  /// Answers `extension(id)` of host and context; everything else is unknown.
  void set_feature(std::string id, const void* feature) { features_[std::move(id)] = feature; }

  Result handle(const TestMessage& message);

  /// Everything logged so far.
  std::vector<LogLine> log() const {
    const std::lock_guard lock(mutex_);
    return log_;
  }
  /// True when a line contains this text.
  bool logged(std::string_view text) const {
    const std::vector<LogLine> lines = log();
    return std::any_of(lines.begin(), lines.end(),
                       [text](const LogLine& line) { return line.text.find(text) != std::string::npos; });
  }

 private:
  static constexpr std::size_t kReasonLimit = 4096;
  static constexpr std::chrono::nanoseconds kNever = std::chrono::nanoseconds::max();

  static HandlerTest& of(const sluice_host* host) { return *static_cast<HandlerTest*>(host->host); }
  static HandlerTest& of(const sluice_context* context) { return *static_cast<HandlerTest*>(context->host); }

  void write(sluice_log_level level, sluice_string text, const std::string& message_id) {
    const std::lock_guard lock(mutex_);
    log_.push_back({level, std::string(detail::view(text)), message_id});
  }
  const void* feature(const char* id, const void* effects) const {
    const auto found = features_.find(id);
    if (found != features_.end()) {
      return found->second;
    }
    return has_effects_ && std::string_view(id) == SLUICE_EFFECTS_1 ? effects : nullptr;
  }
  const void* context_feature(const char* id) const {
    const bool known = has_checkpoints_ && features_.count(id) == 0 && std::string_view(id) == SLUICE_CHECKPOINT_1;
    return known ? checkpoints_->table() : feature(id, effects_->table());
  }
  const void* host_feature(const char* id) {
    host_effects_.store = store_ == Store::dynamodb ? SLUICE_STORE_DYNAMODB
                          : store_ == Store::sqlite ? SLUICE_STORE_SQLITE
                                                    : SLUICE_STORE_NONE;
    return feature(id, &host_effects_);
  }
  /// What becomes of what was staged, as the host does it.
  void settle_effects() {
    result_.effects = effects_->staged();
    if (result_.status != SLUICE_DONE) {
      return;
    }
    if (!effects_->refusal().empty()) {
      result_.status = SLUICE_FAULT;
      result_.reason = "nothing can be committed, because an effect was refused: " + effects_->refusal();
      return;
    }
    result_.committed = true;
    if (const StagedWrite* refused = refused_in(result_.effects.writes)) {
      result_.committed = false;
      result_.status = refused->otherwise_reject ? SLUICE_REJECT : SLUICE_RETRY;
      result_.reason = refusal_of(*refused);
    }
  }
  /// The write that the store refuses; null: it takes all of them.
  const StagedWrite* refused_in(const std::vector<StagedWrite>& writes) const {
    for (std::size_t i = 0; i < writes.size() && !refused_.empty(); ++i) {
      if ((!writes[i].label.empty() && writes[i].label == refused_) || std::to_string(i + 1) == refused_) {
        return &writes[i];
      }
    }
    return nullptr;
  }
  std::string refusal_of(const StagedWrite& write) const {
    return (write.label.empty() ? "write " + refused_ : "write \"" + refused_ + "\"") + " was refused: " + refused_why_;
  }
  std::string checkpoint_refusal(const StagedEffects& effects) {
    if (lease_lost_) {
      return "the checkpoint is not stored: the message is no longer ours, and others may have it; return soon";
    }
    const StagedWrite* refused = refused_in(effects.writes);
    rejects_ = rejects_ || (refused != nullptr && refused->otherwise_reject);
    return refused != nullptr ? "the checkpoint is refused: " + refusal_of(*refused) : no_checkpoints_;
  }
  void take_report(const sluice_outcome& outcome) {
    result_.status = outcome.status;
    result_.delay = std::chrono::nanoseconds(outcome.delay);
    result_.reason = detail::view(outcome.reason).substr(0, kReasonLimit);
    if (outcome.status < SLUICE_DONE || outcome.status > SLUICE_FAULT) {
      result_ = {.reason = "reported the unknown status " + std::to_string(outcome.status)};
    }
  }
  bool stopped() const { return elapsed_ >= stop_after_ || elapsed_ >= deadline_; }
  static std::chrono::nanoseconds sum(std::chrono::nanoseconds a, std::chrono::nanoseconds b) {
    return b > kNever - a ? kNever : a + std::max(b, std::chrono::nanoseconds::zero());
  }

  bool wait(std::chrono::nanoseconds timeout) {
    const std::lock_guard lock(mutex_);
    const std::chrono::nanoseconds stop = std::min(stop_after_, deadline_);
    if (timeout == kNever && stop == kNever) {
      throw std::logic_error("the handler waits for a stop that never comes: call stop_after or set_timeout");
    }
    elapsed_ = std::max(elapsed_, std::min(sum(elapsed_, timeout), stop));
    return stopped();
  }
  bool requested() const {
    const std::lock_guard lock(mutex_);
    return stopped();
  }
  std::chrono::nanoseconds left() const {
    const std::lock_guard lock(mutex_);
    return deadline_ == kNever ? kNever : std::max(deadline_ - elapsed_, std::chrono::nanoseconds::zero());
  }
  bool extend(std::chrono::nanoseconds duration) {
    const std::lock_guard lock(mutex_);
    if (!lease_lost_) {
      deadline_ = sum(elapsed_, duration);
    }
    return !lease_lost_;
  }

  sluice_context make_context();

  const sluice_handler& handler_;
  const std::string job_;
  std::vector<std::string> errors_;
  std::map<std::string, const void*, std::less<>> features_;
  std::chrono::nanoseconds timeout_ = std::chrono::seconds(60);
  bool lease_lost_ = false;
  bool created_ = false;
  void* instance_ = nullptr;
  sluice_host host_{
      sizeof(sluice_host),
      SLUICE_ABI_MINOR,
      this,
      {},
      [](const sluice_host* host, sluice_log_level level, sluice_string text) { of(host).write(level, text, {}); },
      [](const sluice_host* host, const char* id) { return of(host).host_feature(id); }};
  Store store_ = Store::sqlite;
  bool keeps_keys_ = false;
  bool has_effects_ = true;
  std::optional<std::string> first_result_;
  std::string refused_;
  std::string refused_why_;
  sluice_effects_host host_effects_{sizeof(sluice_effects_host), SLUICE_STORE_SQLITE};
  std::optional<detail::TestEffects> effects_;
  bool has_checkpoints_ = true;
  std::optional<std::string> last_checkpoint_;
  std::string no_checkpoints_;
  bool rejects_ = false;  ///< a checkpoint was refused by an effect whose message is rejected then
  std::optional<detail::TestCheckpoints> checkpoints_;
  Result result_;
  std::string message_id_;

  mutable std::mutex mutex_;
  // Guarded by mutex_.
  std::vector<LogLine> log_;
  std::chrono::nanoseconds elapsed_{};
  std::chrono::nanoseconds deadline_ = kNever;
  std::chrono::nanoseconds stop_after_ = kNever;
};

inline sluice_context HandlerTest::make_context() {
  return {sizeof(sluice_context),
          0,
          this,
          [](const sluice_context* context, const sluice_outcome* outcome) { of(context).take_report(*outcome); },
          [](const sluice_context* context, sluice_log_level level, sluice_string text) {
            of(context).write(level, text, of(context).message_id_);
          },
          [](const sluice_context* context) -> std::int32_t { return of(context).requested() ? 1 : 0; },
          [](const sluice_context* context, std::int64_t timeout) -> std::int32_t {
            return of(context).wait(std::chrono::nanoseconds(timeout)) ? 1 : 0;
          },
          [](const sluice_context* context) -> std::int64_t { return of(context).left().count(); },
          [](const sluice_context* context, std::int64_t duration) -> std::int32_t {
            return of(context).extend(std::chrono::nanoseconds(duration)) ? 0 : 1;
          },
          [](const sluice_context* context, const char* id) { return of(context).context_feature(id); }};
}

inline Result HandlerTest::handle(const TestMessage& message) {
  if (!created_) {
    throw std::logic_error("the handler was not created: " + errors_.front());
  }
  std::vector<sluice_attribute> attributes;
  for (const auto& [name, value] : message.attributes) {
    attributes.push_back({detail::borrow(name), detail::borrow(value)});
  }
  const sluice_message raw{sizeof(sluice_message),
                           message.attempt,
                           message.max_attempts,
                           0,
                           detail::borrow(message.id),
                           detail::borrow(message.queue),
                           detail::borrow(message.body),
                           detail::borrow(message.content_type),
                           detail::borrow(message.group),
                           message.sent_at.time_since_epoch().count(),
                           attributes.data(),
                           attributes.size()};
  result_ = {.reason = "reported no outcome"};
  effects_.emplace(store_, keeps_keys_, first_result_);
  rejects_ = false;
  checkpoints_.emplace(*effects_, last_checkpoint_,
                       [this](const StagedEffects& effects) { return checkpoint_refusal(effects); });
  message_id_ = message.id;
  {
    const std::lock_guard lock(mutex_);
    elapsed_ = {};
    deadline_ = timeout_;
  }
  const sluice_context context = make_context();
  handler_.handle(instance_, &raw, &context);
  settle_effects();
  result_.checkpoints = checkpoints_->stored();
  last_checkpoint_ =
      result_.status == SLUICE_DONE || result_.status == SLUICE_DISCARD ? std::nullopt : checkpoints_->last();
  if (result_.status == SLUICE_FAULT && rejects_) {
    result_.status = SLUICE_REJECT;
  }
  const std::lock_guard lock(mutex_);
  result_.elapsed = elapsed_;
  return result_;
}

}  // namespace sluice::testing
