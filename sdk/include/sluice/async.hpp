#pragma once

/// Handlers that begin with a message and end it later: <sluice/handler.hpp> includes this. Either with a callback,
///
///     void handle(const sluice::Message& message, sluice::AsyncContext context);
///
/// which keeps `context` and calls `context.complete(outcome)` once, from any thread; or as a coroutine,
///
///     sluice::Task<sluice::Outcome> handle(const sluice::Message& message, sluice::AsyncContext& context) {
///       const bool stops = co_await context.sleep(500ms);
///       const Reply reply = co_await sluice::callback<Reply>([&](auto done) { client.get(url, std::move(done)); });
///       co_return sluice::done();
///     }
///
/// One instance has as many messages at work as the job's `concurrency` says. `handle` is called by one thread, and
/// must not wait: whatever waits holds up all other messages. A coroutine goes on in the thread that wakes it: after
/// `sleep` one of the host's, after `callback` the one that has called back.
///
/// gcc 12.2, that of Debian 12, makes wrong code without a word of a coroutine with `co_await` in the condition of an
/// `if` or a `while` and no variable at the outermost level of its body: it never goes on. Put what is awaited into a
/// variable first: `const bool stops = co_await context.sleep(500ms);`.

#include <atomic>
#include <chrono>
#include <concepts>
#include <coroutine>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "sluice/abi.h"
#include "sluice/async.h"
#include "sluice/context.hpp"
#include "sluice/detail/report.hpp"
#include "sluice/message.hpp"
#include "sluice/outcome.hpp"

namespace sluice {

namespace detail {

/// Stands for the context of a message that has ended: nothing is logged, committed or waited for any more.
inline constexpr sluice_context kEndedContext{
    sizeof(sluice_context),
    0,
    nullptr,
    [](const sluice_context*, const sluice_outcome*) {},
    [](const sluice_context*, sluice_log_level, sluice_string) {},
    [](const sluice_context*) -> std::int32_t { return 1; },
    [](const sluice_context*, std::int64_t) -> std::int32_t { return 1; },
    [](const sluice_context*) -> std::int64_t { return 0; },
    [](const sluice_context*, std::int64_t) -> std::int32_t { return 1; },
    [](const sluice_context*, const char*) -> const void* { return nullptr; }};
inline constexpr sluice_message kEndedMessage{sizeof(sluice_message), 0, 0, 0, {}, {}, {}, {}, {}, 0, nullptr, 0};

/// The message that author's code is called for on this thread at the moment: what that throws is said by its caller. 0
/// once its context was dropped by something thrown.
inline thread_local sluice_token beginning = 0;

inline constexpr const char* kDropped =
    "the handler dropped its AsyncContext without completing the message: a defect of the plugin";

/// What was first thrown by what a coroutine has called later. Its message is ended by the coroutine alone, which may
/// sleep now, and whose frame holds what belongs to the message.
class LaterFault {
 public:
  /// False: the coroutine has ended the message.
  bool keep(std::string_view why) noexcept {
    const std::lock_guard lock(mutex_);
    if (!ended_ && !why_) {
      why_.emplace();
      try {
        *why_ = why;
      } catch (const std::exception&) {
        // No memory for the reason: a fault without one.
      }
    }
    return !ended_;
  }
  /// Once the message ends.
  std::optional<std::string> take() {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    return std::move(why_);
  }

 private:
  std::mutex mutex_;
  bool ended_ = false;
  std::optional<std::string> why_;
};

/// Runs `body` for a message that is at work; what it throws ends the message as a fault: at once, or, where `later` is
/// given, with its coroutine.
template <typename Body>
void or_end(const sluice_async_host& async, sluice_token token, Body body, LaterFault* later = nullptr) noexcept {
  const sluice_token before = std::exchange(beginning, token);
  guard(
      [&] {
        body();
        if (beginning != token) {  // It has caught what its context was dropped by.
          throw std::logic_error(kDropped);
        }
      },
      [&](std::string_view why) {
        // Whose context was dropped has no other end.
        if (later != nullptr && beginning == token && later->keep(why)) {
          return;
        }
        const sluice_outcome fault{sizeof(sluice_outcome), SLUICE_FAULT, Outcome::kByPolicy.count(), borrow(why)};
        async.complete(&async, token, &fault);
      });
  beginning = before;
}

/// What a message wants called later.
struct LaterCall {
  const sluice_async_host* async;
  sluice_token token;
  std::function<void()> call;
  std::shared_ptr<LaterFault> fault;  ///< null: no coroutine

