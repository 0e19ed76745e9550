#pragma once

/// For authors: runs a handler in a test, through the same C table that the host uses, on time that only the test
/// moves. Header-only; works with any test framework or none.
///
///     sluice::testing::HandlerTest greeter(sluice::testing::handler<Greeter>(), {{"greeting", "hi"}});
///     const auto result = greeter.handle({.body = "world"});
///     assert(result.status == SLUICE_DONE && greeter.logged("hi, world"));
///
/// `handle` works on one message, whatever kind the handler is of; `handle_batch` on several; `begin` and `advance` are
/// for asynchronous handlers, whose timers run on the test's time too.

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sluice/abi.h"
#include "sluice/async.h"
#include "sluice/batch.h"
#include "sluice/detail/around_pass.hpp"
#include "sluice/detail/report.hpp"
#include "sluice/detail/staging.hpp"
#include "sluice/detail/test_kit.hpp"
#include "sluice/detail/test_metrics.hpp"
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
/// the handler: `wait_for_stop(5s)` and `co_await sleep(5s)` take no time, and it is five seconds later.
///
/// Used by one thread; threads that the handler starts may log, wait and complete meanwhile.
class HandlerTest {
 public:
  explicit HandlerTest(const sluice_handler& handler, const OptionMap& options = {}, std::string job = "test",
                       Store store = Store::sqlite)
      : handler_(handler), job_(std::move(job)), store_{sizeof(sluice_effects_host), static_cast<sluice_store>(store)} {
    host_.job = detail::borrow(job_);
    instance_.emplace(handler, options, host_);
  }
  ~HandlerTest() {
    // What is at work is asked to stop, as a host that drains asks.
    stop_after(std::chrono::nanoseconds::zero());
    call_timers(kNever);
    instance_.reset();
  }
  HandlerTest(const HandlerTest&) = delete;
  HandlerTest& operator=(const HandlerTest&) = delete;

  /// False when the host would not start the job; `errors` says why: wrong options, or the constructor's exception.
  bool created() const { return instance_->created(); }
  const std::vector<std::string>& errors() const { return instance_->errors(); }

  // The attempts to come.
  void set_timeout(std::chrono::nanoseconds timeout) { timeout_ = timeout; }
  /// The host asks to stop when the handler has waited this long; zero: from the start.
  void stop_after(std::chrono::nanoseconds time) {
    const std::lock_guard lock(mutex_);
    stop_after_ = time;
  }
  /// The message is no longer ours: the stop is requested, `extend` fails, and nothing is committed.
  void lose_lease() {
    const std::lock_guard lock(mutex_);
    lease_lost_ = true;
    stop_after_ = std::chrono::nanoseconds::zero();
  }
  /// What the job's queue lies in; SQLite unless it is said. A handler that asks for it when it is made has it from the
  /// constructor.
  void set_store(Store store) { store_.store = static_cast<sluice_store>(store); }
  /// The job keeps idempotency keys, which costs a transaction one action.
  void set_keeps_keys(bool keeps) { keeps_keys_ = keeps; }
  /// The message is a duplicate, and the first one's handler gave this back.
  void set_first_result(std::optional<std::string> result) {
    first_result_ = result ? std::make_shared<const std::string>(*std::move(result)) : nullptr;
  }
  /// The host is older than effects.
  void without_effects() { set_feature(SLUICE_EFFECTS_1, nullptr); }
  /// From now on the store refuses the write of this label (or by its number: "1" is the first), as when its condition
  /// fails; an empty label: no more.
  void refuse(std::string label, std::string why = "its condition failed") {
    refused_ = std::move(label);
    refused_why_ = std::move(why);
  }
  /// What an attempt before has stored. Each attempt stores its own for the next one of this object.
  void set_last_checkpoint(std::optional<std::string> bytes) {
    const std::lock_guard lock(mutex_);
    last_checkpoint_ = std::move(bytes).value_or(std::string());
  }
  /// From now on no checkpoint is stored, for this reason; an empty one: they are.
  void refuse_checkpoints(std::string why) { no_checkpoints_ = std::move(why); }
  /// The host is older than checkpoints.
  void without_checkpoints() { set_feature(SLUICE_CHECKPOINT_1, nullptr); }
  /// A counter's or a gauge's value, or how much a histogram has observed; 0 where nothing was said to these labels.
  /// Throws when the handler has made no metric of that name: `run.metric("parts_total", {{"colour", "red"}})`.
  double metric(std::string_view name, Labels labels = {}) const { return metrics_.value(name, labels); }
  /// What a histogram has observed, in its order.
  std::vector<double> observed(std::string_view name, Labels labels = {}) const {
    return metrics_.observed(name, labels);
  }
  /// From now on a handler that goes around others goes around this one, within those before. Throws where the host
  /// would not start the job: `run.around<Decrypt>({{"key", "k"}})`.
  template <typename A>
  void around(const OptionMap& options = {}) {
    around(testing::handler<A>(), options);
  }
  void around(const sluice_handler& handler, const OptionMap& options = {}) {
    arounds_.push_back(detail::make_around(handler, options, host_));
  }
  /// Answers `extension(id)` of host and context, in place of the kit's own where it has one.
  void set_feature(std::string id, const void* feature) { features_[std::move(id)] = feature; }

