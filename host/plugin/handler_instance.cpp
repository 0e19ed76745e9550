#include "host/plugin/handler_instance.hpp"

#include <cstring>
#include <exception>

#include "base/assert.hpp"
#include "base/text/utf8.hpp"
#include "base/uuid.hpp"
#include "host/plugin/around.hpp"
#include "host/plugin/async_desk.hpp"
#include "host/plugin/metric_board.hpp"
#include "host/plugin/thrown_by.hpp"
#include "host/queue/moment.hpp"
#include "sluice/batch.hpp"
#include "sluice/health.h"

namespace sluice::plugin {
namespace {

using detail::borrow;
using detail::view;

static_assert(detail::EffectLimits::kMostActions == queue::kMostEffects);
static_assert(detail::EffectLimits::kMostBytes == queue::kMostEffectBytes);
static_assert(SLUICE_CHECKPOINT_LIMIT == queue::kMostCheckpointBytes);

constexpr std::size_t kRefusalLimit = 1024;

std::string copy(sluice_string text) { return std::string(view(text)); }

queue::OnRefusal on_refusal(sluice_on_refusal what) {
  return what == SLUICE_REFUSED_REJECT ? queue::OnRefusal::reject : queue::OnRefusal::retry;
}

queue::SqlValue read_value(const sluice_sql_value& value) {
  switch (value.type) {
    case SLUICE_SQL_INTEGER:
      return value.integer;
    case SLUICE_SQL_REAL:
      return value.real;
    case SLUICE_SQL_TEXT:
      return copy(value.bytes);
    case SLUICE_SQL_BLOB:
      return queue::SqlBlob{copy(value.bytes)};
    default:
      return std::monostate();
  }
}

/// What a store makes of a checkpoint; `store` may be null.
detail::CheckpointAnswer store_checkpoint(CheckpointStore* store, std::string_view bytes,
                                          std::shared_ptr<const queue::Effects> effects) {
  using queue::SettleStatus;
  if (store == nullptr) {
    return {"nothing stores a checkpoint here"};
  }
  const queue::SettleResult result = store->checkpoint(bytes, std::move(effects));
  const auto words = [&result](const char* what) { return EffectRules::words(what + result.error.message()); };
  switch (result.status) {
    case SettleStatus::applied:
      return {};
    case SettleStatus::lost:
      return {detail::kLostCheckpoint};
    case SettleStatus::refused:
      return {words("the checkpoint is refused: "), result.reject};
    case SettleStatus::failed:
      break;
  }
  const ErrorCode code = result.error.code();
  return {words("the checkpoint may not be stored: "), false,
          code == ErrorCode::unknown_outcome || code == ErrorCode::timeout};
}

/// A fault with this text as its reason.
Outcome make_fault(std::string_view text, Breach breach) {
  return {OutcomeStatus::fault, std::nullopt, clean_utf8(text, kReasonLimit), nullptr, breach};
}

/// A worker keeps room for this many attributes from message to message.
constexpr std::size_t kKeptAttributes = 256;

bool is_id(const char* id, const char* known) { return id != nullptr && std::strcmp(id, known) == 0; }

/// What the calls of one instance have in common.
struct CallSetting {
  std::string job;
  HandlerSurroundings surroundings;
};

/// What a handler has of its context beyond log, time and outcome. Made once it asks: most do not, and thousands of
/// messages may be at work.
struct CallFeatures : boost::noncopyable {
  CallFeatures(const EffectRules& rules, const queue::Message& message, const Attempt& attempt)
      : effects(rules, attempt.first_result()),
        checkpoints(
            [store = attempt.checkpoints()](std::string_view bytes, std::shared_ptr<const queue::Effects> staged) {
              return store_checkpoint(store, bytes, std::move(staged));
            },
            message.checkpoint, effects) {}

  StagedEffects effects;
  AttemptCheckpoints checkpoints;
};

/// One call of a handler's `handle`: the C context it is given, and what it reports. Lives on the worker's stack for
/// that long; what the context offers is as thread-safe as abi.h says.
class Call : boost::noncopyable {
 public:
  Call(const CallSetting& setting, const queue::Message& message, Attempt& attempt)
      : setting_(setting),
        message_(message),
        attempt_(attempt),
        context_{sizeof(sluice_context), 0,          this,    &report,   &log, &stop_requested,
                 &wait_for_stop,         &time_left, &extend, &extension} {}
  ~Call() { delete features(); }

