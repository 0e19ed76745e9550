#include "tests/plugins/live_host.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <optional>
#include <stdexcept>

namespace sluice::shipped {

const sluice_handler& handler_of(const std::string& name) {
  const std::string file = std::string(SLUICE_BINARY_DIR) + "/plugins/" + name + ".so";
  void* library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    throw std::runtime_error(::dlerror());
  }
  return testing::handler(*static_cast<const sluice_plugin*>(::dlsym(library, SLUICE_PLUGIN_SYMBOL)), name);
}

struct LiveAttempt {
  LiveHost& host;
  Stop& stop;
  std::optional<std::chrono::steady_clock::time_point> drained;
  Result result{SLUICE_FAULT, std::chrono::nanoseconds(-1), "reported no outcome", {}};

  static LiveAttempt& of(const sluice_context* context) { return *static_cast<LiveAttempt*>(context->host); }

  bool stopped() {
    if (stop.after_questions >= 0 && stop.after_questions-- == 0) {
      stop.requested = true;
    }
    return stop.requested || stop.timed_out || stop.lost;
  }
  std::chrono::nanoseconds time_left() {
    if (stop.timed_out || stop.lost || !stop.requested) {
      return stop.timed_out || stop.lost ? std::chrono::nanoseconds(0) : std::chrono::minutes(1);
    }
    const auto now = std::chrono::steady_clock::now();
    drained = drained.value_or(now + std::chrono::milliseconds(stop.drain));
    return std::max(std::chrono::nanoseconds(0), std::chrono::nanoseconds(*drained - now));
  }
  void take(const sluice_outcome& outcome) {
    result = {outcome.status, std::chrono::nanoseconds(outcome.delay), std::string(detail::view(outcome.reason)), {}};
  }
  void write(sluice_string text) { host.write(std::string(detail::view(text))); }

  sluice_context context() {
    return {sizeof(sluice_context),
            0,
            this,
            [](const sluice_context* context, const sluice_outcome* outcome) { of(context).take(*outcome); },
            [](const sluice_context* context, sluice_log_level, sluice_string text) { of(context).write(text); },
            [](const sluice_context* context) -> std::int32_t { return of(context).stopped() ? 1 : 0; },
            [](const sluice_context* context, std::int64_t) -> std::int32_t { return of(context).stopped() ? 1 : 0; },
            [](const sluice_context* context) -> std::int64_t { return of(context).time_left().count(); },
            [](const sluice_context* context, std::int64_t) -> std::int32_t { return of(context).stop.lost ? 1 : 0; },
            [](const sluice_context*, const char*) -> const void* { return nullptr; }};
  }
};

/// "sluice.async/1" for the one message of each call of LiveHost::handle, whose token is its address.
struct LiveAsync {
  explicit LiveAsync(LiveAttempt& its_attempt) : attempt(its_attempt) {}

  // NOLINTNEXTLINE(performance-no-int-to-ptr): the token is its address.
  static LiveAsync& of(sluice_token token) { return *reinterpret_cast<LiveAsync*>(token); }
  static const sluice_async_host& table() {
    using Host = sluice_async_host;
    static constexpr Host kTable{
        sizeof(Host),
        0,
        nullptr,
        [](const Host*, sluice_token token, const sluice_outcome* outcome) -> sluice_answer {
          LiveAsync& self = of(token);
          const std::lock_guard lock(self.mutex);
          self.attempt.take(*outcome);
          self.completed = true;
          self.changed.notify_all();
          return SLUICE_ACCEPTED;
        },
        [](const Host*, sluice_token token, sluice_log_level, sluice_string text) { of(token).attempt.write(text); },
        [](const Host*, sluice_token token) -> std::int32_t { return of(token).attempt.stopped() ? 1 : 0; },
        [](const Host*, sluice_token token) -> std::int64_t { return of(token).attempt.time_left().count(); },
        [](const Host*, sluice_token, std::int64_t) -> std::int32_t { return 0; },
        [](const Host*, sluice_token, const char*) -> const void* { return nullptr; },
        [](const Host*, sluice_token token, std::int64_t, void (*call)(void*), void* data) -> sluice_answer {
          LiveAsync& self = of(token);
          const std::lock_guard lock(self.mutex);
          self.on_stop.emplace_back(call, data);
          return SLUICE_ACCEPTED;
        }};
    return kTable;
  }