  /// Works on one message. An asynchronous handler is given its time, and five seconds of the machine's for other
  /// threads to complete, before a stop comes that it waits for with `on_stop`; a message that is not completed then is
  /// a fault, and stays at work.
  Result handle(const TestMessage& message);
  /// Works on several in one call of a batch handler; a result for each. Throws for a handler of another kind.
  std::vector<Result> handle_batch(const std::vector<TestMessage>& messages);

  // Asynchronous handlers.
  /// Begins with a message. Throws for a handler of another kind.
  sluice_token begin(const TestMessage& message);
  /// Lets time pass: timers are called as it comes to them, on this thread.
  void advance(std::chrono::nanoseconds time) {
    const std::chrono::nanoseconds until = sum(now(), time);
    call_timers(until);
    const std::lock_guard lock(mutex_);
    elapsed_ = std::max(elapsed_, until);
  }
  /// What became of a message; nothing while it is at work.
  std::optional<Result> result(sluice_token token) const {
    const std::lock_guard lock(mutex_);
    const auto found = results_.find(token);
    return found == results_.end() ? std::nullopt : std::optional(found->second);
  }

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
  static constexpr std::chrono::seconds kPatience{5};

  /// One message at work. What the handler is given points into it.
  struct Attempt {
    Attempt(HandlerTest& of, const TestMessage& its_message) : test(of), message(its_message) {
      for (const auto& [name, value] : message.attributes) {
        attributes.push_back({detail::borrow(name), detail::borrow(value)});
      }
      raw = {sizeof(sluice_message),
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
    }
    Attempt(const Attempt&) = delete;
    Attempt& operator=(const Attempt&) = delete;

    /// Null: none.
    void report(const sluice_outcome* outcome) {
      reported = outcome != nullptr;
      if (!reported) {
        return;
      }
      const bool known = outcome->status >= SLUICE_DONE && outcome->status <= SLUICE_FAULT;
      result.status = known ? outcome->status : SLUICE_FAULT;
      result.delay = std::chrono::nanoseconds(known ? outcome->delay : -1);
      result.reason = known ? std::string(detail::view(outcome->reason).substr(0, kReasonLimit))
                            : "reported the unknown status " + std::to_string(outcome->status);
    }
    /// What was reported last; a fault when that is nothing.
    void take_outcome() {
      if (!take_report()) {
        fail("reported no outcome", detail::Breach::no_outcome);
      }
    }

    // As detail::AroundPass asks for it.
    template <typename Body>
    bool guarded(Body body) {
      return detail::guard(body, [this](std::string_view why) { fail(why, detail::Breach::exception); });
    }
    bool take_report() {
      const bool fresh = std::exchange(reported, false);
      if (fresh) {
        settle_report(*this);
      }
      return fresh;
    }
    void fail(std::string_view why, detail::Breach) {
      result = {.reason = std::string(why), .effects = std::move(result.effects)};
      reported = false;
      settle_report(*this);
    }
    const Result& outcome() const { return result; }
    static sluice_outcome raw_of(const Result& so_far) {
      return {sizeof(sluice_outcome), so_far.status, so_far.delay.count(), detail::borrow(so_far.reason)};
    }

    HandlerTest& test;
    const TestMessage message;
    std::vector<sluice_attribute> attributes;
    sluice_message raw{};
    sluice_context context = make_context(*this);
    sluice_async_context async{};
    detail::AroundPass<std::vector<detail::TestAround>, Attempt> around{test.arounds_, raw, context, *this};
    const detail::TestKeeper keeper{test.store_.store, test.keeps_keys_};
    detail::EffectStage<detail::TestKeeper> effects{keeper, test.first_result_};
    const std::string first_checkpoint = test.last_checkpoint();
    std::vector<StoredCheckpoint> stored;
    detail::AttemptCheckpoints<detail::TestKeeper> checkpoints{
        [this](std::string_view bytes, const std::shared_ptr<const StagedEffects>& staged) {
          return test.store_checkpoint(*this, bytes, staged == nullptr ? StagedEffects() : *staged);
        },
        first_checkpoint, effects};
    bool reported = false;  ///< since that was asked last
    Result result;
    // Guarded by the test's mutex.
    std::chrono::nanoseconds began{};
    std::chrono::nanoseconds deadline = kNever;
  };
  struct Timer {
    sluice_token token;
    std::chrono::nanoseconds wanted;
    void (*call)(void*);
    void* data;
  };