  static void run(void* data) noexcept {
    const std::unique_ptr<LaterCall> later(static_cast<LaterCall*>(data));
    // What it holds goes with what it throws, and so does not end the message by itself.
    const auto run_call = [&later] {
      const std::function<void()> body = std::move(later->call);
      body();
    };
    or_end(*later->async, later->token, run_call, later->fault.get());
  }
};

struct Detached;
template <typename H>
Detached drive(H& handler, const sluice_message& raw_message, const sluice_async_context& raw_context);

}  // namespace detail

/// One attempt at one message that is ended by `complete`. Movable; who holds it may use it from any thread, one at a
/// time, until it is completed. One that is destroyed before completes as a fault.
class AsyncContext : public Context {
 public:
  AsyncContext(const sluice_async_context& context, const sluice_message& message)
      : Context(*context.context, message), async_(context.async), token_(context.token) {}
  AsyncContext(AsyncContext&& other) noexcept
      : Context(static_cast<Context&&>(other)),
        async_(other.async_),
        token_(std::exchange(other.token_, 0)),
        ended_(std::exchange(other.ended_, 0)),
        fault_(std::move(other.fault_)) {
    other.forget();
  }
  AsyncContext& operator=(AsyncContext&& other) noexcept {
    if (this != &other) {
      drop();
      Context::operator=(static_cast<Context&&>(other));
      async_ = other.async_;
      token_ = std::exchange(other.token_, 0);
      ended_ = std::exchange(other.ended_, 0);
      fault_ = std::move(other.fault_);
      other.forget();
    }
    return *this;
  }
  ~AsyncContext() { drop(); }

  /// Ends the message: it, and all that this context has given, are void then. False, and a line in the host's log,
  /// when it was completed before.
  bool complete(const Outcome& outcome) {
    try {
      if (!outcome.result().empty()) {
        set_result(outcome.result());
      }
    } catch (const std::exception& error) {
      return end(SLUICE_FAULT, Outcome::kByPolicy, error.what());
    }
    return end(outcome.status(), outcome.delay(), outcome.reason());
  }
  /// Ends it as a fault with what was thrown.
  bool complete(const std::exception_ptr& thrown) {
    bool ended = false;
    detail::guard([&] { std::rethrow_exception(thrown); },
                  [&](std::string_view why) { ended = end(SLUICE_FAULT, Outcome::kByPolicy, why); });
    return ended;
  }
  /// True once it is completed, or was moved from.
  bool completed() const { return token_ == 0; }

  /// Calls `call` once, on a thread of the host's that must not be held up: after `delay`, or earlier as soon as a stop
  /// is requested, the time-out has come, or the message is completed. What it throws ends the message as a fault: at
  /// once, whoever else holds this context, or with the coroutine that it is given to.
  void call_after(std::chrono::nanoseconds delay, std::function<void()> call) const {
    auto later = std::make_unique<detail::LaterCall>(detail::LaterCall{async_, token_, std::move(call), fault_});
    if (start_timer(delay, &detail::LaterCall::run, later.get()) == SLUICE_ACCEPTED) {
      static_cast<void>(later.release());
    } else {
      later->call();
    }
  }
  /// The same without a time.
  void on_stop(std::function<void()> call) const { call_after(std::chrono::nanoseconds::max(), std::move(call)); }

  /// `co_await context.sleep(500ms)`: true when the handler should finish, which ends the sleep early.
  class [[nodiscard]] Sleep {
   public:
    Sleep(const AsyncContext& context, std::chrono::nanoseconds delay) : context_(context), delay_(delay) {}
    bool await_ready() const noexcept { return false; }
    bool await_suspend(std::coroutine_handle<> waiting) const {
      const auto run = [](void* data) noexcept { std::coroutine_handle<>::from_address(data).resume(); };
      // Nothing of this object may be touched once the timer has begun.
      return context_.start_timer(delay_, run, waiting.address()) == SLUICE_ACCEPTED;
    }
    bool await_resume() const { return context_.stop_requested(); }

   private:
    const AsyncContext& context_;
    const std::chrono::nanoseconds delay_;
  };
  Sleep sleep(std::chrono::nanoseconds delay) const { return {*this, delay}; }

  /// Would hold up all other messages: `co_await sleep(...)`, or `call_after`.
  bool wait_for_stop(std::chrono::nanoseconds timeout) const = delete;

 private:
  template <typename H>
  friend detail::Detached detail::drive(H& handler, const sluice_message& raw_message,
                                        const sluice_async_context& raw_context);

