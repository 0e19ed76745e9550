#pragma once

#include <vector>

#include "config/config.hpp"
#include "config/document.hpp"
#include "config/reader.hpp"

namespace sluice::config {

/// The tables [outbox.NAME] of a host file.
void read_outboxes(Section outboxes, HostConfig& config);

/// A job's `source` where it is "outbox:NAME": true, and the queue's name and the job's other defaults are set.
/// False: it is something else, or is not there.
bool read_outbox_source(Section job, JobConfig& config);

/// [job.outbox], and what else of an outbox's job only shows when all of its file has been read.
void read_outbox_filter(Section job, JobConfig& config);

/// What jobs with an outbox and the host file say of each other: an error for each that does not fit, and limits that
/// the jobs leave to the outbox.
std::vector<ConfigError> join_outboxes(std::vector<JobConfig>& jobs, const HostConfig& host);

}  // namespace sluice::config
