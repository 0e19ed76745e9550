#include "host/runtime/plugin_gate.hpp"

#include <utility>

#include "base/guard.hpp"
#include "config/file_trust.hpp"

namespace sluice::runtime {

Result<std::vector<config::ConfigError>> PluginGate::admit(const std::vector<config::JobConfig>& jobs) {
  TrialRequest request;
  request.host_file = host_.file;
  request.pins = registry_.pins();
  std::vector<std::string> fresh;
  for (const std::string& file : registry_.unseen(host_.plugin_dirs)) {
    const bool trusted = host_.allow_insecure_files || !SLUICE_GUARD(plugin_file_modes);
    const auto distrusted = trusted ? std::nullopt : config::distrust(file);
    if (distrusted) {
      registry_.refuse(file, *distrusted);
    } else {
      fresh.push_back(file);
    }
  }
  for (const plugin::LoadedPlugin& loaded : registry_.plugins()) {
    request.files.push_back(loaded.file);
  }
  request.files.insert(request.files.end(), fresh.begin(), fresh.end());
  for (const config::JobConfig& job : jobs) {
    request.jobs.push_back(job.name);
  }
  std::vector<config::ConfigError> errors;
  if ((!fresh.empty() || !jobs.empty()) && SLUICE_GUARD(plugins_tried_first)) {
    SLUICE_TRY(verdict, trial_.run(std::move(request)));
    for (const std::string& file : fresh) {
      if (const auto found = verdict->files.find(file); found != verdict->files.end()) {
        registry_.refuse(file, found->second + "; it was tried in a process of its own: mend it or take it away");
      }
    }
    for (const config::JobConfig& job : jobs) {
      if (const auto found = verdict->jobs.find(job.name); found != verdict->jobs.end()) {
        errors.push_back({job.handler_place, "the handler \"" + job.handler + "\" " + found->second +
                                                 ", with this job's options, in a process that tried it"});
      }
    }
  }
  registry_.scan(host_.plugin_dirs);
  return errors;
}

}  // namespace sluice::runtime
