#pragma once

#include <vector>

#include "config/config.hpp"
#include "host/plugin/option_values.hpp"
#include "host/plugin/plugin_registry.hpp"
#include "sluice/abi.h"

namespace sluice::runtime {

/// A job that is known to be startable as far as files can tell: its handler exists and takes its options. A value.
struct JobPlan {
  config::JobConfig config;
  const sluice_handler* handler = nullptr;  ///< lives as long as the process
  plugin::OptionValues options;
};

/// Binds jobs to the handlers of the registry. Every error of every job at once: unknown or ambiguous handler, options.
config::Parsed<std::vector<JobPlan>> plan_jobs(const std::vector<config::JobConfig>& jobs,
                                               const plugin::PluginRegistry& registry);

/// All of it from the host file's patterns and folders: reads the job files, scans the plugin folders, binds.
config::Parsed<std::vector<JobPlan>> load_job_plans(const config::HostConfig& host, plugin::PluginRegistry& registry);

}  // namespace sluice::runtime