  /// Looks at the stop now and then, as nobody tells of it.
  void run(const sluice_async& handler, void* instance, const sluice_message& message, const sluice_context& context) {
    const sluice_async_context async{sizeof(sluice_async_context), 0, reinterpret_cast<sluice_token>(this), &table(),
                                     &context};
    handler.begin(instance, &message, &async);
    bool over = false;
    while (!over) {
      std::vector<std::pair<void (*)(void*), void*>> calls;
      {
        std::unique_lock lock(mutex);
        changed.wait_for(lock, std::chrono::milliseconds(10), [this] { return completed; });
        over = completed;
        if (over || attempt.stopped()) {
          calls.swap(on_stop);
        }
      }
      for (const auto& [call, data] : calls) {
        call(data);
      }
    }
  }

  LiveAttempt& attempt;
  std::mutex mutex;
  std::condition_variable changed;
  bool completed = false;
  std::vector<std::pair<void (*)(void*), void*>> on_stop;
};

LiveHost::LiveHost(const std::string& plugin, const OptionMap& options) : handler_(handler_of(plugin)) {
  host_ = {sizeof(sluice_host),
           SLUICE_ABI_MINOR,
           this,
           detail::borrow("test"),
           [](const sluice_host* host, sluice_log_level, sluice_string text) {
             static_cast<LiveHost*>(host->host)->write(std::string(detail::view(text)));
           },
           [](const sluice_host*, const char* id) -> const void* {
             static const sluice_health health{
                 sizeof(sluice_health), 0,
                 [](const sluice_host* host, sluice_string part, std::int32_t works, sluice_string text) {
                   auto& self = *static_cast<LiveHost*>(host->host);
                   EXPECT_EQ(detail::view(part), "broker");
                   const std::lock_guard lock(self.mutex_);
                   self.broker_ = {works != 0, std::string(detail::view(text))};
                   self.written_.notify_all();
                 }};
             if (std::string_view(id) == SLUICE_ASYNC_1) {
               return &LiveAsync::table();
             }
             return std::string_view(id) == SLUICE_HEALTH_1 ? &health : nullptr;
           }};
  instance_.emplace(handler_, options, host_);
  if (!instance_->created()) {
    throw std::runtime_error(instance_->errors().front());
  }
}

LiveHost::~LiveHost() { instance_.reset(); }

Result LiveHost::handle(const TestMessage& message, Stop& stop) {
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
                           0,
                           attributes.data(),
                           attributes.size()};
  LiveAttempt attempt{*this, stop};
  const sluice_context context = attempt.context();
  const void* const async = handler_.extension == nullptr ? nullptr : handler_.extension(SLUICE_ASYNC_1);
  if (async == nullptr) {
    handler_.handle(instance_->object(), &raw, &context);
  } else {
    LiveAsync(attempt).run(*static_cast<const sluice_async*>(async), instance_->object(), raw, context);
  }
  return attempt.result;
}

void LiveHost::write(std::string text) {
  const std::lock_guard lock(mutex_);
  lines_.push_back(std::move(text));
  written_.notify_all();
}

std::vector<std::string> LiveHost::log() const {
  const std::lock_guard lock(mutex_);
  return lines_;
}

bool LiveHost::logged(const std::string& text) const {
  const std::vector<std::string> lines = log();
  return std::any_of(lines.begin(), lines.end(),
                     [&](const std::string& line) { return line.find(text) != std::string::npos; });
}

bool LiveHost::wait_for_line(const std::string& text) {
  std::unique_lock lock(mutex_);
  return written_.wait_for(lock, std::chrono::seconds(10), [&] {
    return std::any_of(lines_.begin(), lines_.end(),
                       [&](const std::string& line) { return line.find(text) != std::string::npos; });
  });
}

std::string LiveHost::wait_for_broker(bool works) {
  std::unique_lock lock(mutex_);
  const bool told = written_.wait_for(lock, std::chrono::minutes(1),
                                      [&] { return broker_.first == works && !broker_.second.empty(); });
  return told ? broker_.second : "";
}

std::string creation_error(const std::string& plugin, const OptionMap& options) {
  const HandlerTest test(handler_of(plugin), options);
  return test.created() ? "" : test.errors().front();
}

}  // namespace sluice::shipped
