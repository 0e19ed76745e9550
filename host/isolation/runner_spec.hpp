#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "host/plugin/effect_rules.hpp"
#include "host/plugin/health_board.hpp"
#include "host/plugin/option_values.hpp"
#include "host/plugin/plugin_registry.hpp"

namespace sluice::isolation {

/// What a Runner may use. A value.
struct RunnerLimits {
  std::uint64_t memory = 0;                       ///< bytes of writable private memory (RLIMIT_DATA); 0: no limit
  Duration cpu{};                                 ///< of all its threads, for one attempt; zero: no limit
  Duration start = std::chrono::seconds(30);      ///< until the handler is made
  Duration kill_grace = std::chrono::seconds(5);  ///< from an attempt's time-out to the end of the process
};

/// A plugin's file kept open, so that it is the same one whatever comes to lie under its name. A resource.
class OpenPlugin {
 public:
  static Result<std::shared_ptr<const OpenPlugin>> open(const std::string& file);
  /// The very bytes that this process loaded, when a job pinned them; otherwise the file of that name.
  static Result<std::shared_ptr<const OpenPlugin>> open(const plugin::LoadedPlugin& loaded);
  ~OpenPlugin();
  OpenPlugin(const OpenPlugin&) = delete;
  OpenPlugin& operator=(const OpenPlugin&) = delete;

  int descriptor() const { return descriptor_; }

 private:
  explicit OpenPlugin(int descriptor) : descriptor_(descriptor) {}

  const int descriptor_;
};

/// Which handler a Runner runs, and how. A value.
struct RunnerSpec {
  std::string job;
  std::string plugin;  ///< file
  std::string handler;
  plugin::OptionValues options;
  RunnerLimits limits;
  std::shared_ptr<const OpenPlugin> file;  ///< of `plugin`
  plugin::EffectRules effects{};
  std::shared_ptr<plugin::HealthSeat> health{};  ///< where it tells how what it works with fares; may be null
};

}  // namespace sluice::isolation
