#pragma once

#include <vector>

#include "config/config.hpp"
#include "config/document.hpp"
#include "config/reader.hpp"

namespace sluice::config {

/// Reads [cost].
void read_cost(Section cost, Reader& reader, HostConfig& config);
/// Reads what a queue's host may spend on it: max_write_units and max_read_units of [queues.NAME], which lies in a
/// store of this kind.
void read_budget(Section& section, Reader& reader, StoreKind kind, QueueConfig& queue);

/// Reads [job.idempotency], where it is there.
void read_idempotency(Section idempotency, JobConfig& config);

/// Which queues a job draws from, and in which order.
/// `queue` or `queues`: one of them.
void read_queues(Section job, Reader& reader, JobConfig& config);
/// `order`, `fair` and `on_dead_letter`. After the dead-letter policy.
void read_order(Section job, Reader& reader, JobConfig& config);
/// [job.priorities]. After the order.
void read_priorities(Section priorities, Reader& reader, JobConfig& config);

/// Reads [log]: what stands on standard error, and who is sent the lines beside it.
void read_log(Section log, Reader& reader, HostConfig& config);

/// The tables [outbox.NAME] of a host file; `tree` is the file's, `root` its top level.
void read_outboxes(Section root, Reader& reader, const Table& tree, HostConfig& config);

/// A job's `source` where it is "outbox:NAME": true, and the queue's name and the job's other defaults are set.
/// False: it is something else, or is not there.
bool read_outbox_source(Section job, Reader& reader, JobConfig& config);

/// [job.outbox], and what else of an outbox's job only shows when all of its file has been read.
void read_outbox_filter(Section job, Reader& reader, JobConfig& config);

/// What jobs with an outbox and the host file say of each other: an error for each that does not fit, and limits that
/// the jobs leave to the outbox.
std::vector<ConfigError> join_outboxes(std::vector<JobConfig>& jobs, const HostConfig& host);

/// Reads every [schedule.NAME] of a job file. `tree` is the file's top level.
void read_schedules(Section root, Reader& reader, const Table& tree, JobConfig& config);

/// Reads [tracing], where it is there.
void read_tracing(Section tracing, Reader& reader, HostConfig& config);

/// Reads [wake], where it is there.
void read_wake(Section wake, Reader& reader, HostConfig& config);

}  // namespace sluice::config