  const sluice_context* context() const { return &context_; }
  Attempt& attempt() const { return attempt_; }

  // As detail::AroundPass asks for it.
  /// False: it threw.
  template <typename Body>
  bool guarded(Body body) {
    const std::optional<std::string> thrown = thrown_by(body);
    if (thrown) {
      fail(*thrown, Breach::exception);
    }
    return !thrown;
  }
  bool take_report() {
    if (!std::exchange(reported_, false)) {
      return false;
    }
    if (outcome_.status == OutcomeStatus::done) {
      look_for_obstacles();
    } else {
      drop_effects("its outcome is not done");
    }
    return true;
  }
  /// A fault, such as what the handler threw.
  void fail(std::string_view why, Breach breach) {
    drop_effects("the handler failed");
    outcome_ = make_fault(why, breach);
    reported_ = false;
  }
  const Outcome& outcome() const { return outcome_; }
  static sluice_outcome raw_of(const Outcome& outcome) {
    return {sizeof(sluice_outcome), static_cast<sluice_status>(outcome.status),
            outcome.delay ? outcome.delay->count() : -1, borrow(outcome.reason)};
  }

  /// The same where there is no memory for words.
  void fail_without_words() noexcept { outcome_ = Outcome{}; }

  /// What the handler has reported last; a fault when that is nothing, or when something that it staged was refused.
  void take_outcome() {
    if (!take_report()) {
      fail("the handler returned without an outcome: a defect of the plugin", Breach::no_outcome);
    }
  }
  /// As the handler's last report.
  void take_outcome(const sluice_outcome* reported) {
    report(&context_, reported);
    take_outcome();
  }
  /// What the call has come to, with what was staged. Once.
  Outcome end() {
    if (outcome_.status == OutcomeStatus::done) {
      look_for_obstacles();
    }
    CallFeatures* const used = features();
    if (used != nullptr && outcome_.status == OutcomeStatus::done) {
      outcome_.effects = used->effects.take();
    } else if (used != nullptr && outcome_.status == OutcomeStatus::fault && used->checkpoints.rejects()) {
      outcome_.status = OutcomeStatus::reject;  // as when the same effect is refused with the message's end
    }
    return std::move(outcome_);
  }

 private:
  /// A fault when something of it was refused, or nobody knows what a checkpoint has committed.
  void look_for_obstacles() {
    const CallFeatures* const used = features();
    const std::string obstacle = used != nullptr ? used->effects.obstacle() : std::string();
    if (!obstacle.empty()) {
      fail(obstacle, Breach::none);
    }
  }
  void drop_effects(const char* why) {
    CallFeatures* const used = features();
    if (used == nullptr) {
      return;
    }
    if (const std::size_t count = used->effects.count(); count > 0) {
      const std::string text = std::to_string(count) + " staged effects are dropped: " + why;
      write_log(setting_.surroundings.log, SLUICE_LOG_DEBUG, setting_.job, message_.id, borrow(text));
    }
    used->effects.discard();
  }

  /// Null: it has asked for none.
  CallFeatures* features() const { return features_.load(std::memory_order_acquire); }
  /// The first of several threads that ask at once makes them.
  CallFeatures& make_features() {
    CallFeatures* used = features();
    if (used == nullptr) {
      auto made = std::make_unique<CallFeatures>(setting_.surroundings.effects, message_, attempt_);
      if (features_.compare_exchange_strong(used, made.get(), std::memory_order_acq_rel)) {
        used = made.release();
      }
    }
    return *used;
  }