  bool end(sluice_status status, std::chrono::nanoseconds delay, std::string_view reason) {
    if (token_ != 0) {
      ended_ = std::exchange(token_, 0);
      forget();
    } else if (ended_ == 0) {
      return false;
    }
    const std::optional<std::string> thrown = fault_ == nullptr ? std::nullopt : fault_->take();
    if (thrown) {
      status = SLUICE_FAULT;
      delay = Outcome::kByPolicy;
      reason = *thrown;
    }
    const sluice_outcome raw{sizeof(sluice_outcome), status, delay.count(), detail::borrow(reason)};
    return async_->complete(async_, ended_, &raw) == SLUICE_ACCEPTED;
  }
  void drop() noexcept {
    if (token_ != 0 && token_ == detail::beginning && std::uncaught_exceptions() > 0) {
      detail::beginning = 0;
    } else if (token_ != 0) {
      end(SLUICE_FAULT, Outcome::kByPolicy, detail::kDropped);
    }
  }
  void forget() noexcept { Context::operator=(Context(detail::kEndedContext, detail::kEndedMessage)); }
  sluice_answer start_timer(std::chrono::nanoseconds delay, void (*call)(void*), void* data) const {
    const std::int64_t span = std::max(delay, std::chrono::nanoseconds::zero()).count();
    return token_ == 0 ? SLUICE_STALE : async_->call_after(async_, token_, span, call, data);
  }

  const sluice_async_host* async_;
  sluice_token token_;
  sluice_token ended_ = 0;                     ///< once it is completed, so that the host names who does it again
  std::shared_ptr<detail::LaterFault> fault_;  ///< of a coroutine's
};

template <typename T = void>
class Task;

namespace detail {

/// The end of something and its awaiter's going to sleep may come in either order, on two threads. Whichever is second
/// has the awaiter go on: its own thread by not sleeping, so that however many tasks in a row end at once, they take no
/// more of the stack than one, with or without optimisation.
struct Meeting {
  bool is_second() noexcept { return met.exchange(true); }

  std::coroutine_handle<> waiting;
  std::atomic<bool> met{false};
};

/// What tasks of all types have in common: who waits for the end, and what was thrown.
struct TaskPromiseBase : Meeting {
  struct Final {
    bool await_ready() const noexcept { return false; }
    template <typename Promise>
    void await_suspend(std::coroutine_handle<Promise> ended) const noexcept {
      // By the end of it the task may be gone.
      const std::coroutine_handle<> awaiter = ended.promise().waiting;
      if (ended.promise().is_second()) {
        awaiter.resume();
      }
    }
    void await_resume() const noexcept {}
  };

  std::suspend_always initial_suspend() const noexcept { return {}; }
  Final final_suspend() const noexcept { return {}; }
  void unhandled_exception() noexcept { thrown = std::current_exception(); }
  void pass_on() const {
    if (thrown) {
      std::rethrow_exception(thrown);
    }
  }

  std::exception_ptr thrown;
};

template <typename T>
struct TaskPromise : TaskPromiseBase {
  Task<T> get_return_object();
  template <typename Value>
  requires std::convertible_to<Value&&, T>
  void return_value(Value&& result) { value.emplace(std::forward<Value>(result)); }
  T take() {
    pass_on();
    return std::move(*value);
  }

  std::optional<T> value;
};

template <>
struct TaskPromise<void> : TaskPromiseBase {
  Task<void> get_return_object();
  void return_void() const noexcept {}
  void take() const { pass_on(); }
};

}  // namespace detail

/// A coroutine that begins when it is awaited, once, and gives what it returns, or throws what it has thrown, to who
/// awaits it. Movable. Destroying one that waits for something destroys what it has on its stack.
template <typename T>
class [[nodiscard]] Task {
 public:
  using promise_type = detail::TaskPromise<T>;

  explicit Task(std::coroutine_handle<promise_type> coroutine) : coroutine_(coroutine) {}
  Task(Task&& other) noexcept : coroutine_(std::exchange(other.coroutine_, nullptr)) {}
  Task& operator=(Task&& other) noexcept {
    std::swap(coroutine_, other.coroutine_);
    return *this;
  }
  ~Task() {
    if (coroutine_) {
      coroutine_.destroy();
    }
  }

  bool await_ready() const noexcept { return false; }
  bool await_suspend(std::coroutine_handle<> waiting) const noexcept {
    promise_type& promise = coroutine_.promise();
    promise.waiting = waiting;
    coroutine_.resume();
    return !promise.is_second();
  }
  T await_resume() const { return coroutine_.promise().take(); }

 private:
  std::coroutine_handle<promise_type> coroutine_;
};

template <typename T>
Task<T> detail::TaskPromise<T>::get_return_object() {
  return Task<T>(std::coroutine_handle<TaskPromise<T>>::from_promise(*this));
}
inline Task<void> detail::TaskPromise<void>::get_return_object() {
  return Task<void>(std::coroutine_handle<TaskPromise<void>>::from_promise(*this));
}

/// What a coroutine is given that waits for a callback which will never come: every copy of its Completion is gone.
class NeverCompleted : public std::logic_error {
 public:
  NeverCompleted() : std::logic_error("an operation ended without calling back: its Completion was dropped") {}
};

namespace detail {

template <typename T>
struct CallbackState : Meeting {
  using Value = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

