#pragma once

#include <string_view>

#include "sluice/abi.h"
#include "sluice/message.hpp"

namespace sluice {

/// The host as one handler instance sees it: its log, for lines that belong to no message. A value; copies stay valid
/// until the handler's destructor has returned. Thread-safe, also for threads that the handler started itself.
class Host {
 public:
  explicit Host(const sluice_host& host) : host_(&host) {}

  /// The job this instance works for.
  std::string_view job() const { return detail::view(host_->job); }

  void trace(std::string_view text) const { log(SLUICE_LOG_TRACE, text); }
  void debug(std::string_view text) const { log(SLUICE_LOG_DEBUG, text); }
  void info(std::string_view text) const { log(SLUICE_LOG_INFO, text); }
  void warn(std::string_view text) const { log(SLUICE_LOG_WARN, text); }
  void error(std::string_view text) const { log(SLUICE_LOG_ERROR, text); }
  void log(sluice_log_level level, std::string_view text) const { host_->log(host_, level, detail::borrow(text)); }

  /// A feature beyond the core, by its id, such as "sluice.metrics/1"; null when this host does not have it. `Feature`
  /// is the C struct that the feature's header defines.
  template <typename Feature>
  const Feature* extension(const char* id) const {
    return static_cast<const Feature*>(host_->extension(host_, id));
  }

 private:
  const sluice_host* host_;
};

}  // namespace sluice