  static Call& of(const sluice_context* context) { return *static_cast<Call*>(context->host); }
  static void report(const sluice_context* context, const sluice_outcome* outcome) noexcept {
    Call& call = of(context);
    call.reported_ = outcome != nullptr;
    try {
      call.outcome_ = outcome != nullptr ? read_outcome(*outcome) : Outcome{};
    } catch (const std::exception&) {
      call.outcome_ = Outcome{};  // No memory for the reason: a fault without one.
    }
  }
  static void log(const sluice_context* context, sluice_log_level level, sluice_string text) noexcept {
    const Call& call = of(context);
    write_log(call.setting_.surroundings.log, level, call.setting_.job, call.message_.id, text);
  }
  static std::int32_t stop_requested(const sluice_context* context) noexcept {
    return of(context).attempt_.stop_requested() ? 1 : 0;
  }
  static std::int32_t wait_for_stop(const sluice_context* context, std::int64_t timeout) noexcept {
    return of(context).attempt_.wait_for_stop(Duration(timeout)) ? 1 : 0;
  }
  static std::int64_t time_left(const sluice_context* context) noexcept {
    return of(context).attempt_.time_left().count();
  }
  static std::int32_t extend(const sluice_context* context, std::int64_t duration) noexcept {
    return of(context).attempt_.extend(Duration(duration)) ? 0 : 1;
  }
  static const void* extension(const sluice_context* context, const char* id) noexcept {
    const bool checkpoints = is_id(id, SLUICE_CHECKPOINT_1);
    const bool effects = is_id(id, SLUICE_EFFECTS_1) && of(context).setting_.surroundings.effects.random != nullptr;
    if (!checkpoints && !effects) {
      return nullptr;
    }
    try {
      CallFeatures& used = of(context).make_features();
      return checkpoints ? static_cast<const void*>(used.checkpoints.table()) : used.effects.table();
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
  }

  // Fixed after construction.
  const CallSetting& setting_;
  const queue::Message& message_;
  Attempt& attempt_;
  sluice_context context_;
  // Made by whichever of the handler's threads asks first.
  std::atomic<CallFeatures*> features_{nullptr};
  // Touched only by the worker.
  bool reported_ = false;
  Outcome outcome_;
};

using AroundPass = detail::AroundPass<AroundChain, Call>;

const sluice_batch* batch_of(const sluice_handler& handler) {
  const auto* batch = feature_of<sluice_batch>(handler, SLUICE_BATCH_1);
  return batch != nullptr && batch->handle != nullptr ? batch : nullptr;
}

const sluice_async* async_of(const sluice_handler& handler) {
  const auto* async = feature_of<sluice_async>(handler, SLUICE_ASYNC_1);
  return async != nullptr && async->begin != nullptr ? async : nullptr;
}

/// Adds the attributes of a message to what the C message points into.
void add_attributes(const queue::Message& message, std::vector<sluice_attribute>& attributes) {
  for (const auto& [name, value] : message.attributes) {
    attributes.push_back({borrow(name), borrow(value)});
  }
}

sluice_message make_message(const Work& work, const sluice_attribute* attributes) {
  const queue::Message& message = work.message;
  return {sizeof(sluice_message),
          message.attempt,
          work.max_attempts,
          0,
          borrow(message.id),
          borrow(work.queue),
          borrow(message.body),
          borrow(message.content_type),
          borrow(message.group),
          message.sent_at.time_since_epoch().count(),
          attributes,
          message.attributes.size()};
}

/// One message of an asynchronous handler, from `begin` to its completion, which deletes it.
class AsyncCall final : public DeskEntry {
 public:
  /// `chain` outlives it.
  AsyncCall(const CallSetting& setting, const AroundChain& chain, const Work& work, Completer& completer)
      : completer_(completer),
        attributes_(attributes_of(work.message)),
        message_(make_message(work, attributes_.data())),
        call_(setting, work.message, work.attempt),
        around_(chain, message_, *call_.context(), call_) {}

  /// True: the handler is to begin. False: what goes around it has ended the message, and this is gone.
  static bool enter(std::unique_ptr<AsyncCall>& call) {
    const bool begins = call->around_.enter();
    if (!begins) {
      call.release()->finish();
    }
    return begins;
  }
  /// Until the token has been completed.
  const sluice_message* message() const { return &around_.message(); }
  const sluice_async_context* use(sluice_token token) {
    async_ = {sizeof(sluice_async_context), 0, token, &AsyncDesk::table(), call_.context()};
    return &async_;
  }

  const sluice_context& context() const override { return *call_.context(); }
  Attempt& attempt() override { return call_.attempt(); }
  std::string_view message_id() const override { return view(message_.id); }
  void end(const sluice_outcome* outcome, Breach breach) noexcept override {
    try {
      breach == Breach::none ? call_.take_outcome(outcome) : call_.fail(view(outcome->reason), breach);
    } catch (const std::exception&) {
      call_.fail_without_words();
    }
    finish();
  }