  /// The first one counts.
  template <typename Result>
  bool settle(Result&& given) {
    if (taken.exchange(true)) {
      return false;
    }
    result = std::forward<Result>(given);
    if (is_second()) {
      waiting.resume();
    }
    return true;
  }

  std::atomic<bool> taken{false};
  std::variant<std::exception_ptr, Value> result;
};

}  // namespace detail

/// By which an operation calls back the coroutine that waits for it, from any thread. Copyable, so that a std::function
/// can hold it; the first call counts, and returns true.
template <typename T>
class Completion {
 public:
  using State = detail::CallbackState<T>;
  using Result = typename State::Value;

  explicit Completion(const std::shared_ptr<State>& state) : last_(std::make_shared<Last>(state)) {}

  template <typename... Args>
  requires std::constructible_from<Result, Args&&...>
  bool operator()(Args&&... args) const { return last_->state->settle(Result(std::forward<Args>(args)...)); }
  /// The coroutine goes on with this exception.
  bool fail(std::exception_ptr thrown) const { return last_->state->settle(std::move(thrown)); }
  bool fail(const std::string& why) const { return fail(std::make_exception_ptr(std::runtime_error(why))); }

 private:
  struct Last {
    explicit Last(std::shared_ptr<State> of) : state(std::move(of)) {}
    Last(const Last&) = delete;
    Last& operator=(const Last&) = delete;
    ~Last() { state->settle(std::make_exception_ptr(NeverCompleted())); }
    const std::shared_ptr<State> state;
  };

  std::shared_ptr<Last> last_;
};

namespace detail {

template <typename T, typename Start>
class [[nodiscard]] Callback {
 public:
  explicit Callback(Start start) : start_(std::move(start)) {}

  bool await_ready() const noexcept { return false; }
  bool await_suspend(std::coroutine_handle<> waiting) {
    // Kept here: once the operation has begun this object may be gone.
    const std::shared_ptr<CallbackState<T>> state = state_;
    state->waiting = waiting;
    std::move(start_)(Completion<T>(state));
    return !state->is_second();
  }
  T await_resume() {
    if (const auto* thrown = std::get_if<std::exception_ptr>(&state_->result)) {
      std::rethrow_exception(*thrown);
    }
    if constexpr (!std::is_void_v<T>) {
      return std::move(std::get<T>(state_->result));
    }
  }

 private:
  Start start_;
  const std::shared_ptr<CallbackState<T>> state_ = std::make_shared<CallbackState<T>>();
};

}  // namespace detail

/// `co_await callback<T>(start)`: calls `start(Completion<T>)`, which begins an operation and returns, and waits until
/// the completion is called with a T (with nothing for void). What `start` throws is thrown here.
template <typename T, typename Start>
requires std::invocable<Start, Completion<T>> detail::Callback<T, std::decay_t<Start>> callback(Start&& start) {
  return detail::Callback<T, std::decay_t<Start>>(std::forward<Start>(start));
}

namespace detail {

template <typename H>
concept HandlesWithCallback = requires(H& handler, const Message& message, AsyncContext context) {
  { handler.handle(message, std::move(context)) } -> std::same_as<void>;
};
template <typename H>
concept HandlesAsCoroutine = requires(H& handler, const Message& message, AsyncContext& context) {
  { handler.handle(message, context) } -> std::same_as<Task<Outcome>>;
};
template <typename H>
concept HandlesAsync = HandlesWithCallback<H> || HandlesAsCoroutine<H>;

/// A coroutine that nobody waits for.
struct Detached {
  struct promise_type {
    Detached get_return_object() const noexcept { return {}; }
    std::suspend_never initial_suspend() const noexcept { return {}; }
    std::suspend_never final_suspend() const noexcept { return {}; }
    void return_void() const noexcept {}
    void unhandled_exception() const noexcept { std::terminate(); }
  };
};

/// Runs a coroutine handler over one message, and ends that with what it returns or throws.
template <typename H>
Detached drive(H& handler, const sluice_message& raw_message, const sluice_async_context& raw_context) {
  const Message message(raw_message);
  AsyncContext context(raw_context, raw_message);
  std::exception_ptr thrown;
  try {
    context.fault_ = std::make_shared<LaterFault>();
    const Outcome outcome = co_await handler.handle(message, context);
    context.complete(outcome);
  } catch (...) {
    thrown = std::current_exception();
  }
  if (thrown) {
    context.complete(thrown);
  }
}

}  // namespace detail

}  // namespace sluice
