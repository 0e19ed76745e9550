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
    return stop.requested || stop.timed_out;
  }
  std::chrono::nanoseconds time_left() {
    if (stop.timed_out || !stop.requested) {
      return stop.timed_out ? std::chrono::nanoseconds(0) : std::chrono::minutes(1);
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
            [](const sluice_context*, std::int64_t) -> std::int32_t { return 0; },
            [](const sluice_context*, const char*) -> const void* { return nullptr; }};
  }
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
             return std::string_view(id) == SLUICE_HEALTH_1 ? &health : nullptr;
           }};
  const detail::TestOptions bound(handler_, options);
  std::string error = bound.errors().empty() ? "" : bound.errors().front();
  const auto fail = [](void* sink, sluice_string why) { *static_cast<std::string*>(sink) = detail::view(why); };
  if (!error.empty() || handler_.create(&host_, bound.data(), bound.size(), &instance_, fail, &error) != 0) {
    throw std::runtime_error(error);
  }
}

LiveHost::~LiveHost() { handler_.destroy(instance_); }

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
  handler_.handle(instance_, &raw, &context);
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