 private:
  static std::vector<sluice_attribute> attributes_of(const queue::Message& message) {
    std::vector<sluice_attribute> attributes;
    attributes.reserve(message.attributes.size());
    add_attributes(message, attributes);
    return attributes;
  }
  void finish() noexcept {
    Outcome ended;
    try {
      around_.leave();
      ended = call_.end();
    } catch (const std::exception&) {
      ended = Outcome{};  // No memory for the reason: a fault without one.
    }
    Completer& completer = completer_;
    delete this;
    completer.completed(std::move(ended));
  }

  Completer& completer_;
  const std::vector<sluice_attribute> attributes_;
  const sluice_message message_;
  sluice_async_context async_{};
  Call call_;
  AroundPass around_;
};

/// Waits for the one message that was begun with.
class OneCompletion final : public Completer {
 public:
  void completed(Outcome&& outcome) noexcept override {
    const MutexLock lock(mutex_);
    outcome_ = std::move(outcome);
    came_.notify_all();
  }
  Outcome wait() {
    const MutexLock lock(mutex_);
    came_.wait_until(mutex_, SteadyTime::max(), [this]() SLUICE_REQUIRES(mutex_) { return outcome_.has_value(); });
    return *std::move(outcome_);
  }

 private:
  Mutex mutex_;
  Condition came_;
  std::optional<Outcome> outcome_ SLUICE_GUARDED_BY(mutex_);
};

class TableInstance final : public HandlerInstance {
 public:
  TableInstance(const sluice_handler& handler, std::string job, HandlerSurroundings surroundings)
      : handler_(handler),
        batch_(batch_of(handler)),
        async_(async_of(handler)),
        setting_{std::move(job), std::move(surroundings)} {
    host_.job = borrow(setting_.job);
    if (async_ != nullptr) {
      AsyncDesk::instance().join(user_);
    }
  }
  ~TableInstance() override {
    if (async_ != nullptr) {
      AsyncDesk::instance().leave(user_);
    }
    if (created_) {
      // What a destructor throws changes nothing any more.
      static_cast<void>(thrown_by([this] { handler_.destroy(instance_); }));
    }
  }

  /// What keeps the instance from being; nothing on success.
  std::optional<Error> start(const OptionValues& options) {
    const detail::BoundOptionTable table(options);
    std::string refusal;
    const auto fail = [](void* sink, sluice_string why) {
      *static_cast<std::string*>(sink) = clean_utf8(view(why), kReasonLimit);
    };
    std::optional<std::string> thrown = thrown_by(
        [&] { created_ = handler_.create(&host_, table.data(), table.size(), &instance_, fail, &refusal) == 0; });
    if (thrown) {
      return failed(ErrorCode::corrupt, "an exception left it: " + *thrown);
    }
    if (!created_ && refusal.empty()) {
      return failed(ErrorCode::corrupt, "it gave no reason, which is a defect of the plugin");
    }
    return created_ ? std::nullopt : std::optional(failed(ErrorCode::invalid, refusal));
  }

  void* object() const override { return instance_; }

  Outcome handle(const Work& work) override {
    if (async_ != nullptr) {
      OneCompletion completion;
      begin(work, completion);
      return completion.wait();
    }
    thread_local std::vector<sluice_attribute> attributes;
    attributes.clear();
    add_attributes(work.message, attributes);
    const sluice_message raw = make_message(work, attributes.data());
    Call call(setting_, work.message, work.attempt);
    AroundPass around(arounds_of(work), raw, *call.context(), call);
    if (around.enter() && call.guarded([&] { handler_.handle(instance_, &around.message(), call.context()); })) {
      call.take_outcome();
    }
    around.leave();
    if (attributes.capacity() > kKeptAttributes) {
      std::vector<sluice_attribute>().swap(attributes);
    }
    return call.end();
  }

  void handle_batch(std::span<const Work> batch, std::span<Outcome> outcomes) override {
    if (batch_ == nullptr) {
      HandlerInstance::handle_batch(batch, outcomes);
      return;
    }
    std::vector<sluice_attribute> attributes;
    std::size_t count = 0;
    for (const Work& work : batch) {
      count += work.message.attributes.size();
    }
    attributes.reserve(count);
    detail::Row<sluice_message> raw(batch.size());
    detail::Row<Call> calls(batch.size());
    detail::Row<AroundPass> arounds(batch.size());
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const sluice_attribute* const first = attributes.data() + attributes.size();
      add_attributes(batch[i].message, attributes);
      raw.add(make_message(batch[i], first));
      calls.add(setting_, batch[i].message, batch[i].attempt);
      arounds.add(arounds_of(batch[i]), raw[i], *calls[i].context(), calls[i]);
    }
    run_batch(calls, arounds, batch.size());
    // As they nest: who was entered last is left first.
    for (std::size_t i = batch.size(); i-- > 0;) {
      arounds[i].leave();
      outcomes[i] = calls[i].end();
    }
  }

