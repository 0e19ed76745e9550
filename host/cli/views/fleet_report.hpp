#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "host/cli/views/json_text.hpp"
#include "host/cli/views/text_table.hpp"
#include "host/fleet/fleet.hpp"
#include "host/operate/job_summary.hpp"

/// Hosts, jobs, handlers at work and what operators want, as rows for people and as JSON for programs. Pure functions.
namespace sluice::cli {

/// A handler at work, and on which host.
struct HandlerAtWork {
  std::string host;  ///< its label
  fleet::RunningRecord handler;
};
/// Of all hosts that are not silent, the longest at work first.
std::vector<HandlerAtWork> handlers_at_work(const fleet::FleetView& view);

/// "running", "draining, late", "silent".
TextTable::Cell host_state_cell(const fleet::KnownHost& host);

std::string hosts_text(const fleet::FleetView& view, WallTime now, bool colours);
std::string hosts_json(const fleet::FleetView& view);

std::string jobs_text(const std::vector<operate::JobSummary>& jobs, WallTime now, bool colours);
/// `more` writes further members of each; empty: there are none.
std::string jobs_json(const std::vector<operate::JobSummary>& jobs,
                      const std::function<void(JsonText&, const operate::JobSummary&)>& more = {});

std::string running_text(const std::vector<HandlerAtWork>& running, WallTime now, bool colours);
std::string running_json(const std::vector<HandlerAtWork>& running, WallTime now);

std::string audit_text(const std::vector<fleet::AuditEntry>& entries, WallTime now, bool colours);
std::string audit_json(const std::vector<fleet::AuditEntry>& entries);

/// What stands about a job: "paused by ann@ops-1 5m ago", "queue paused by ...", "scaled to 16 by ...".
std::vector<std::string> wish_texts(const std::vector<fleet::Given>& wishes, WallTime now);
/// Members of an object that the caller begins and ends.
void write_directive(JsonText& json, const fleet::Given& given);

}  // namespace sluice::cli