  static HandlerTest& of(const sluice_host* host) { return *static_cast<HandlerTest*>(host->host); }
  static HandlerTest& of(const sluice_async_host* async) { return *static_cast<HandlerTest*>(async->host); }
  static Attempt& of(const sluice_context* context) { return *static_cast<Attempt*>(context->host); }

  void write(sluice_log_level level, sluice_string text, const std::string& message_id) {
    const std::lock_guard lock(mutex_);
    log_.push_back({level, std::string(detail::view(text)), message_id});
  }
  /// What the test has set for an id, or else the kit's own.
  const void* feature(std::string_view id, const void* own) const {
    const auto found = features_.find(id);
    return found != features_.end() ? found->second : own;
  }
  const void* context_feature(const Attempt& attempt, std::string_view id) const {
    const void* const effects = id == SLUICE_EFFECTS_1 ? attempt.effects.table() : nullptr;
    return feature(id, id == SLUICE_CHECKPOINT_1 ? attempt.checkpoints.table() : effects);
  }
  const void* host_feature(std::string_view id) const {
    static constexpr sluice_metrics kMetrics{
        sizeof(sluice_metrics),
        0,
        [](const sluice_host* host, const sluice_metric_spec* spec) { return of(host).metrics_.metric(*spec); },
        &detail::TestMetrics::series,
        &detail::TestMetrics::add,
        &detail::TestMetrics::set,
        &detail::TestMetrics::observe};
    const std::pair<std::string_view, const void*> own[] = {
        {SLUICE_METRICS_1, &kMetrics}, {SLUICE_EFFECTS_1, &store_}, {SLUICE_ASYNC_1, &async_host_}, {id, nullptr}};
    return feature(
        id, std::find_if(std::begin(own), std::end(own), [id](const auto& one) { return one.first == id; })->second);
  }
  /// What was staged before an outcome that is not done is shown, and no more committed; nor is anything of what was
  /// refused.
  static void settle_report(Attempt& attempt) {
    Result& result = attempt.result;
    if (const std::string obstacle = attempt.effects.obstacle(); result.status == SLUICE_DONE && !obstacle.empty()) {
      result.status = SLUICE_FAULT;
      result.reason = obstacle;
    }
    if (result.status != SLUICE_DONE) {
      if (const auto staged = attempt.effects.take()) {
        result.effects = *staged;
      }
      attempt.effects.discard();
    }
  }
  /// What becomes of what was staged, as the host does it.
  void settle_effects(Attempt& attempt) const {
    Result& result = attempt.result;
    settle_report(attempt);
    if (result.status != SLUICE_DONE) {
      return;
    }
    const auto staged = attempt.effects.take();
    result.effects = staged == nullptr ? StagedEffects() : *staged;
    result.committed = !lease_is_lost();
    if (const StagedWrite* refused = refused_in(result.effects.writes)) {
      result.committed = false;
      result.status = refused->otherwise_reject ? SLUICE_REJECT : SLUICE_RETRY;
      result.reason = refusal_of(*refused);
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
  detail::CheckpointAnswer store_checkpoint(Attempt& attempt, std::string_view bytes, StagedEffects staged) const {
    if (lease_is_lost()) {
      return {detail::kLostCheckpoint};
    }
    if (const StagedWrite* refused = refused_in(staged.writes)) {
      return {"the checkpoint is refused: " + refusal_of(*refused), refused->otherwise_reject};
    }
    if (no_checkpoints_.empty()) {
      attempt.stored.push_back({std::string(bytes), std::move(staged)});
    }
    return {no_checkpoints_};
  }
  static std::chrono::nanoseconds sum(std::chrono::nanoseconds a, std::chrono::nanoseconds b) {
    return b > kNever - a ? kNever : a + std::max(b, std::chrono::nanoseconds::zero());
  }
  std::chrono::nanoseconds now() const {
    const std::lock_guard lock(mutex_);
    return elapsed_;
  }
  std::string last_checkpoint() const {
    const std::lock_guard lock(mutex_);
    return last_checkpoint_;
  }
  bool lease_is_lost() const {
    const std::lock_guard lock(mutex_);
    return lease_lost_;
  }

  // With the lock.
  /// Time brings nothing: no timer, or only what waits for a stop that nobody has asked for.
  bool waits_for_others() const {
    return timers_.empty() ||
           (stop_after_ == kNever &&
            std::all_of(timers_.begin(), timers_.end(), [](const Timer& one) { return one.wanted == kNever; }));
  }
  // Of one attempt; with the lock.
  std::chrono::nanoseconds stops_at(const Attempt& attempt) const {
    return std::min(sum(attempt.began, stop_after_), attempt.deadline);
  }
  bool stopped(const Attempt& attempt) const { return elapsed_ >= stops_at(attempt); }

  // Of one attempt, without it.
  bool wait(const Attempt& attempt, std::chrono::nanoseconds timeout) {
    const std::lock_guard lock(mutex_);
    const std::chrono::nanoseconds stop = stops_at(attempt);
    if (timeout == kNever && stop == kNever) {
      throw std::logic_error("the handler waits for a stop that never comes: call stop_after or set_timeout");
    }
    elapsed_ = std::max(elapsed_, std::min(sum(elapsed_, timeout), stop));
    return stopped(attempt);
  }
  bool requested(const Attempt& attempt) const {
    const std::lock_guard lock(mutex_);
    return stopped(attempt);
  }
  std::chrono::nanoseconds left(const Attempt& attempt) const {
    const std::lock_guard lock(mutex_);
    if (lease_lost_) {
      return std::chrono::nanoseconds::zero();
    }
    return attempt.deadline == kNever ? kNever
                                      : std::max(attempt.deadline - elapsed_, std::chrono::nanoseconds::zero());
  }
  bool extend(Attempt& attempt, std::chrono::nanoseconds duration) {
    const std::lock_guard lock(mutex_);
    if (!lease_lost_) {
      attempt.deadline = sum(elapsed_, duration);
    }
    return !lease_lost_;
  }

  std::unique_ptr<Attempt> make_attempt(const TestMessage& message) {
    if (!created()) {
      throw std::logic_error("the handler was not created: " + errors().front());
    }
    auto attempt = std::make_unique<Attempt>(*this, message);
    const std::lock_guard lock(mutex_);
    attempt->began = elapsed_;
    attempt->deadline = sum(elapsed_, timeout_);
    return attempt;
  }
  Result end(Attempt& attempt) {
    attempt.around.leave();
    settle_effects(attempt);
    Result& result = attempt.result;
    result.checkpoints = std::move(attempt.stored);
    if (result.status == SLUICE_FAULT && attempt.checkpoints.rejects()) {
      result.status = SLUICE_REJECT;
    }
    const std::lock_guard lock(mutex_);
    last_checkpoint_ =
        result.status == SLUICE_DONE || result.status == SLUICE_DISCARD ? "" : attempt.checkpoints.last();
    attempt.result.elapsed = elapsed_ - attempt.began;
    return std::move(attempt.result);
  }
  /// Null for a token that is not at work.
  std::unique_ptr<Attempt> take_from_work(sluice_token token) {
    const std::lock_guard lock(mutex_);
    auto found = at_work_.extract(token);
    return found.empty() ? nullptr : std::move(found.mapped());
  }
  void finish(sluice_token token, Attempt& attempt) {
    Result result = end(attempt);
    const std::lock_guard lock(mutex_);
    results_.emplace(token, std::move(result));
    completed_.notify_all();
  }
  sluice_answer complete(sluice_token token, const sluice_outcome* outcome) {
    const std::unique_ptr<Attempt> attempt = take_from_work(token);
    if (attempt == nullptr) {
      return refuse(token, "completed a message that has ended");
    }
    attempt->report(outcome);
    attempt->take_outcome();
    finish(token, *attempt);
    return SLUICE_ACCEPTED;
  }
  sluice_answer add_timer(const Timer& timer) {
    const std::lock_guard lock(mutex_);
    if (at_work_.find(timer.token) == at_work_.end()) {
      return SLUICE_STALE;
    }
    timers_.push_back(timer);
    completed_.notify_all();
    return SLUICE_ACCEPTED;
  }
  /// The timer that is due first, and when; with the lock.
  std::optional<std::pair<std::chrono::nanoseconds, std::size_t>> first_timer() const {
    std::optional<std::pair<std::chrono::nanoseconds, std::size_t>> first;
    for (std::size_t i = 0; i < timers_.size(); ++i) {
      const auto found = at_work_.find(timers_[i].token);
      const std::chrono::nanoseconds due =
          found == at_work_.end() ? elapsed_ : std::min(timers_[i].wanted, stops_at(*found->second));
      if (!first || due < first->first) {
        first = {due, i};
      }
    }
    return first;
  }
  /// Calls what is due until then, as time comes to it.
  void call_timers(std::chrono::nanoseconds until) {
    while (true) {
      Timer due{};
      {
        const std::lock_guard lock(mutex_);
        const auto first = first_timer();
        if (!first || first->first > until) {
          return;
        }
        elapsed_ = std::max(elapsed_, first->first == kNever ? elapsed_ : first->first);
        due = timers_[first->second];
        timers_.erase(timers_.begin() + static_cast<std::ptrdiff_t>(first->second));
      }
      due.call(due.data);
    }
  }
  static sluice_context make_context(Attempt& attempt) {
    return {
        sizeof(sluice_context),
        0,
        &attempt,
        [](const sluice_context* context, const sluice_outcome* outcome) { of(context).report(outcome); },
        [](const sluice_context* context, sluice_log_level level, sluice_string text) {
          of(context).test.write(level, text, of(context).message.id);
        },
        [](const sluice_context* context) -> std::int32_t { return of(context).test.requested(of(context)) ? 1 : 0; },
        [](const sluice_context* context, std::int64_t timeout) -> std::int32_t {
          return of(context).test.wait(of(context), std::chrono::nanoseconds(timeout)) ? 1 : 0;
        },
        [](const sluice_context* context) -> std::int64_t { return of(context).test.left(of(context)).count(); },
        [](const sluice_context* context, std::int64_t duration) -> std::int32_t {
          return of(context).test.extend(of(context), std::chrono::nanoseconds(duration)) ? 0 : 1;
        },
        [](const sluice_context* context, const char* id) {
          return of(context).test.context_feature(of(context), id);
        }};
  }
  static sluice_async_host make_async_host(HandlerTest& test) {
    using Host = sluice_async_host;
    return {sizeof(Host),
            0,
            &test,
            [](const Host* async, sluice_token token, const sluice_outcome* outcome) {
              return of(async).complete(token, outcome);
            },
            [](const Host* async, sluice_token token, sluice_log_level level, sluice_string text) {
              const bool written = of(async).ask(token, false, [&](const sluice_context& context) {
                context.log(&context, level, text);
                return true;
              });
              if (!written) {
                of(async).refuse(token, "wrote a line to the log of a message that has ended");
              }
            },
            [](const Host* async, sluice_token token) {
              return of(async).ask(token, std::int32_t{1},
                                   [](const sluice_context& context) { return context.stop_requested(&context); });
            },
            [](const Host* async, sluice_token token) {
              return of(async).ask(token, std::int64_t{0},
                                   [](const sluice_context& context) { return context.time_left(&context); });
            },
            [](const Host* async, sluice_token token, std::int64_t duration) {
              return of(async).ask(token, std::int32_t{1},
                                   [&](const sluice_context& context) { return context.extend(&context, duration); });
            },
            [](const Host* async, sluice_token token, const char* id) {
              return of(async).ask(token, static_cast<const void*>(nullptr),
                                   [&](const sluice_context& context) { return context.extension(&context, id); });
            },
            [](const Host* async, sluice_token token, std::int64_t delay, void (*call)(void*), void* data) {
              HandlerTest& self = of(async);
              return self.add_timer({token, sum(self.now(), std::chrono::nanoseconds(delay)), call, data});
            }};
  }
  /// What `question` makes of the message's context, which does not end meanwhile; `otherwise` where it has.
  template <typename Answer, typename Ask>
  Answer ask(sluice_token token, Answer otherwise, Ask question) {
    const std::lock_guard lock(mutex_);
    const auto found = at_work_.find(token);
    return found == at_work_.end() ? otherwise : question(found->second->context);
  }
  sluice_answer refuse(sluice_token token, const std::string& what) {
    const bool known = result(token).has_value();
    const std::string text = "the handler " + what + (known ? ", completed before" : "");
    write(SLUICE_LOG_ERROR, detail::borrow(text), {});
    return known ? SLUICE_TWICE : SLUICE_STALE;
  }

  const sluice_handler& handler_;
  const std::string job_;
  detail::TestMetrics metrics_{[this](const std::string& text) { write(SLUICE_LOG_WARN, detail::borrow(text), {}); }};
  std::map<std::string, const void*, std::less<>> features_;
  std::chrono::nanoseconds timeout_ = std::chrono::seconds(60);
  std::optional<detail::TestInstance> instance_;
  sluice_host host_{
      sizeof(sluice_host),
      SLUICE_ABI_MINOR,
      this,
      {},
      [](const sluice_host* host, sluice_log_level level, sluice_string text) { of(host).write(level, text, {}); },
      [](const sluice_host* host, const char* id) { return of(host).host_feature(id); }};
  const sluice_async_host async_host_ = make_async_host(*this);
  sluice_effects_host store_;
  bool keeps_keys_ = false;
  std::shared_ptr<const std::string> first_result_;
  std::string refused_;
  std::string refused_why_;
  std::string no_checkpoints_;

  mutable std::recursive_mutex mutex_;  ///< whoever asks for a token calls what takes it too
  std::condition_variable_any completed_;
  // Guarded by mutex_.
  std::vector<LogLine> log_;
  std::string last_checkpoint_;  ///< empty: there is none
  bool lease_lost_ = false;
  std::chrono::nanoseconds elapsed_{};
  std::chrono::nanoseconds stop_after_ = kNever;
  sluice_token last_token_ = 0;
  std::map<sluice_token, std::unique_ptr<Attempt>> at_work_;
  std::map<sluice_token, Result> results_;
  std::vector<Timer> timers_;
  // Last, so that they end before what they may still log to.
  std::vector<detail::TestAround> arounds_;
};

inline Result HandlerTest::handle(const TestMessage& message) {
  if (detail::feature_of<sluice_async>(handler_, SLUICE_ASYNC_1) == nullptr) {
    const std::unique_ptr<Attempt> attempt = make_attempt(message);
    if (attempt->around.enter()) {
      handler_.handle(instance_->object(), &attempt->around.message(), &attempt->context);
      attempt->take_outcome();
    }
    return end(*attempt);
  }
  const sluice_token token = begin(message);
  while (true) {
    std::chrono::nanoseconds next{};
    {
      std::unique_lock lock(mutex_);
      if (waits_for_others() && results_.find(token) == results_.end()) {
        completed_.wait_for(lock, kPatience, [&] { return !waits_for_others() || results_.count(token) > 0; });
      }
      const auto first = first_timer();
      if (const auto found = results_.find(token); found != results_.end() && (!first || first->first > elapsed_)) {
        return found->second;
      }
      if (!first) {
        return {.reason = "the message was not completed, and nothing is waited for"};
      }
      next = first->first;
    }
    call_timers(next);
  }
}

inline std::vector<Result> HandlerTest::handle_batch(const std::vector<TestMessage>& messages) {
  const auto* batch = detail::feature_of<sluice_batch>(handler_, SLUICE_BATCH_1);
  if (batch == nullptr) {
    throw std::logic_error("the handler takes no batches");
  }
  std::vector<std::unique_ptr<Attempt>> attempts;
  std::vector<const sluice_message*> raw;
  std::vector<const sluice_context*> contexts;
  std::vector<Attempt*> entered;
  for (const TestMessage& message : messages) {
    attempts.push_back(make_attempt(message));
    Attempt& attempt = *attempts.back();
    if (attempt.around.enter()) {
      raw.push_back(&attempt.around.message());
      contexts.push_back(&attempt.context);
      entered.push_back(&attempt);
    }
  }
  if (!raw.empty()) {
    batch->handle(instance_->object(), raw.data(), contexts.data(), raw.size());
  }
  for (Attempt* const one : entered) {
    one->take_outcome();
  }
  std::vector<Result> results(attempts.size());
  for (std::size_t i = attempts.size(); i-- > 0;) {
    results[i] = end(*attempts[i]);
  }
  return results;
}

inline sluice_token HandlerTest::begin(const TestMessage& message) {
  const auto* async = detail::feature_of<sluice_async>(handler_, SLUICE_ASYNC_1);
  if (async == nullptr) {
    throw std::logic_error("the handler is not asynchronous");
  }
  std::unique_ptr<Attempt> made = make_attempt(message);
  Attempt& attempt = *made;
  sluice_token token = 0;
  {
    const std::lock_guard lock(mutex_);
    token = ++last_token_;
    attempt.async = {sizeof(sluice_async_context), 0, token, &async_host_, &attempt.context};
    at_work_.emplace(token, std::move(made));
  }
  if (attempt.around.enter()) {
    async->begin(instance_->object(), &attempt.around.message(), &attempt.async);
  } else {
    finish(token, *take_from_work(token));
  }
  return token;
}

}  // namespace sluice::testing