  void begin(const Work& work, Completer& completer) override {
    if (async_ == nullptr) {
      HandlerInstance::begin(work, completer);
      return;
    }
    auto call = std::make_unique<AsyncCall>(setting_, arounds_of(work), work, completer);
    if (!AsyncCall::enter(call)) {
      return;
    }
    AsyncDesk& desk = AsyncDesk::instance();
    const sluice_token token = desk.open(user_, *call);
    const sluice_async_context* const context = call->use(token);
    const sluice_message* const message = call.release()->message();
    if (const auto thrown = thrown_by([&] { async_->begin(instance_, message, context); })) {
      const sluice_outcome fault{sizeof(sluice_outcome), SLUICE_FAULT, -1, borrow(*thrown)};
      desk.complete(token, &fault, Breach::exception);
    }
  }

 private:
  const AroundChain& arounds_of(const Work& work) const {
    return work.arounds != nullptr ? *work.arounds : setting_.surroundings.around;
  }
  /// Runs the handler over those that nothing around it has ended.
  void run_batch(detail::Row<Call>& calls, detail::Row<AroundPass>& arounds, std::size_t count) {
    std::vector<const sluice_message*> messages;
    std::vector<const sluice_context*> contexts;
    std::vector<std::size_t> open;
    messages.reserve(count);
    contexts.reserve(count);
    open.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
      if (arounds[i].enter()) {
        messages.push_back(&arounds[i].message());
        contexts.push_back(calls[i].context());
        open.push_back(i);
      }
    }
    if (open.empty()) {
      return;
    }
    const std::optional<std::string> thrown =
        thrown_by([&] { batch_->handle(instance_, messages.data(), contexts.data(), open.size()); });
    for (const std::size_t i : open) {
      thrown ? calls[i].fail(*thrown, Breach::exception) : calls[i].take_outcome();
    }
  }
  Error failed(ErrorCode code, const std::string& why) const {
    return {code, "the handler \"" + std::string(handler_.name) + "\" could not be created: " + why};
  }
  static const TableInstance& of(const sluice_host* host) { return *static_cast<const TableInstance*>(host->host); }
  static void log(const sluice_host* host, sluice_log_level level, sluice_string text) noexcept {
    const CallSetting& setting = of(host).setting_;
    write_log(setting.surroundings.log, level, setting.job, {}, text);
  }
  static void report_health(const sluice_host* host, sluice_string part, std::int32_t works,
                            sluice_string text) noexcept {
    of(host).setting_.surroundings.health->report(view(part), works != 0, view(text));
  }
  static sluice_metric* metric(const sluice_host* host, const sluice_metric_spec* spec) noexcept {
    return of(host).setting_.surroundings.metrics->metric(*spec);
  }
  static const void* extension(const sluice_host* host, const char* id) noexcept {
    const TableInstance& self = of(host);
    if (self.setting_.surroundings.metrics && is_id(id, SLUICE_METRICS_1)) {
      static const sluice_metrics metrics{
          sizeof(sluice_metrics), 0, &metric, &MetricBoard::series, &MetricBoard::add, &MetricBoard::set,
          &MetricBoard::observe};
      return &metrics;
    }
    if (self.setting_.surroundings.health && is_id(id, SLUICE_HEALTH_1)) {
      static const sluice_health health{sizeof(sluice_health), 0, &report_health};
      return &health;
    }
    if (is_id(id, SLUICE_ASYNC_1)) {
      return &AsyncDesk::table();
    }
    const bool effects = self.setting_.surroundings.effects.random != nullptr && is_id(id, SLUICE_EFFECTS_1);
    return effects ? &self.effects_ : nullptr;
  }

