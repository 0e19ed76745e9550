#include "host/work/handler_log.hpp"

namespace sluice::work {
namespace {

observe::LogLevel log_level(sluice_log_level level) {
  switch (level) {
    case SLUICE_LOG_TRACE:
      return observe::LogLevel::trace;
    case SLUICE_LOG_DEBUG:
      return observe::LogLevel::debug;
    case SLUICE_LOG_WARN:
      return observe::LogLevel::warn;
    case SLUICE_LOG_ERROR:
      return observe::LogLevel::error;
    default:
      return observe::LogLevel::info;
  }
}

}  // namespace

plugin::HandlerLog handler_log(observe::Log& log) {
  return [&log](sluice_log_level level, std::string_view job, std::string_view message_id, std::string_view text) {
    if (message_id.empty()) {
      log.write(log_level(level), text, {{"job", job}});
    } else {
      log.write(log_level(level), text, {{"job", job}, {"id", message_id}});
    }
  };
}

}  // namespace sluice::work