  // Fixed after construction.
  const sluice_handler& handler_;
  const sluice_batch* const batch_;  ///< null: it is of another kind
  const sluice_async* const async_;  ///< null: it is of another kind
  const CallSetting setting_;
  const DeskUser user_{setting_.job, setting_.surroundings.log};
  sluice_host host_{sizeof(sluice_host), SLUICE_ABI_MINOR, this, {}, &log, &extension};
  const sluice_effects_host effects_{sizeof(sluice_effects_host), setting_.surroundings.effects.store};
  // Fixed after start().
  bool created_ = false;
  void* instance_ = nullptr;
};

}  // namespace

void Attempt::request_stop(SteadyTime end) {
  // Under the lock, so that a waiter cannot miss it between its look and its sleep.
  const MutexLock lock(mutex_);
  end_.store(std::min(end_.load(), end.time_since_epoch().count()));
  stop_.store(true);
  for (AttemptWatcher* watcher = watchers_; watcher != nullptr; watcher = watcher->next_) {
    watcher->stop_requested(drain_end(), lost_.load());
  }
  wake();
}

void Attempt::watch(AttemptWatcher& watcher) {
  const MutexLock lock(mutex_);
  watcher.next_ = watchers_;
  watchers_ = &watcher;
  if (stop_.load()) {
    watcher.stop_requested(drain_end(), lost_.load());
  }
}

void Attempt::unwatch(AttemptWatcher& watcher) {
  const MutexLock lock(mutex_);
  AttemptWatcher** place = &watchers_;
  while (*place != nullptr && *place != &watcher) {
    place = &(*place)->next_;
  }
  if (*place != nullptr) {
    *place = watcher.next_;
  }
}

bool Attempt::wait_for_stop(Duration timeout) {
  // A thread sleeps on the machine's clock, whatever clock the attempt goes by.
  const SystemClock machine;
  const SteadyTime end = queue::until(machine.steady_now(), timeout);
  const MutexLock lock(mutex_);
  if (!stopped_) {
    stopped_ = std::make_unique<Condition>();
  }
  while (!stop_requested()) {
    const SteadyTime now = machine.steady_now();
    if (now >= end) {
      return false;
    }
    // The time-out may be moved meanwhile, so what woke us is looked at afresh.
    const SteadyTime::rep seen = deadline_.load();
    const SteadyTime wake = std::min(end, queue::until(now, time_left()));
    stopped_->wait_until(mutex_, wake, [this, seen] { return stop_.load() || deadline_.load() != seen; });
  }
  return true;
}

bool Attempt::extend(Duration duration) {
  const MutexLock lock(mutex_);
  if (lost_.load()) {
    return false;
  }
  const SteadyTime deadline = queue::until(clock_.steady_now(), std::max(duration, Duration::zero()));
  deadline_.store(deadline.time_since_epoch().count());
  for (AttemptWatcher* watcher = watchers_; watcher != nullptr; watcher = watcher->next_) {
    watcher->extended(duration);
  }
  wake();
  return true;
}

// Whatever the ABI has no name for was refused when it was staged.
static_assert(SLUICE_PRIORITY_CRITICAL - SLUICE_PRIORITY_LOW == static_cast<int>(queue::Priority::low));
static_assert(SLUICE_ITEM_CHECK - SLUICE_ITEM_PUT == static_cast<int>(queue::ItemAction::check));

void EffectRules::keep(const sluice_effect_message& from, Effects& staged) const {
  queue::EmittedMessage& emitted = staged.messages.emplace_back();
  emitted.queue = copy(from.queue);
  emitted.made_id = from.id.size == 0;
  queue::NewMessage& message = emitted.message;
  message.id = emitted.made_id ? make_uuid_v7(*random, clock->wall_now()) : copy(from.id);
  message.body = copy(from.body);
  if (from.content_type.size > 0) {
    message.content_type = copy(from.content_type);
  }
  for (std::size_t i = 0; i < from.attribute_count; ++i) {
    message.attributes.insert_or_assign(copy(from.attributes[i].name), copy(from.attributes[i].value));
  }
  message.group = copy(from.group);
  message.delay = Duration(from.delay);
  message.priority = static_cast<queue::Priority>(SLUICE_PRIORITY_CRITICAL - from.priority);
  message.dedup_id = copy(from.dedup_id);
  if (from.dedup_window > 0) {
    message.dedup_window = Duration(from.dedup_window);
  }
}

void EffectRules::keep(const sluice_effect_item& from, Effects& staged) const {
  queue::ItemWrite write{.action = static_cast<queue::ItemAction>(from.action - SLUICE_ITEM_PUT),
                         .table = copy(from.table),
                         .item = copy(from.item),
                         .update = copy(from.update),
                         .condition = copy(from.condition),
                         .names = {},
                         .values = copy(from.values)};
  for (std::size_t i = 0; i < from.name_count; ++i) {
    write.names.insert_or_assign(copy(from.names[i].name), copy(from.names[i].value));
  }
  staged.writes.push_back({std::move(write), copy(from.label), on_refusal(from.on_refusal)});
}

void EffectRules::keep(const sluice_effect_sql& from, Effects& staged) const {
  queue::EffectWrite& effect = staged.writes.emplace_back();
  effect.label = copy(from.label);
  effect.on_refusal = on_refusal(from.on_refusal);
  auto& write = effect.write.emplace<queue::SqlWrite>();
  write.statement = copy(from.statement);
  write.parameters.reserve(from.parameter_count);
  for (std::size_t i = 0; i < from.parameter_count; ++i) {
    write.parameters.push_back(read_value(from.parameters[i]));
  }
  if (from.rows >= 0) {
    write.rows = from.rows;
  }
}

void EffectRules::keep(sluice_string result, Effects& staged) const {
  staged.key = queue::KeyRecord{{}, {}, copy(result), {}};
}

std::string EffectRules::words(const std::string& refusal) { return clean_utf8(refusal, kRefusalLimit); }

Outcome read_outcome(const sluice_outcome& reported) {
  if (reported.struct_size < sizeof(sluice_outcome)) {
    return make_fault("the handler reported an outcome of " + std::to_string(reported.struct_size) +
                          " bytes, which is too short to be one: a defect of the plugin",
                      Breach::illegal_outcome);
  }
  if (!queue::core::is_reportable(reported.status)) {
    return make_fault(
        "the handler reported the unknown status " + std::to_string(reported.status) + ": a defect of the plugin",
        Breach::illegal_outcome);
  }
  Outcome outcome;
  outcome.status = static_cast<OutcomeStatus>(reported.status);
  const queue::core::OutcomeRule& rule = queue::core::rule_of(outcome.status);
  if (rule.takes_delay && (reported.delay >= 0 || rule.decision == queue::core::Decision::outcome)) {
    outcome.delay = std::clamp(Duration(reported.delay), Duration::zero(), kDelayLimit);
  }
  if (rule.takes_reason) {
    outcome.reason = clean_utf8(view(reported.reason), kReasonLimit);
  }
  return outcome;
}

void write_log(const HandlerLog& log, sluice_log_level level, std::string_view job, std::string_view message_id,
               sluice_string text) noexcept {
  if (!log) {
    return;
  }
  if (level < SLUICE_LOG_TRACE || level > SLUICE_LOG_ERROR) {
    level = SLUICE_LOG_INFO;
  }
  try {
    const std::string_view whole = view(text);
    if (whole.size() <= kLogTextLimit) {
      log(level, job, message_id, whole);
    } else {
      log(level, job, message_id,
          std::string(cut_utf8(whole, kLogTextLimit)) + "... (cut; it has " + std::to_string(whole.size()) + " bytes)");
    }
  } catch (...) {
    // There is nowhere left to say it.
  }
}

Result<std::unique_ptr<HandlerInstance>> HandlerInstance::create(HandlerSurroundings surroundings,
                                                                 const sluice_handler& handler, std::string job,
                                                                 const OptionValues& options) {
  auto instance = std::make_unique<TableInstance>(handler, std::move(job), std::move(surroundings));
  if (std::optional<Error> refusal = instance->start(options)) {
    return *std::move(refusal);
  }
  return std::unique_ptr<HandlerInstance>(std::move(instance));
}

bool is_concurrent(const sluice_handler& handler) { return (handler.flags & SLUICE_HANDLER_CONCURRENT) != 0; }

bool only_sends(const sluice_handler& handler) {
  const auto* effects = feature_of<sluice_effects_handler>(handler, SLUICE_EFFECTS_1);
  return effects != nullptr && effects->only_sends != 0;
}

HandlerKind kind_of(const sluice_handler& handler) {
  if (async_of(handler) != nullptr) {
    return HandlerKind::async;
  }
  return batch_of(handler) != nullptr ? HandlerKind::batch : HandlerKind::plain;
}

}  // namespace sluice::plugin
